"""The local stage, from synth to a pipeline that waits for messages; and its end."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from local.aws import STAGE, Endpoints
from local.database import example_people
from local.database.example_people import People
from local.database.postgres import ASKED_FOR, LISTENING, Postgres
from local.pump.pump import DRIVING
from local.stage import emulator, processes, state
from local.stage.deploy import PROVIDERS, Deployment
from local.stage.processes import StartError, wait_until
from local.stage.state import State
from local.stage.workspace import REPOSITORY, Workspace
from stacks.assemblies import assembly

START_SECONDS = 15.0
MODULES = {
    "providers": "local.providers.server",
    "postgres": "local.database.postgres",
    "pump": "local.pump.pump",
}
"""The programs of the stage, by the name of their log."""
PEOPLE = 50
"""How many the example campaign's database has with news for them, where nobody wants more."""
DATABASE_SECRET = f"mailroom-{STAGE}-app"
"""Where cdk.json has the campaigns' database of this stage."""
NO_PROXY = {"NO_PROXY": "*", "PYTHONUNBUFFERED": "1"}
Announce = Callable[[str], None]


def start(workspace: Workspace, announce: Announce, people: int = PEOPLE) -> State:
    """Synthesize, start emulator, database, simulators and pump, deploy. `people` are those who the example
    campaign finds in the database. Raises StartError or DeployError, and leaves nothing behind."""
    try:
        return _start(workspace, announce, people)
    except BaseException:
        stop(workspace)
        raise


def _start(workspace: Workspace, announce: Announce, people: int) -> State:
    announce("starting the emulator, the providers' simulators and a database")
    aws_port, providers_port, database_port = emulator.free_ports(3)
    base = f"http://{emulator.LOOPBACK}"
    running = State(Endpoints(f"{base}:{aws_port}", f"{base}:{providers_port}"))
    aws = ("--emulator", running.endpoints.aws)
    # Neither is awaited: they come up while the stacks are synthesized and deployed.
    _module(workspace, running, "providers", *aws, "--port", str(providers_port))
    database = _start_database(workspace, running, database_port)
    running.processes["ministack"] = emulator.start(
        workspace, aws_port, running.endpoints.providers, running.endpoints.sns
    )
    running.save(workspace)
    announce("synthesizing the stacks")
    synthesize(workspace)
    announce("deploying the stacks")
    deployment = Deployment(running.endpoints.aws)
    deployment.keep(DATABASE_SECRET, database.secret)
    running.outputs = deployment.deploy(workspace.assembly, running.endpoints.providers)
    _module(workspace, running, "pump", *aws)
    _await_providers(workspace, running)
    _await_database(workspace)
    with database.connect() as connection:
        example_people.create(connection, _people(people), datetime.now(UTC))
    _await_pump(workspace)
    _write_environment(workspace, running)
    return running


def synthesize(workspace: Workspace) -> None:
    """Let the workspace's `assembly` lead to the local stage's, which is synthesized where nobody did it
    before. Raises StartError."""
    made = assembly({"stage": STAGE, "providers": PROVIDERS}, synthesize=_run_app)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    workspace.assembly.unlink(missing_ok=True)
    workspace.assembly.symlink_to(made)


def _run_app(context: Mapping[str, object], output: str, _campaigns: Path) -> None:
    """In a process of its own, so that the CDK's node ends with it."""
    options = [f"--context={key}={value}" for key, value in context.items()]
    answer = subprocess.run(
        [sys.executable, "app.py", *options, "--output", output],
        cwd=REPOSITORY,
        env=os.environ | {"JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise StartError(
            f"The stacks of stage local could not be synthesized:\n{answer.stdout}{answer.stderr}"
        )


def stop(workspace: Workspace) -> bool:
    """End everything this workspace started, also after a crash; True if anything was running."""
    known = state.load(workspace)
    stopped = [each.stop() for each in reversed(list(known.processes.values()))] if known else []
    for path in (workspace.state, workspace.environment):
        path.unlink(missing_ok=True)
    shutil.rmtree(workspace.database, ignore_errors=True)
    _remove(workspace.scratch)
    return any(stopped)


def _remove(folder: Path) -> None:
    """Rename the folder, so that the next start finds nothing, and remove it in the background: a busy disk
    takes many seconds for the twenty thousand files of the functions' code."""
    gone = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
    with suppress(FileNotFoundError):
        folder.rename(gone)
        # The shell ends at once and leaves `rm` to the system, which waits for it.
        command = ["/bin/sh", "-c", 'rm -rf "$1" &', "sh", str(gone)]
        subprocess.run(command, start_new_session=True, check=True)


def _people(mailed: int) -> People:
    """So many with news; beside them some without, and some who want none."""
    return People(mailed, quiet=mailed // 10, unwilling=mailed // 10)


def _start_database(workspace: Workspace, running: State, port: int) -> Postgres:
    password = secrets.token_urlsafe(24)
    options = ("--folder", str(workspace.database), "--port", str(port))
    _module(workspace, running, "postgres", *options, variables={ASKED_FOR: password})
    guard = running.processes["postgres"].pid
    return Postgres(port, password, workspace.database, guard)


def _module(
    workspace: Workspace,
    running: State,
    name: str,
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> None:
    module = MODULES[name]
    command = [sys.executable, "-m", module, *options]
    environment = os.environ | NO_PROXY | {"PYTHONPATH": str(REPOSITORY)} | dict(variables or {})
    environment = {key: value for key, value in environment.items() if not key.startswith("AWS_")}
    running.processes[name] = processes.start(command, module, workspace.log(name), environment)
    running.save(workspace)


def _await_providers(workspace: Workspace, running: State) -> None:
    url = f"{running.endpoints.providers}/health"
    _await(workspace, "providers", lambda: emulator.answers(url))


def _await_database(workspace: Workspace) -> None:
    _await(workspace, "postgres", lambda: LISTENING in workspace.tail("postgres"))


def _await_pump(workspace: Workspace) -> None:
    """Until then the emulator would work the fax queue itself, one line after another."""
    _await(workspace, "pump", lambda: DRIVING in workspace.tail("pump"))


def _await(workspace: Workspace, name: str, up: Callable[[], bool]) -> None:
    if not wait_until(up, START_SECONDS):
        raise StartError(
            f"{MODULES[name]} did not start; the end of {workspace.log(name)}:\n{workspace.tail(name)}\n"
            "Try again: each start picks free ports."
        )


def _write_environment(workspace: Workspace, running: State) -> None:
    lines = [f"export {name}={value}\n" for name, value in running.variables().items()]
    workspace.environment.write_text("".join(lines))
