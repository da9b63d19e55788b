"""What the providers reported later: events, callbacks, and the suppression list that follows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Recipient = tuple[str, str]
"""A recipient on the suppression list, and its channel."""
ACKNOWLEDGED = 204


@dataclass(frozen=True)
class FeedbackCheck:
    """`events` counts what SES published, `doubled` the repeats among them; `callbacks` counts what Twilio
    posted, `answers` the statuses of the answers. `suppressed` counts recipients on the list, by reason."""

    events: int
    doubled: int
    by_type: dict[str, int]
    callbacks: int
    answers: dict[str, int]
    suppressed: dict[str, int]
    failures: list[str] = field(default_factory=list)


def check_feedback(
    events: Mapping[str, Any],
    callbacks: Sequence[Mapping[str, Any]],
    listed: Mapping[Recipient, str],
    expected: Mapping[Recipient, str],
) -> FeedbackCheck:
    """Compare. `listed` is the suppression list, `expected` what it must be: reasons by recipient."""
    ses, answers = events["ses"], Counter(str(each["answer"]) for each in callbacks)
    return FeedbackCheck(
        events=ses["published"],
        doubled=ses["doubled"],
        by_type=ses["by_type"],
        callbacks=len(callbacks),
        answers=dict(answers),
        suppressed=dict(Counter(listed.values())),
        failures=[*_failures(ses, answers), *_unlisted(listed, expected)],
    )


def _failures(ses: Mapping[str, Any], answers: Mapping[str, int]) -> Iterator[str]:
    if not ses["published"]:
        yield "SES published no events."
    for answer, count in answers.items():
        if answer != str(ACKNOWLEDGED):
            yield f"{count} of Twilio's callbacks were answered {answer} instead of {ACKNOWLEDGED}."


def _unlisted(listed: Mapping[Recipient, str], expected: Mapping[Recipient, str]) -> Iterator[str]:
    for recipient, channel in sorted(listed.keys() | expected.keys()):
        found, wanted = (each.get((recipient, channel)) for each in (listed, expected))
        if found != wanted:
            yield f"{recipient} ({channel}) should be on the suppression list for {wanted}, not {found}."
