"""Folder of a running local stage, and the state in it that commands share."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mailroom_local.aws import STAGE, Endpoints
from mailroom_local.processes import Process
from mailroom_stacks.paths import DOT_LOCAL

EMULATOR_BIN = DOT_LOCAL / "ministack" / "bin"
SIGN_IN_BIN = DOT_LOCAL / "sign-in" / "bin"
TAIL_LINES = 20
MAILBOX = f"mailroom-{STAGE}-mailbox"
LEDGER = f"mailroom-{STAGE}-ledger"
RENEWABLE = {"providers", "pump", "console", "sign-in"}
"""Processes that can be restarted. The others have the stage's data in memory."""
EXPORTED = {
    "MAILROOM_API": "ApiUrl",
    "MAILROOM_AUDIENCE_QUEUE": "AudienceQueueUrl",
    "MAILROOM_COLLECT_QUEUE": "CollectQueueUrl",
    "MAILROOM_PREFERENCES": "PreferencesTableName",
    "MAILROOM_RUNS": "RunsTableName",
    "MAILROOM_FAX_QUEUE": "FaxQueueUrl",
    "MAILROOM_PAYLOADS": "PayloadBucketName",
    "MAILROOM_SUPPRESSIONS": "SuppressionsTableName",
    "MAILROOM_FEEDBACK_TOPIC": "FeedbackTopicArn",
}
"""Outputs of the stacks that `.local/env` exports, by the name of the variable."""


class Workspace:
    """Folder of one running stage. The demo, chaos runs and the bench use other folders than `mailroom up`,
    so that they do not disturb its stage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state.json"  # process ids and ports of the running stage
        self.ports = folder / "ports.json"  # ports of the last start, which the next start uses again
        self.sign_in_ports = folder / "sign-in-ports.json"  # those of the console behind the sign-in
        self.environment = folder / "env"  # shell `export` lines for a user's own commands
        self.assembly = folder / "assembly"  # a link to the cloud assembly that was deployed
        self.scratch = folder / "tmp"  # the emulator's temporary files, with the code of every function
        self.database = folder / "postgres"  # the data of the campaigns' database
        self.memory = folder / "simulators"  # the simulators' data, while their process is restarted

    def log(self, process: str) -> Path:
        return self.folder / f"{process}.log"

    def tail(self, process: str) -> str:
        """Return the last lines of a process's log, for an error message."""
        path = self.log(process)
        if not path.exists():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-TAIL_LINES:])


UP = Workspace(DOT_LOCAL)


@dataclass
class State:
    """State of a running local stage."""

    endpoints: Endpoints
    processes: dict[str, Process] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    """Hash of the code and settings with which each process was started."""
    console_port: int | None = None
    """Port of the console; None for a stage without a console."""
    sign_in: bool = False
    """Whether the stage has a console behind a sign-in."""

    def save(self, workspace: Workspace) -> None:
        """Write the state to the workspace. This is done after each step, so that `down` finds all processes
        even after a crash."""
        workspace.folder.mkdir(parents=True, exist_ok=True)
        workspace.state.write_bytes(msgspec.json.encode(self))

    @property
    def renewable(self) -> set[str]:
        """Processes that the stage has and that can be restarted."""
        return RENEWABLE if self.sign_in else RENEWABLE - {"sign-in"}

    @property
    def running(self) -> bool:
        """Whether every process that cannot be restarted is alive."""
        return all(self.processes[name].alive() for name in self.processes.keys() - RENEWABLE)

    def variables(self) -> dict[str, str]:
        """Return the variables that `.local/env` exports."""
        exported = {name: self.outputs[output] for name, output in EXPORTED.items() if output in self.outputs}
        return self.endpoints.variables() | {
            "MAILROOM_STAGE": STAGE,
            "MAILROOM_PROVIDERS": self.endpoints.providers,
            "MAILROOM_INBOX": self.endpoints.inbox,
            "MAILROOM_MAILBOX": MAILBOX,
            "MAILROOM_LEDGER": LEDGER,
            **exported,
        }


def load_state(workspace: Workspace) -> State | None:
    """Return the state of this workspace, or None if the stage was not started or the file is damaged."""
    try:
        return msgspec.json.decode(workspace.state.read_bytes(), type=State)
    except (OSError, ValueError):  # msgspec's decoding errors are ValueErrors
        return None
