"""The examination of what lies in dead-letter queues."""

from mailroom_stacks.settings.sections import Function, fixed


class DeadLetters(Function):
    """The function that looks at what lies in dead-letter queues."""

    timeout_seconds: int = fixed(300)
    """Ten seconds of the time-out are kept for putting dead letters back."""
    every_minutes: int = fixed(60)
    """The function looks when an alarm begins, and every so many minutes: an alarm that rings already says
    nothing of further dead letters. Longer than the time-out: two passes would hide dead letters from each
    other."""
