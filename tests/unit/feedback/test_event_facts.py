"""Facts that events add to a ledger item, and that a resend removes."""

from typing import Any

from mailroom.ledger.items import PROVIDER_FACTS
from tests.support import ROOT, bodies
from tests.support.unit.feedback_words import events

FIXTURES = sorted((ROOT / "tests" / "support" / "unit" / "events_of_ses").glob("*.json"))


def test_the_list_of_facts_that_a_resend_clears_contains_every_fact_that_an_event_can_add() -> None:
    details: dict[str, Any] = {"ErrorCode": "30003", "RawDlrDoneDate": "2611210900"}
    statuses = ("sent", "delivered", "read", "undelivered")
    records = [fixture.read_text() for fixture in FIXTURES]
    records += [bodies.twilio_callback(status, "s-1", **details) for status in statuses]
    facts = {name for record in records for event in events(record, "US") for name in event.facts}
    assert len(facts) > 12
    assert facts <= {*PROVIDER_FACTS}
