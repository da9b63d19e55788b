"""Runs checks beside each other, each in bounded time."""

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as Unconnected

from ops.doctor.look import Look
from ops.doctor.refusals import verdict_of
from ops.doctor.verdict import Check, Checked, Verdict, failed, skipped, warning

SECONDS = 60.0
"""What all of them may take together; each call has bounds of its own, far below."""


@dataclass
class Ran:
    """What came of the checks, in their order; and the tracebacks of those that are broken themselves."""

    checked: list[Checked] = field(default_factory=list)
    tracebacks: dict[str, str] = field(default_factory=dict)


Answers = SimpleQueue[tuple[int, list[Verdict], str]]


def run(
    look: Look,
    checks: Sequence[Check],
    ended: Callable[[Check], None] = lambda _: None,
    seconds: float = SECONDS,
) -> Ran:
    """Run all of them; `ended` is told of each. A check that raises is a verdict, never an error."""
    answers: Answers = SimpleQueue()
    for number, check in enumerate(checks):
        # Daemons: one that hangs must not keep the command from ending.
        threading.Thread(target=_one, args=(look, number, check, answers), daemon=True).start()
    ran, verdicts = Ran(), dict[int, list[Verdict]]()
    for number, found, trace in _until(answers, len(checks), seconds):
        verdicts[number] = found
        if trace:
            ran.tracebacks[checks[number].name] = trace
        ended(checks[number])
    late = [warning(f"Could not look: no answer within {seconds:.0f} s.", "Run it again.")]
    for number, check in enumerate(checks):
        for each in verdicts.get(number, late):
            ran.checked.append(Checked(check.subject, check.name, each.state, each.sentence, each.fix))
    return ran


def _until(answers: Answers, count: int, seconds: float) -> Iterator[tuple[int, list[Verdict], str]]:
    deadline = time.monotonic() + seconds
    for _ in range(count):
        try:
            yield answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            return


def _one(look: Look, number: int, check: Check, answers: Answers) -> None:
    found: list[Verdict] = []
    trace = ""
    try:
        found.extend(check.run(look))
        found = found or [skipped("There was nothing to look at.")]
    except (ClientError, HTTPClientError, Unconnected) as error:
        found.append(verdict_of(look, error))
    except Exception as error:  # noqa: BLE001 - the command shows it with --debug, and fails
        trace = traceback.format_exc()
        found.append(
            failed(
                f"The check itself is broken: {type(error).__name__}.", "Run it with --debug, and report it."
            )
        )
    answers.put((number, found, trace))
