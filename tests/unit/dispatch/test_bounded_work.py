"""However much somebody writes into a field, the work that it makes is no more than the text is long: one
message must not hold up the others of its shard or batch."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.sms.twilio import reason_of
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Dispatcher, ScheduleWriter, Validator
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.telemetry import masked, redact
from tests.support.fuzz.inputs import PIECES
from tests.support.fuzz.work import costs
from tests.support.unit.dispatching import ROLE, TARGET, Log
from tests.support.unit.shared import BUCKET, GROUP, LEDGER, TTL, Aws, FakeClock, Item

SIZE = 400_000
RIGHT: dict[str, Item] = {
    "mail": {"to": "vincent@example.com", "subject": "Hello", "text": "Hi"},
    "sms": {"to": "+16175551234", "text": "Hi"},
    "push": {"to": "arn:aws:sns:eu-central-1:123456789012:news", "body": "Hi"},
    "fax": {"to": "+16175551234", "pdf_url": "https://files.example.com/a.pdf"},
    "webhook": {"url": "https://hooks.example.com/a", "payload": {}},
}
USUAL: Item = {"to": "123456789", "text": "Hi"}
"""Of a channel without a row in RIGHT."""


class Taking:
    """A queue that takes everything."""

    def send_message_batch(self, **_: Any) -> dict[str, Any]:
        return {}


def assert_bounded(work: Callable[[], object]) -> None:
    lines, seconds = costs(work)
    assert lines <= 10 * SIZE
    # What else runs on the machine can only add: a second look tells it from too much work.
    assert seconds < 1 or costs(work)[1] < 1


def long(piece: str) -> str:
    return piece * (SIZE // len(piece.encode()))


def different() -> str:
    """A text of 4,000 different letters: each makes IDNA's encoding look through all of them."""
    return "".join(map(chr, range(0x4E00, 0x4E00 + 4000)))


def hostile(piece: str) -> Iterator[Any]:
    """Values as large as an item may be, of every shape."""
    text = long(piece)
    yield text
    yield f"a@{text}.com"
    yield [text, "b"]
    yield [f"a@{piece}é.de"] * (SIZE // 12)
    yield {text: "b"}
    yield {"X-A": text}


@pytest.fixture
def dispatcher(aws: Aws, clock: FakeClock) -> Dispatcher:
    """One for all channels."""
    queue: Any = Taking()
    routes = {channel: {"normal": "https://sqs.example/queue"} for channel in CONTRACTS}
    made = Dispatcher(
        routes,
        Validator(CONTRACTS, routes, payloads=Payloads(aws.s3, BUCKET), callbacks=UrlPolicy(), clock=clock),
        ledger=Ledger(aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock),
        schedules=ScheduleWriter(
            aws.scheduler, GROUP, role_arn=ROLE, target_arn=TARGET, dead_letter_arn=TARGET + "-dlq"
        ),
        sqs=queue,
        clock=clock,
    )
    made.dispatch([("1", {"id": "m-0", "event_type": "mail"})])  # a table in memory looks longer at the first
    return made


FIELDS = [
    (channel, each.encode_name)
    for channel, contract in CONTRACTS.items()
    for each in structs.fields(contract)
    if each.encode_name not in ("id", "event_type", "variables")  # DynamoDB bounds a key
]


@pytest.mark.parametrize(("channel", "field"), [*FIELDS, *((channel, "unknown") for channel in CONTRACTS)])
def test_no_field_of_an_item_makes_dispatch_work_for_longer_than_its_text(
    dispatcher: Dispatcher, log: Log, channel: str, field: str
) -> None:
    for piece in PIECES:
        for value in hostile(piece):
            item = {"id": "m-1", "event_type": channel, **RIGHT.get(channel, USUAL), field: value}
            assert_bounded(lambda item=item: dispatcher.dispatch([("1", item)]))  # type: ignore[misc]
    assert all(len(str(line)) < 5000 for line in log())


@pytest.mark.parametrize("text", ["{}", "a@{}.com", "a@b.{}", "Vincent <a@{}.com>"])
def test_a_domain_of_many_different_letters_is_refused_before_it_is_encoded(
    dispatcher: Dispatcher, text: str
) -> None:
    item = {"id": "m-1", "event_type": "mail", **RIGHT["mail"], "to": text.format(different())}
    assert_bounded(lambda: dispatcher.dispatch([("1", item)]))


def test_a_mail_to_far_too_many_is_refused_before_each_of_them_is_read(dispatcher: Dispatcher) -> None:
    for field in ("to", "cc", "bcc", "reply_to"):
        item = {"id": "m-1", "event_type": "mail", **RIGHT["mail"], field: ["a@é.de"] * 40_000}
        lines, _ = costs(lambda item=item: dispatcher.dispatch([("1", item)]))  # type: ignore[misc]
        assert lines < 5000


@pytest.mark.parametrize("piece", [*PIECES, "a", "a.", "+", "x:/", "1", "+1(", "http://a"])
def test_a_providers_text_is_quoted_and_masked_in_no_more_than_its_length(piece: str) -> None:
    text = long(piece)
    assert_bounded(lambda: redact(text))
    assert_bounded(lambda: masked(f"{text} v@example.com"))
    assert_bounded(lambda: reason_of(400, json.dumps({"message": text})))
    assert len(redact(text)) <= 300


def test_a_fault_quotes_no_more_than_a_person_reads() -> None:
    fault = Invalid(long("a"), long("b"))
    assert len(str(fault)) < 1500
    assert str(fault) == f"{fault.field}: {fault.problem}"
