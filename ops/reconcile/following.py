"""Who follows a run of `reconcile`: an operator at a terminal, a program, a test."""

from ops.reconcile.report import Answer
from ops.steps import Steps


class Following(Steps):
    """Hears what a run does, and may end it. This one says nothing, and lets all be put back."""

    def waits(self, unknown: int, seconds: float) -> None:
        """So many are unknown to the ledger at the first look; the second one follows after these seconds."""

    def found(self, answer: Answer) -> None:
        """How all stands; nothing is put back yet."""

    def allow(self, answer: Answer) -> None:
        """Something would be put back now. Whatever this raises ends the run before that."""
