"""The local stage, from synth to a pipeline that waits for messages; and its end."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from local import emulator, processes, state
from local.aws import STAGE, Endpoints
from local.deploy import Deployment
from local.processes import StartError, wait_until
from local.pump import DRIVING
from local.state import State
from local.workspace import REPOSITORY, Workspace

START_SECONDS = 15.0
NOWHERE = "http://127.0.0.1:9"
"""The providers of an assembly that nobody deploys."""
NO_PROXY = {"NO_PROXY": "*", "PYTHONUNBUFFERED": "1"}
Announce = Callable[[str], None]


def start(workspace: Workspace, announce: Announce) -> State:
    """Synthesize, start emulator, simulators and pump, deploy. Raises StartError or DeployError, and leaves
    nothing behind."""
    try:
        return _start(workspace, announce)
    except BaseException:
        stop(workspace)
        raise


def _start(workspace: Workspace, announce: Announce) -> State:
    announce("starting the emulator and the providers' simulators")
    aws_port, providers_port = emulator.free_ports(2)
    base = f"http://{emulator.LOOPBACK}"
    running = State(Endpoints(f"{base}:{aws_port}", f"{base}:{providers_port}"))
    running.processes["ministack"] = emulator.start(
        workspace, aws_port, running.endpoints.providers, running.endpoints.sns
    )
    running.save(workspace)
    _module(workspace, running, "providers", "--port", str(providers_port))
    announce("synthesizing the stacks")
    synthesize(workspace, running.endpoints.providers)
    _await_providers(workspace, running)
    announce("deploying the stacks")
    running.outputs = Deployment(running.endpoints.aws).deploy(workspace.assembly)
    _module(workspace, running, "pump")
    _await_pump(workspace)
    _write_environment(workspace, running)
    return running


def synthesize(workspace: Workspace, providers: str = NOWHERE) -> None:
    """Write the local stage's cloud assembly, with the interpreter that runs this.

    `providers` is the base URL of the simulators, which the fax and SMS senders have in their environment.
    """
    folder = str(REPOSITORY / ".venv" / "bin")
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true",
    }
    context = ["-c", f"stage={STAGE}", "-c", f"providers={providers}"]
    answer = subprocess.run(
        [sys.executable, "app.py", *context, "--output", str(workspace.assembly)],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0 or not (workspace.assembly / "manifest.json").exists():
        raise StartError(
            f"The stacks of stage local could not be synthesized:\n{answer.stdout}{answer.stderr}"
        )


def stop(workspace: Workspace) -> bool:
    """End everything this workspace started, also after a crash; True if anything was running."""
    known = state.load(workspace)
    stopped = [each.stop() for each in reversed(list(known.processes.values()))] if known else []
    for path in (workspace.state, workspace.environment):
        path.unlink(missing_ok=True)
    shutil.rmtree(workspace.scratch, ignore_errors=True)
    return any(stopped)


def _module(workspace: Workspace, running: State, name: str, *options: str) -> None:
    module = f"local.{name}"
    command = [sys.executable, "-m", module, "--emulator", running.endpoints.aws, *options]
    environment = os.environ | NO_PROXY | {"PYTHONPATH": str(REPOSITORY)}
    environment = {key: value for key, value in environment.items() if not key.startswith("AWS_")}
    running.processes[name] = processes.start(command, module, workspace.log(name), environment)
    running.save(workspace)


def _await_providers(workspace: Workspace, running: State) -> None:
    url = f"{running.endpoints.providers}/health"
    if not wait_until(lambda: emulator.answers(url), START_SECONDS):
        raise StartError(
            f"The providers' simulators did not start; the end of {workspace.log('providers')}:\n"
            f"{workspace.tail('providers')}\nTry again: each start picks free ports."
        )


def _await_pump(workspace: Workspace) -> None:
    """Until then the emulator would work the fax queue itself, one line after another."""
    if not wait_until(lambda: DRIVING in workspace.tail("pump"), START_SECONDS):
        raise StartError(
            f"The pump did not start; the end of {workspace.log('pump')}:\n{workspace.tail('pump')}"
        )


def _write_environment(workspace: Workspace, running: State) -> None:
    lines = [f"export {name}={value}\n" for name, value in running.variables().items()]
    workspace.environment.write_text("".join(lines))
