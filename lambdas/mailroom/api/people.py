"""People in the HTTP API: returns what a recipient has opted out of, and changes it. A response never has
the text of an error or the id of a message, and is the same for an unknown recipient as for a recipient
without choices."""

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from mailroom.api.answers import JSON, ApiError, Response, response
from mailroom.api.callers import over_a_day
from mailroom.api.requests import body_of
from mailroom.aws import clients
from mailroom.budget import Budget
from mailroom.clock import Clock, iso
from mailroom.environment import MessagesApiSettings
from mailroom.errors import can_be_key
from mailroom.message.address import bare, forms_of, to_e164
from mailroom.message.message import explain
from mailroom.recipients.choices import Preferences, Reason, Suppressions, TopicChoice
from mailroom.telemetry import logger

MAX_TOPICS = 100
"""Maximum number of topics in a request. Each is a write."""
_DEAD = {"why": "undeliverable", "ends": "when an operator lifts it, after the address works again"}
_WHY: Mapping[Reason, Mapping[str, str]] = {
    "bounce": _DEAD,
    "gone": _DEAD,
    "complaint": {"why": "asked_to_stop", "ends": "never by this API, because the person complained"},
    "stop": {
        "why": "asked_to_stop",
        "ends": "when the person texts START; until then, carriers refuse messages",
    },
    "operator": {"why": "operator", "ends": "when an operator lifts it"},
}
"""Reason in a response, and how it ends, by the reason of a suppression."""
_NUMBER = re.compile(r"[+\d\s().\-/]+")
_NOT_THIS = (
    "is not the time of the opt-out that is valid now; read it by GET /people, and ask the person again"
)


class Out(Struct, tag_field="state", tag="out", forbid_unknown_fields=True):
    """Opt-out of a topic, which is never refused."""


class In(Struct, tag_field="state", tag="in", forbid_unknown_fields=True):
    """End of an opt-out, at the person's request."""

    at: Annotated[
        datetime, Meta(tz=True, description="time of the opt-out that it ends, as in `GET /people`")
    ]
    evidence: Annotated[
        str,
        Meta(min_length=1, max_length=300, description="where and when the person asked for it; is stored"),
    ]

    @property
    def time_ms(self) -> int:
        """Time of the opt-out in epoch milliseconds."""
        return round(self.at.timestamp() * 1000)

    def is_in(self, choice: TopicChoice | None) -> bool:
        """Return whether the latest choice is the end of this opt-out."""
        return choice is not None and not choice.out and choice.ended_at == self.time_ms


class People(Struct, frozen=True):
    """Reads and changes the choices of recipients."""

    preferences: Preferences
    suppressions: Suppressions
    titles: Mapping[str, Mapping[str, str]]
    """Titles by language, by the stage's topics."""
    budget: Callable[[str], Budget]
    """Function that returns the daily budget of look-ups for the name of a caller."""
    region: str = ""
    clock: Clock = time.time

    def look_up(self, query: Mapping[str, str], caller: str) -> Response:
        """Return the response with the recipient's choices of all topics, and the reason of each
        suppression. Raises ApiError 422 for an invalid recipient, and 429 after the caller's last
        look-up of the day."""
        recipient, budget = self._recipient(query), self.budget(caller)
        if not budget.ask(1, whole=True).recipients:
            sentence = "the caller may look up {} more people today"
            raise over_a_day(budget, 1, sentence, self.clock)
        logger.info("a person was looked up", caller=caller)
        choices = self.preferences.choices(recipient)
        topics = {topic: choices.get(topic) for topic in self.titles}
        topics |= {topic: choice for topic, choice in sorted(choices.items()) if choice.out}
        stopped = [
            {"channel": entry.channel, "at": iso(entry.at / 1000), **_WHY[entry.reason]}
            for entry in self.suppressions.entries(recipient)
        ]
        return self._answer(recipient, topics, stopped=stopped)

    def change(self, event: Mapping[str, Any], query: Mapping[str, str], caller: str) -> Response:
        """Store the changes of a request, and return the response with the recipient's choices of its topics.
        Repeating a request is harmless. Raises ApiError: 409 for an opt-in that does not name the opt-out
        that is valid now, after the other changes were stored, and 422 for invalid fields."""
        recipient, changes = self._recipient(query), self._changes(body_of(event))
        for topic, change in changes.items():
            if isinstance(change, In):
                texts = {"actor": caller, "evidence": change.evidence}
                self.preferences.opt_in(recipient, topic, "api", change.time_ms, **texts)
            else:
                self.preferences.opt_out(recipient, topic, "api", caller)
        choices = self.preferences.choices(recipient)
        ends = {topic: change for topic, change in changes.items() if isinstance(change, In)}
        fields = [f"topics.{topic}.at" for topic in ends if not ends[topic].is_in(choices.get(topic))]
        if fields:
            errors = [(field, _NOT_THIS) for field in fields]
            raise ApiError(HTTPStatus.CONFLICT, f"{fields[0]}: {_NOT_THIS}", errors)
        return self._answer(recipient, {topic: choices.get(topic) for topic in changes})

    def _recipient(self, query: Mapping[str, str]) -> str:
        """Return the recipient in the canonical form. Raises ApiError 422."""
        typed = query.get("recipient", "")
        if not typed.strip() or not can_be_key(typed):
            raise ApiError.of_field("recipient", "is missing or too long; use an address or a number")
        recipient = forms_of(typed, self.region)[0]
        try:
            if "@" in recipient:
                bare(recipient)
            elif _NUMBER.fullmatch(recipient):
                to_e164(recipient, self.region or None)
        except ValueError as fault:
            raise ApiError.of_field("recipient", str(fault)) from None
        return recipient

    def _changes(self, body: Mapping[str, Any]) -> dict[str, In | Out]:
        """Return the changes of a request's body, by topic. Raises ApiError 422."""
        topics = body.get("topics")
        if not isinstance(topics, dict) or not 1 <= len(topics) <= MAX_TOPICS or len(body) > 1:
            raise ApiError.of_field("topics", f"is not alone, or no object of 1 to {MAX_TOPICS} topics")
        for topic in topics:
            if topic not in self.titles:
                problem = "is not a topic of the stage; add it to the setting api.unsubscribe.topics"
                raise ApiError.of_field(f"topics.{topic}", problem)
        return {topic: _change(f"topics.{topic}", entry) for topic, entry in topics.items()}

    def _answer(self, recipient: str, choices: Mapping[str, TopicChoice | None], **further: Any) -> Response:
        topics = [
            {
                "topic": topic,
                "titles": self.titles.get(topic, {}),
                "state": "out" if choice and choice.out else "in",
                **({"at": iso(choice.at / 1000), "by": choice.by} if choice else {}),
            }
            for topic, choice in choices.items()
        ]
        body = {"recipient": recipient, "topics": topics, **further}
        return response(HTTPStatus.OK, JSON, msgspec.json.encode(body).decode())


def _change(field: str, entry: Any) -> In | Out:
    try:
        return msgspec.convert(entry, In | Out)
    except msgspec.ValidationError as error:
        fault = explain(error)
        place = field if fault.field == "item" else f"{field}.{fault.field}"
        raise ApiError.of_field(place, fault.problem) from None


def people_of(settings: MessagesApiSettings, clock: Clock) -> People | None:
    """Build the handler from the function's settings, or return None for a stage without the routes."""
    if not settings.preferences_table:
        return None
    client, per_day = clients.dynamodb(), [("0001-01-01", settings.people_per_day)]
    return People(
        Preferences(client, settings.preferences_table, clock),
        Suppressions(client, settings.suppressions_table, clock),
        msgspec.json.decode(Path(settings.topics_file).read_bytes()),
        lambda caller: Budget(client, settings.budgets_table, f"people#{caller}", per_day, clock=clock),
        settings.default_region,
        clock,
    )
