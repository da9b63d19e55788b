"""Who follows a run of `resend`: an operator at a terminal, a program, a test."""

from collections.abc import Sequence

from ops.resend.resent import Resent
from ops.steps import Steps


class Following(Steps):
    """Hears what a run does, and may end it. This one says nothing, and lets all be sent again."""

    def looked(self, messages: Sequence[Resent]) -> None:
        """What each is; nothing is sent yet."""

    def allow(self, ready: Sequence[Resent]) -> None:
        """These would be sent again now. Whatever this raises ends the run before that."""
