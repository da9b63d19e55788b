"""`unless`: conditions that a message may have, and when they hold."""

from typing import Any, get_args

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid
from mailroom.message.message import Message, parse
from mailroom.message.outcome import SILENT, Status
from mailroom.message.unless import MAX_CONDITIONS, OUTCOME_UNKNOWN, WORDS, Condition
from tests.support.unit.shared import item

TEXT = {"id": "code-17", "event_type": "sms", "status": "delivered"}
LATER = "2026-11-21T09:00:00Z"


def message_unless(unless: Any, **changes: Any) -> Message:
    return parse(item(**{"send_at": LATER, "unless": unless, **changes}), CONTRACTS)


@pytest.mark.parametrize("unless", [TEXT, [TEXT]])
def test_the_attribute_unless_has_one_condition_or_a_list_of_conditions(unless: Any) -> None:
    assert message_unless(unless).conditions == (Condition(**TEXT),) or message_unless(unless).conditions == [
        Condition(**TEXT)
    ]


def test_a_condition_may_name_each_status_with_which_a_message_can_end() -> None:
    assert {*WORDS} == {*get_args(Status)} - {*SILENT, "retrying"} | {OUTCOME_UNKNOWN}


@pytest.mark.parametrize(
    ("unless", "changes", "fault"),
    [
        (TEXT, {"send_at": ...}, "unless: needs send_at"),
        ([TEXT] * (MAX_CONDITIONS + 1), {}, "unless: has 6 conditions; use at most 5"),
        ({**TEXT, "id": "m-1", "event_type": "mail"}, {}, "unless.id: is the id of this message"),
        ([TEXT, {**TEXT, "status": "deliverd"}], {}, "unless[1].status: 'deliverd' is not a valid status"),
        ({**TEXT, "status": []}, {}, "unless.status: is empty"),
        ({**TEXT, "status": "sending"}, {}, "unless.status: 'sending' is not a valid status"),
        ({**TEXT, "id": "x" * 181}, {}, "unless.id: is 181 bytes long"),
        ({**TEXT, "id": "a\nb"}, {}, "unless.id: holds control characters"),
        ({**TEXT, "event_type": "x" * 181}, {}, "unless.event_type: is 181 bytes long"),
        ({**TEXT, "status": ["sent"] * 10}, {}, "unless.status: has 10 statuses; list each once"),
        ({"id": "code-17", "event_type": "sms"}, {}, "unless: "),
        ({**TEXT, "statuss": "sent"}, {}, "unless: "),
    ],
)
def test_an_invalid_condition_of_unless_is_refused_with_the_name_of_its_field(
    unless: Any, changes: Any, fault: str
) -> None:
    with pytest.raises(Invalid) as raised:
        message_unless(unless, **changes)
    assert str(raised.value).startswith(fault)


@pytest.mark.parametrize(
    ("status", "holds_for"),
    [
        ("sent", {"sent", "delivered", "complained"}),
        ("delivered", {"delivered", "complained"}),
        *((word, {word}) for word in WORDS[2:]),
    ],
)
def test_a_condition_holds_for_its_status_and_for_the_statuses_that_prove_it(
    status: str, holds_for: set[str]
) -> None:
    words = {*WORDS, *get_args(Status), ""}
    assert {word for word in words if Condition("x", "sms", status).holds(word)} == holds_for


def test_a_condition_holds_if_one_of_its_several_statuses_applies() -> None:
    condition = Condition("x", "sms", ["sent", OUTCOME_UNKNOWN])
    assert [condition.holds(word) for word in ("delivered", OUTCOME_UNKNOWN, "failed")] == [True, True, False]


def test_a_condition_of_unless_may_list_every_valid_status() -> None:
    assert message_unless({**TEXT, "status": [*WORDS]}).conditions[0].statuses == [*WORDS]
