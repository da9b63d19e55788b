"""Events of Resend: their meaning, and the recipients that they name."""

from typing import Any

import msgspec
import pytest

from mailroom.errors import Malformed
from mailroom.feedback.reader import read
from mailroom.message.message import Key, encode
from mailroom.message.outcome import Event
from tests.support.unit.post import Log
from tests.support.unit.resend_mail import EMAIL_ID, resend_event

AT = 1795251540000
BOUNCE = {"type": "Permanent", "subType": "General", "message": "550 no such user eve@example.com"}


def events(kind: str, **changes: Any) -> list[Any]:
    return read(encode({"source": "resend", "event": resend_event(kind, **changes)}), ())


def one(kind: str, **changes: Any) -> Event:
    (item,) = events(kind, **changes)
    assert isinstance(item, Event)
    return item


@pytest.mark.parametrize(
    ("kind", "data", "status", "facts", "suppress"),
    [
        ("email.sent", {}, "sent", {"sentAt": AT}, None),
        ("email.delivered", {}, "delivered", {"deliveredAt": AT}, None),
        ("email.delivery_delayed", {}, None, {"delayedAt": AT}, None),
        ("email.complained", {}, "complained", {"complainedAt": AT}, "complaint"),
        ("email.opened", {}, None, {"openedAt": AT}, None),
        ("email.clicked", {}, None, {"clickedAt": AT}, None),
        (
            "email.bounced",
            {"bounce": BOUNCE},
            "bounced",
            {
                "bouncedAt": AT,
                "bounce_type": "Permanent",
                "bounce_subtype": "General",
                "diagnostic_code": "550 no such user e***@example.com",
            },
            "bounce",
        ),
        (
            "email.bounced",
            {"bounce": {"type": "Transient", "subType": "MailboxFull", "message": ""}},
            "undelivered",
            {"undeliveredAt": AT, "bounce_type": "Transient", "bounce_subtype": "MailboxFull"},
            None,
        ),
        (
            "email.bounced",
            {"bounce": {"type": "Undetermined", "subType": "", "message": ""}},
            "bounced",
            {"bouncedAt": AT, "bounce_type": "Undetermined"},
            None,
        ),
        (
            "email.suppressed",
            {"suppressed": {"type": "bounce", "message": "it bounced before"}},
            "bounced",
            {"bouncedAt": AT, "bounce_type": "Suppressed", "bounce_subtype": "bounce"},
            "bounce",
        ),
        (
            "email.failed",
            {"failed": {"reason": "reached_daily_quota"}},
            "undelivered",
            {"undeliveredAt": AT, "error_code": "failed"},
            None,
        ),
    ],
)
def test_each_type_of_event_of_the_provider_resend_is_read_with_its_status_and_facts(
    kind: str, data: dict[str, Any], status: str | None, facts: dict[str, Any], suppress: str | None
) -> None:
    sent = one(kind, id_="order 7 / ä", attempt=3, **data)
    assert (sent.key, sent.attempt, sent.provider) == (Key("order 7 / ä", "mail"), 3, "resend")
    assert (sent.provider_id, sent.at, sent.kind) == (EMAIL_ID, AT, kind)
    assert (sent.status, sent.facts, sent.suppress) == (status, facts, suppress)


@pytest.mark.parametrize("kind", ["email.bounced", "email.complained", "email.delivered"])
def test_an_event_of_the_provider_resend_gives_a_mail_to_several_recipients_only_the_status_sent(
    kind: str,
) -> None:
    tags = {**resend_event()["data"]["tags"], "several": "true"}
    sent = one(kind, tags=tags, bounce=BOUNCE)
    assert (sent.status, sent.suppress, sent.several) == ("sent", None, True)


def test_an_event_of_the_provider_resend_about_another_programs_mail_is_logged_and_dropped(log: Log) -> None:
    assert events("email.delivered", tags={"category": "welcome"}) == []
    assert "not Mailroom's" in log()[-1]["message"]


def test_an_event_of_the_provider_resend_with_an_unknown_type_is_logged_and_dropped(log: Log) -> None:
    assert events("email.scheduled") == []
    assert log()[-1]["kind"] == "email.scheduled"


@pytest.mark.parametrize(
    "body",
    [
        {"source": "resend"},
        {"source": "resend", "event": {"type": 5}},
        {"source": "resend", "event": {**resend_event(), "created_at": "yesterday"}},
        {"source": "resend", "event": resend_event("email.bounced")},
    ],
)
def test_an_event_of_the_provider_resend_with_an_invalid_field_is_malformed(body: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read(msgspec.json.encode(body).decode(), ())
