"""Starts and stops a local stage: from synthesizing the stacks to a pipeline that waits for messages."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mailroom_local import processes
from mailroom_local.aws import STAGE, Endpoints, answers
from mailroom_local.database import example_people
from mailroom_local.database.example_people import People
from mailroom_local.database.postgres import LISTENING, PASSWORD_VARIABLE, Postgres
from mailroom_local.processes import LOOPBACK, StartError, wait_until
from mailroom_local.pump.driver import DRIVING
from mailroom_local.stage import emulator
from mailroom_local.stage.deploy import PROVIDERS, EmulatorDeployment
from mailroom_local.stage.installation import PACKAGE, install_locked
from mailroom_local.stage.workspace import SIGN_IN_BIN, State, Workspace, load_state
from mailroom_ops.deploying.cdk import compare, run_app
from mailroom_ops.deploying.judgement import losses
from mailroom_stacks.app.cache import assembly, fingerprint
from mailroom_stacks.paths import CDK_JSON, CHANNELS, LIBRARY, STACKS

START_SECONDS = 60.0
"""Maximum time until a process serves. On a busy machine its imports alone may take 15 seconds."""
MODULES = {
    "providers": "mailroom_local.providers.server",
    "postgres": "mailroom_local.database.postgres",
    "pump": "mailroom_local.pump.driver",
    "second-pump": "mailroom_local.pump.driver",
    "console": "mailroom_ops console",
    "sign-in": "mailroom_local.sign_in.server",
}
"""Programs of a stage, by the names of their logs."""
PEOPLE = 50
"""Default number of people who get the example campaign's mail."""
ANEW = "To start again without the messages: mailroom down, then mailroom up."
DATABASE_SECRET = f"mailroom-{STAGE}-app"
"""Name of the secret of the campaigns' database. The settings of the stage in cdk.json contain this name."""
NO_PROXY = {"NO_PROXY": "*", "PYTHONUNBUFFERED": "1"}
Announce = Callable[[str], None]


def start(
    workspace: Workspace,
    announce: Announce,
    people: int = PEOPLE,
    *,
    console: bool = False,
    sign_in: bool = False,
) -> State:
    """Synthesize the stacks, start emulator, database, simulators and pump, and deploy. The database gets
    `people` recipients of the example campaign. `console` starts the console too, and `sign_in` the one
    behind a sign-in. Raises StartError, DeployError or Refused after ending the started processes."""
    try:
        return _start(workspace, announce, people, console, sign_in)
    except BaseException:
        stop(workspace)
        raise


def _start(workspace: Workspace, announce: Announce, people: int, console: bool, sign_in: bool) -> State:
    announce("starting the emulator, the providers' simulators and a database")
    aws_port, providers_port, database_port, console_port = processes.kept_ports(workspace.ports, 4)
    endpoints = Endpoints(f"http://{LOOPBACK}:{aws_port}", f"http://{LOOPBACK}:{providers_port}")
    running = State(endpoints, console_port=console_port if console else None, sign_in=sign_in)
    # The database starts while the stacks are synthesized and deployed, which saves time.
    password = secrets.token_urlsafe(24)
    options = ("--folder", str(workspace.database), "--port", str(database_port))
    start_module(workspace, running, "postgres", *options, variables={PASSWORD_VARIABLE: password})
    guard = running.processes["postgres"].pid
    database = Postgres(database_port, password, workspace.database, guard)
    running.processes["ministack"] = emulator.start(workspace, aws_port, endpoints)
    running.save(workspace)
    EmulatorDeployment(endpoints.aws).create_secret(DATABASE_SECRET, database.secret)
    announce("synthesizing the stacks")
    _deploy(workspace, running, synthesize(), announce)
    _await(workspace, running, "postgres", lambda: LISTENING in workspace.tail("postgres"))
    with database.connect() as connection:
        # Besides the recipients, there are people without new followers, and people who turned the mail off.
        everybody = People(people, quiet=people // 10, unwilling=people // 10)
        example_people.create(connection, everybody, datetime.now(UTC))
    return running


def _deploy(workspace: Workspace, running: State, stacks: Path, announce: Announce) -> None:
    """Deploy an assembly, and start the simulators, the pump and the consoles, unless they run with the
    current settings and code. Raises StartError, DeployError and Refused."""
    announce("deploying the stacks")
    aws, port = ("--emulator", running.endpoints.aws), running.endpoints.providers.rpartition(":")[2]
    # The simulators start first, because a new function may call the simulator of its provider at once.
    start_module(workspace, running, "providers", *aws, "--port", port, "--memory", str(workspace.memory))
    running.outputs = EmulatorDeployment(running.endpoints.aws).deploy(stacks, running.endpoints.providers)
    running.save(workspace)
    workspace.assembly.unlink(missing_ok=True)
    workspace.assembly.symlink_to(stacks)
    start_module(workspace, running, "pump", *aws, "--log", str(workspace.log("ministack")))
    _await(workspace, running, "providers", lambda: answers(f"{running.endpoints.providers}/health"))
    # Until the pump takes over the event source mappings, the emulator itself reads the fax queue, and
    # processes its message groups one after another.
    _await(workspace, running, "pump", lambda: DRIVING in workspace.tail("pump"))
    _write_environment(workspace, running)
    if running.console_port is not None:
        options = ("--stage", STAGE, "--no-browser", "--port", str(running.console_port))
        start_module(workspace, running, "console", *options, variables=running.variables())
        _await(workspace, running, "console", lambda: printed_url(workspace, "console") is not None)
    if running.sign_in:
        install_locked(SIGN_IN_BIN.parent, PACKAGE / "sign_in" / "requirements.txt")
        ports = ("--ports", str(workspace.sign_in_ports))
        start_module(workspace, running, "sign-in", *ports, variables=running.variables())
        _await(workspace, running, "sign-in", lambda: printed_url(workspace, "sign-in") is not None)


def update(workspace: Workspace, running: State, announce: Announce) -> bool:
    """Deploy the current settings and code to a running stage, which keeps its messages, and restart the
    processes that have other settings or code or have ended. Return whether there was a difference.

    Raises StartError for an invalid setting, and for a change that would remove a table, queue, bucket or
    secret, before anything is changed. Raises StartError or DeployError if the update fails. The next update
    completes it."""
    announce("synthesizing the stacks")
    stacks = synthesize()
    if stacks == workspace.assembly.resolve() and all(
        _is_current(running, name) for name in running.renewable
    ):
        return False
    announce("comparing them with the stage")
    compared = compare(stacks, **running.variables())
    if compared.returncode:
        raise StartError(f"The stacks could not be compared with the stage:\n{compared.stdout}")
    if sentences := [str(loss) for loss in losses(compared.stdout)]:
        raise StartError("\n".join([*sentences, f"Nothing was changed. {ANEW}"]))
    _deploy(workspace, running, stacks, announce)
    return True


def _is_current(running: State, name: str) -> bool:
    return running.fingerprints.get(name) == _fingerprint(name) and running.processes[name].alive()


def _fingerprint(name: str) -> str:
    """Return the fingerprint of the settings and code with which a process would start now. The pump uses
    only one package. After a restart it delivers each stream from its beginning, so only a change of that
    package restarts it."""
    local, ops = PACKAGE, PACKAGE.with_name("mailroom_ops")
    everything = (local, ops, STACKS, LIBRARY / "mailroom", CDK_JSON, CHANNELS)
    return fingerprint((local,) if name == "pump" else everything)


def published(running: State) -> list[str]:
    """Return the templates whose published version overrides the file in templates/."""
    bucket = running.outputs.get("TemplatesBucketName")
    return EmulatorDeployment(running.endpoints.aws).published(bucket) if bucket else []


def _write_environment(workspace: Workspace, running: State) -> None:
    """Write the file that users source in their shells. It contains the emulator's key, the key that
    verifies webhooks to this machine, and the database's password."""
    deployment = EmulatorDeployment(running.endpoints.aws)
    variables = {
        **running.variables(),
        "MAILROOM_WEBHOOK_KEY": deployment.webhook_key(LOOPBACK),
        "MAILROOM_DATABASE": deployment.database_url(DATABASE_SECRET),
    }
    exports = [f"export {name}={value}\n" for name, value in variables.items()]
    # With this folder in PATH, the shell finds the command `mailroom`.
    exports.append(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
    workspace.environment.touch(mode=0o600)
    workspace.environment.chmod(0o600)
    workspace.environment.write_text("".join(exports))


def printed_url(workspace: Workspace, console: str) -> str | None:
    """Return the URL of a console, which is a line of its log, or None if it has not started."""
    log = workspace.log(console)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next((line for line in lines if line.startswith("http://")), None)


def synthesize() -> Path:
    """Return the assembly of the local stage. Raises StartError."""
    return assembly({"stage": STAGE, "providers": PROVIDERS}, synthesize=_run_app)


def _run_app(context: Mapping[str, object], output: str, _campaigns: Path) -> None:
    # The CDK's validation of the templates is turned off: it takes five seconds of CPU time, and cfn-lint and
    # checkov check the templates as well.
    answer = run_app(context, output, quiet=True, CDK_VALIDATION="false")
    if answer.returncode != 0:
        raise StartError(
            f"The stacks of stage local could not be synthesized:\n{answer.stdout}{answer.stderr}"
        )


def stop(workspace: Workspace) -> bool:
    """End all processes that this workspace started, also after a crash. Return whether any was running."""
    state = load_state(workspace)
    stopped = [process.stop() for process in reversed(list(state.processes.values()))] if state else []
    for path in (workspace.state, workspace.environment, workspace.memory):
        path.unlink(missing_ok=True)
    shutil.rmtree(workspace.database, ignore_errors=True)
    _remove(workspace.scratch)
    return any(stopped)


def _remove(folder: Path) -> None:
    """Rename the folder, so that the next start has an empty one, and remove it in the background: a busy
    disk needs many seconds for the 20,000 files of the functions' code."""
    renamed = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
    with suppress(FileNotFoundError):
        folder.rename(renamed)
        # The shell ends at once. `rm` continues in the background, and this process need not wait for it.
        command = ["/bin/sh", "-c", 'rm -rf "$1" &', "sh", str(renamed)]
        subprocess.run(command, start_new_session=True, check=True)


def start_module(
    workspace: Workspace,
    running: State,
    name: str,
    *options: str,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Start one of MODULES, which `stop` ends with the other processes, unless it runs with the current
    settings and code. If it runs with others, it is ended first. Raises StartError if data would be lost."""
    if _is_current(running, name):
        return
    if name in running.processes:
        running.processes[name].stop()
        if name == "providers" and not workspace.memory.exists():
            raise StartError(f"The simulators ended without storing messages. {ANEW}\n{workspace.tail(name)}")
    command = [sys.executable, "-m", *MODULES[name].split(), *options]
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environment = inherited | NO_PROXY | dict(variables or {})
    running.processes[name] = processes.start(command, MODULES[name], workspace.log(name), environment)
    running.fingerprints[name] = _fingerprint(name)
    running.save(workspace)


def _await(workspace: Workspace, running: State, name: str, up: Callable[[], bool]) -> None:
    process = running.processes[name]
    if not wait_until(lambda: up() or not process.alive(), START_SECONDS) or not up():
        raise StartError(
            f"{MODULES[name]} did not start. The end of {workspace.log(name)}:\n{workspace.tail(name)}\n"
            "If the error is in your code, correct it. Then try again: a new stage chooses free ports."
        )
