"""What events leave in an item, and what a resend has to take away again."""

from mailroom.ledger.items import PROVIDER_FACTS
from tests.support import ROOT, bodies
from tests.support.unit.feedback_words import events

FIXTURES = sorted((ROOT / "tests" / "support" / "unit" / "events_of_ses").glob("*.json"))


def test_a_resend_forgets_every_fact_that_an_event_may_have_told() -> None:
    told = [each.read_text() for each in FIXTURES]
    statuses = ("sent", "delivered", "read", "undelivered")
    told += [bodies.twilio(each, "s-1", ErrorCode="30003", RawDlrDoneDate="2611210900") for each in statuses]
    facts = {name for body in told for event in events(body, "US") for name in event.facts}
    assert len(facts) > 12
    assert facts <= {*PROVIDER_FACTS}
