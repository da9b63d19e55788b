"""Work that takes longer than a page: in a thread of its own, which pages ask how far it is."""

import threading
from collections.abc import Callable, Sequence

from mailroom_ops.shared.screen import aws_fault_types, sentences_of


class Job:
    """Work of one kind. A page shows its attributes while it runs, and after its end."""

    sentences: Sequence[str] = ()
    """Sentences about the fault that has ended it; empty without a fault."""
    stopping = False
    """Whether it should end soon."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Return when it is over."""
        self._thread.join()

    def begin(self, work: Callable[[], None]) -> None:
        """Do it. A fault of AWS's ends it with sentences."""

        def run() -> None:
            try:
                work()
            except aws_fault_types() as error:
                self.sentences = sentences_of(error, self.stage) + self.remains()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def remains(self) -> list[str]:
        """What is to be known after a fault."""
        return []
