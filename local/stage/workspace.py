"""Where a running local stage keeps its state, its logs and what was synthesized for it."""

from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOT_LOCAL = REPOSITORY / ".local"
EMULATOR_BIN = DOT_LOCAL / "ministack" / "bin"
TAIL_LINES = 20


@dataclass(frozen=True)
class Workspace:
    """One folder for each running stage, so that a demo never disturbs what `make up` left running."""

    folder: Path

    @property
    def state(self) -> Path:
        """Process ids and ports of what runs."""
        return self.folder / "state.json"

    @property
    def environment(self) -> Path:
        """Shell `export` lines for a user's own commands."""
        return self.folder / "env"

    @property
    def assembly(self) -> Path:
        """A link to the cloud assembly that was deployed."""
        return self.folder / "assembly"

    @property
    def scratch(self) -> Path:
        """Temporary files of the emulator: it unpacks every function's code here."""
        return self.folder / "tmp"

    @property
    def database(self) -> Path:
        """The data of the database that campaigns ask."""
        return self.folder / "postgres"

    def log(self, process: str) -> Path:
        """The log of one background process."""
        return self.folder / f"{process}.log"

    def tail(self, process: str) -> str:
        """The last lines of a process's log, for an error message."""
        path = self.log(process)
        if not path.exists():
            return ""
        return "\n".join(path.read_text(errors="replace").splitlines()[-TAIL_LINES:])


UP = Workspace(DOT_LOCAL)
DEMO = Workspace(DOT_LOCAL / "demo")
