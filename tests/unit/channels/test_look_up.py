"""Proofs of a provider's list: a machine alters any field of an entry that a provider may alter.

The requested message is in the list, and its entry is altered. A look-up may find it, or report that it
cannot know, or fail. If it answered that the message was never sent, the message would be sent twice.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom.channels.sms.contract import SmsRequest
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Evidence, NotFound, Sent
from mailroom.providers.look_up import Entry, is_masked, is_other_number, search
from mailroom.providers.signalwire import sender as signalwire
from mailroom.providers.telnyx import sender as telnyx
from mailroom.providers.twilio import sender as twilio
from tests.support.unit.shared import NOW

TO, OTHER = "+16175551234", "+16175559876"
TEXT = "Your code is 4711"
REFERENCE = "Zi0x.2"
Judge = Callable[[Iterable[Entry]], Evidence]

MESSAGES: dict[str, tuple[Entry, Judge]] = {
    "twilio": (
        {
            "sid": "SM1",
            "to": TO,
            "from": "+12025550123",
            "body": TEXT,
            "direction": "outbound-api",
            "status": "delivered",
            "date_created": "Sat, 21 Nov 2026 09:00:00 +0000",
        },
        lambda entries: twilio.evidence(SmsRequest(TO, TEXT, (), "ref"), entries, NOW, ("SM9",)),
    ),
    "signalwire": (
        {
            "sid": "F1",
            "to": TO,
            "from": "+12025550123",
            "direction": "outbound",
            "status": "delivered",
            "date_created": "2026-11-21T09:00:00Z",
        },
        lambda entries: signalwire.evidence(TO, entries, NOW, ("F9",)),
    ),
    "telnyx": (
        {
            "id": "T1",
            "to": TO,
            "from": "+12025550123",
            "direction": "outbound",
            "status": "delivered",
            "created_at": "2026-11-21T09:00:00Z",
            "client_state": telnyx._state(REFERENCE),
        },
        lambda entries: telnyx.evidence(TO, REFERENCE, entries, NOW, ("T9",)),
    ),
}


def looked_up(entries: list[Entry], judge: Judge) -> Evidence:
    """Look a message up as at a provider that filters by the numbers that it lists."""
    return search([entry for entry in entries if entry.get("to") == TO], iter([entries]), judge)


def masked(value: str) -> st.SearchStrategy[object]:
    """Return values with a part of at least two characters replaced by a mask, or by zeros at the end."""
    parts = st.tuples(st.integers(0, len(value) - 2), st.integers(2, len(value)))
    marks = st.sampled_from("Xx*#•█_")
    covered = st.builds(
        lambda part, mark: (
            value[: part[0]] + mark * len(value[part[0] : part[0] + part[1]]) + value[part[0] + part[1] :]
        ),
        parts,
        marks,
    )
    replaced = st.builds(lambda part: f"{value[: part[0]]}[redacted]{value[part[0] + part[1] :]}", parts)
    return st.one_of(covered, replaced)


def zeroed(number: str) -> st.SearchStrategy[object]:
    return st.integers(1, len(number) - 2).map(lambda count: number[:-count] + "0" * count)


def cut(value: str) -> st.SearchStrategy[object]:
    """Return the beginning or the end of a value, perhaps with an ellipsis."""
    places = st.integers(0, len(value))
    return st.one_of(
        places.map(lambda at: value[:at]),
        places.map(lambda at: value[at:]),
        places.map(lambda at: f"{value[:at]}..."),
        places.map(lambda at: f"{value[:at]}…"),
    )


MISSING: st.SearchStrategy[object] = st.sampled_from([..., None, "", 0, [], {}])
"""Values of a field that is missing; `...` removes the field."""
REFORMATTED = {
    "to": st.sampled_from(
        [
            TO[1:],
            TO[2:],
            f"00{TO[1:]}",
            f"rcs:{TO}",
            f"+{TO[2:]}",
            "+1 617 555 1234",
            "(617) 555-1234",
            f" {TO}",
        ]
    ),
    "body": st.sampled_from(
        [
            f" {TEXT}\r\n",
            f"{TEXT} Reply STOP to opt out",
            f"[Shop] {TEXT}",
            f"Sent from your Twilio trial account - {TEXT}",
        ]
    ),
}
TIMES = {"date_created", "created_at"}
UNALTERED = {"sid", "id", "direction", "status", "from"}
"""Fields that may only be missing. Look-ups rely on them, or do not read them."""


def altered(name: str, value: str) -> st.SearchStrategy[object]:
    if name in TIMES:
        # A time may be cut or missing; another whole time is that of another message.
        return st.one_of(MISSING, st.integers(0, len(value)).map(lambda at: value[:at]), masked(value))
    if name in UNALTERED:
        return MISSING
    several = [MISSING, masked(value), cut(value)]
    if name == "to":
        several.append(zeroed(value))
    return st.one_of(*several, *([REFORMATTED[name]] if name in REFORMATTED else []))


ALTERED = [
    (provider, name) for provider, (entry, _) in MESSAGES.items() for name in sorted({*entry} - UNALTERED)
]


@pytest.mark.parametrize(("provider", "name"), ALTERED)
@given(data=st.data())
def test_a_listed_message_with_altered_fields_never_proves_that_the_message_was_not_sent(
    provider: str, name: str, data: st.DataObject
) -> None:
    entry, judge = MESSAGES[provider]
    names = {name} | data.draw(st.sets(st.sampled_from(sorted({*entry} - {"sid", "id"})), max_size=2))
    changes = {each: data.draw(altered(each, entry[each]), label=each) for each in sorted(names)}
    listed = {each: value for each, value in (entry | changes).items() if value is not ...}
    others = data.draw(st.lists(st.just(entry | {"sid": "SM9", "id": "T9", "to": OTHER}), max_size=1))
    try:
        evidence = looked_up([*others, listed], judge)
    except OutcomeUnknown:
        return
    assert not isinstance(evidence, NotFound)
    if isinstance(evidence, Sent):
        assert "client_state" in entry or listed["to"] == TO


@pytest.mark.parametrize("provider", MESSAGES)
@pytest.mark.parametrize("value", [..., None, "", 0])
def test_a_listed_message_without_an_id_makes_the_look_up_fail(provider: str, value: object) -> None:
    entry, judge = MESSAGES[provider]
    name = "id" if provider == "telnyx" else "sid"
    listed = {each: content for each, content in (entry | {name: value}).items() if content is not ...}
    with pytest.raises(OutcomeUnknown):
        looked_up([listed], judge)


NOT_OURS: list[tuple[str, dict[str, Any]]] = [
    *((provider, {"to": OTHER}) for provider in MESSAGES),
    *((provider, {"direction": "inbound"}) for provider in ("twilio", "signalwire")),
    ("twilio", {"body": "Your code is 4712"}),
    ("twilio", {"date_created": "Sat, 21 Nov 2026 08:59:59 +0000"}),
    ("twilio", {"sid": "MM1"}),
    ("twilio", {"sid": "SM9"}),
    ("signalwire", {"date_created": "2026-11-21T08:59:59Z"}),
    ("signalwire", {"sid": "F9"}),
    ("telnyx", {"client_state": telnyx._state("Zi0x.1")}),
    ("telnyx", {"created_at": "2026-11-21T08:59:59Z"}),
    ("telnyx", {"id": "T9"}),
]


@pytest.mark.parametrize(("provider", "changes"), NOT_OURS)
def test_a_look_up_that_lists_only_another_message_proves_that_the_message_was_not_sent(
    provider: str, changes: dict[str, Any]
) -> None:
    entry, judge = MESSAGES[provider]
    if "to" in changes and "client_state" in entry:
        changes = changes | {"client_state": None}
    assert looked_up([entry | changes], judge) == NotFound()


def test_a_recipient_of_another_service_or_a_short_code_is_not_taken_for_a_masked_number() -> None:
    for listed in ("whatsapp:+15555550100", "messenger:123456", "sip:ada@example.com"):
        assert is_other_number(listed, "+15555550100")
    assert not is_other_number("rcs:+15555550100", "+15555550100")
    assert not any(map(is_masked, ("72345", "911", "+15555550100", "whatsapp:+15555550100")))
    assert all(map(is_masked, ("", "+1", None, "+1617555XXXX", "****", "12")))


@given(st.from_regex(r"\+[1-9][0-9]{7,14}", fullmatch=True))
def test_a_complete_number_is_not_taken_for_a_masked_number(number: str) -> None:
    assert not is_masked(number)
    assert not is_other_number(number, number)
