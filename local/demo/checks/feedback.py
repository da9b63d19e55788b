"""What the providers told, and whether it was heard: pure, so that it can be tested."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Recipient = tuple[str, str]
"""A recipient on the suppression list, and its channel."""
HEARD = 204


@dataclass(frozen=True)
class FeedbackVerdict:
    """`events` are those that SES published, of which `doubled` repeat another; `callbacks` those that Twilio
    posted, `answers` how they were answered. `suppressed` counts recipients on the list, by reason."""

    events: int
    doubled: int
    by_type: dict[str, int]
    callbacks: int
    answers: dict[str, int]
    suppressed: dict[str, int]
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge_feedback(
    events: Mapping[str, Any],
    callbacks: Sequence[Mapping[str, Any]],
    listed: Mapping[Recipient, str],
    expected: Mapping[Recipient, str],
) -> FeedbackVerdict:
    """Compare; `listed` is the suppression list, `expected` what it must be: reasons by recipient."""
    ses, answers = events["ses"], Counter(str(each["answer"]) for each in callbacks)
    return FeedbackVerdict(
        events=ses["published"],
        doubled=ses["doubled"],
        by_type=ses["by_type"],
        callbacks=len(callbacks),
        answers=dict(answers),
        suppressed=dict(Counter(listed.values())),
        failures=[
            *_untold(events),
            *(
                f"{count} of Twilio's callbacks were answered {answer} instead of {HEARD}."
                for answer, count in answers.items()
                if answer != str(HEARD)
            ),
            *_unlisted(listed, expected),
            *(
                f"{recipient} ({channel}) is on the suppression list for {listed[recipient, channel]}: why?"
                for recipient, channel in listed.keys() - expected.keys()
            ),
        ],
    )


def _untold(events: Mapping[str, Any]) -> Iterable[str]:
    for provider, waiting in events["waiting"].items():
        if waiting:
            yield f"{waiting} messages of {provider} about what became of ours are still to come."
    if not events["ses"]["published"]:
        yield "SES published no events."


def _unlisted(listed: Mapping[Recipient, str], expected: Mapping[Recipient, str]) -> Iterable[str]:
    for (recipient, channel), reason in expected.items():
        found = listed.get((recipient, channel))
        if found != reason:
            yield f"{recipient} ({channel}) should be on the suppression list for {reason}, not {found}."
