"""What comes back from providers; and what became of nothing at all."""

from pydantic import Field

from stacks.settings.sections import Function, QueueWorker


class Feedback(QueueWorker):
    """The feedback queue and its function. What one message caused comes close together, and one invocation
    that has it all writes less."""

    batch_size: int = Field(default=100, ge=1, le=10_000)
    """How many events an invocation gets at most; fewer where they are over Lambda's 6 MB together."""
    batch_window_seconds: int = Field(default=2, ge=0, le=300)
    """How long the first of a batch may wait for the others."""
    maximum_concurrency: int = Field(default=10, ge=2, le=1000)


class DeadLetters(Function):
    """The function that looks at what lies in dead-letter queues."""

    timeout_seconds: int = Field(default=300, ge=30, le=900)
    """Of it ten seconds are kept back for putting letters back."""
    every_minutes: int = Field(default=60, ge=1, le=1_440)
    """It looks when an alarm begins, and every so many minutes, for an alarm that rings already says nothing
    of further letters."""
