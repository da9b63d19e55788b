"""Work that takes longer than a request: it runs in a thread, and pages show its progress."""

import threading
from collections.abc import Callable, Sequence

from mailroom_ops.shared.refusals import aws_fault_types, sentences_of


class Job:
    """Work in a thread. A page shows the job's attributes during the work, and after its end."""

    sentences: Sequence[str] = ()
    """Sentences about the error that ended the work; empty without an error."""
    stopping = False
    """Whether the work is asked to end soon."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    @property
    def running(self) -> bool:
        """Whether the work has not ended yet."""
        return self._thread.is_alive()

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the end of the work, at most for a number of seconds."""
        self._thread.join(seconds)

    def begin(self, work: Callable[[], None]) -> None:
        """Start the work in a thread. If an error of AWS ends it, `sentences` describe the error."""

        def run() -> None:
            try:
                work()
            except aws_fault_types() as error:
                self.sentences = sentences_of(error, self.stage) + self.remains()
            except Exception:
                self.sentences = ["It ended with an error of the console; see its terminal.", *self.remains()]
                raise

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def remains(self) -> list[str]:
        """Return sentences about the state of the work after an error."""
        return []
