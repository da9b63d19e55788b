"""Check what the providers reported later: events, callbacks, and the suppression list that follows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
        failures=[
            *_outstanding(events),
            *(
                f"{count} of Twilio's callbacks were answered {answer} instead of {ACKNOWLEDGED}."
                for answer, count in answers.items()
                if answer != str(ACKNOWLEDGED)
            ),
            *_unlisted(listed, expected),
            *(
                f"{recipient} ({channel}) should not be on the suppression list for "
                f"{listed[recipient, channel]}."
                for recipient, channel in listed.keys() - expected.keys()
            ),
        ],
    )


def _outstanding(events: Mapping[str, Any]) -> Iterable[str]:
    for provider, waiting in events["waiting"].items():
        if waiting:
            yield f"{waiting} reports of {provider} are still to come."
    if not events["ses"]["published"]:
        yield "SES published no events."


def _unlisted(listed: Mapping[Recipient, str], expected: Mapping[Recipient, str]) -> Iterable[str]:
    for (recipient, channel), reason in expected.items():
        found = listed.get((recipient, channel))
        if found != reason:
            yield f"{recipient} ({channel}) should be on the suppression list for {reason}, not {found}."
