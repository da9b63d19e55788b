"""The work that a field causes is never more than its text is long, whatever a producer writes: one message
must not hold up the others of its shard or batch."""

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
from msgspec import structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Dispatcher, Validator
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import Waits
from mailroom.providers.twilio.sender import reason_of
from mailroom.telemetry import masked, redact
from tests.support.fuzz.inputs import PIECES
from tests.support.fuzz.work import assert_linear_time, lines_of
from tests.support.unit.dispatching import Log
from tests.support.unit.shared import BUCKET, LEDGER, TTL, Aws, FakeClock, Item

SIZE = 25_000
Shape = Callable[[str, int], object]
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


def assert_bounded(work: Callable[[int], Callable[[], object]]) -> None:
    """`work(size)`, of a text of that many bytes, runs few lines and takes time in proportion at most."""
    assert lines_of(work(SIZE)) <= 10 * SIZE
    assert_linear_time(work, SIZE)


def long(piece: str, size: int) -> str:
    return piece * (size // len(piece.encode()))


def different(letters: int) -> str:
    """A text of different letters, 20,000 at most: each makes IDNA's encoding look through all of them."""
    return "".join(map(chr, range(0x4E00, 0x4E00 + letters)))


HOSTILE: list[Shape] = [
    long,
    lambda piece, size: f"a@{long(piece, size)}.com",
    lambda piece, size: [long(piece, size), "b"],
    lambda piece, size: [f"a@{piece}é.de"] * (size // 12),
    lambda piece, size: {long(piece, size): "b"},
    lambda piece, size: {"X-A": long(piece, size)},
]
"""Values of such a size, of every shape."""


@pytest.fixture
def dispatcher(aws: Aws, clock: FakeClock) -> Dispatcher:
    """Limit of all channels."""
    queue: Any = Taking()
    routes = {channel: {"normal": "https://sqs.example/queue"} for channel in CONTRACTS}
    made = Dispatcher(
        routes,
        Validator(CONTRACTS, routes, payloads=Payloads(aws.s3, BUCKET), callbacks=UrlPolicy(), clock=clock),
        ledger=Ledger(aws.dynamodb, LEDGER, lease=0, ttl=TTL, clock=clock),
        waits=Waits(aws.dynamodb, LEDGER, TTL, clock),
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


FIELDS += [(channel, "unknown") for channel in CONTRACTS]
THIRDS = 3
"""Each field gets a third of the values, another one than the fields beside it."""


@pytest.mark.parametrize("number", range(len(FIELDS)), ids=map("-".join, FIELDS))
def test_the_work_of_dispatch_on_a_message_field_is_bounded_by_the_length_of_the_field(
    dispatcher: Dispatcher, log: Log, number: int
) -> None:
    channel, field = FIELDS[number]
    right = {"id": "m-1", "event_type": channel, **RIGHT.get(channel, USUAL)}
    for piece, shape in [*product(PIECES, HOSTILE)][number % THIRDS :: THIRDS]:

        def work(size: int, piece: str = piece, shape: Shape = shape) -> Callable[[], object]:
            item = {**right, field: shape(piece, size)}
            return lambda: dispatcher.dispatch([("1", item)])

        assert_bounded(work)
    assert all(len(str(line)) < 5000 for line in log())


@pytest.mark.parametrize("text", ["{}", "a@{}.com", "a@b.{}", "Vincent <a@{}.com>"])
def test_a_domain_of_many_different_letters_is_refused_before_it_is_encoded(
    dispatcher: Dispatcher, text: str
) -> None:
    item = {"id": "m-1", "event_type": "mail", **RIGHT["mail"]}

    def work(letters: int) -> Callable[[], object]:
        hostile = {**item, "to": text.format(different(letters))}
        return lambda: dispatcher.dispatch([("1", hostile)])

    assert lines_of(work(4000)) < 5000
    assert_linear_time(work, 16_000)


def test_dispatch_refuses_a_mail_with_far_too_many_recipients_before_it_reads_each_address(
    dispatcher: Dispatcher,
    log: Log,
) -> None:
    for field in ("to", "cc", "bcc", "reply_to"):
        item = {"id": "m-1", "event_type": "mail", **RIGHT["mail"], field: ["a@é.de"] * 40_000}
        assert lines_of(lambda item=item: dispatcher.dispatch([("1", item)])) < 5000  # type: ignore[misc]
    assert [line["message"] for line in log()] == ["refused"] * 4


@pytest.mark.parametrize("piece", [*PIECES, "a", "a.", "+", "x:/", "1", "+1(", "http://a"])
def test_the_work_to_redact_a_providers_text_is_bounded_by_the_length_of_the_text(piece: str) -> None:
    readers: list[Callable[[str], object]] = [
        redact,
        lambda text: masked(f"{text} v@example.com"),
        lambda text: reason_of(400, json.dumps({"message": text})),
    ]
    for read in readers:
        assert_bounded(lambda size, read=read: partial(read, long(piece, size)))  # type: ignore[misc]
    assert len(redact(long(piece, SIZE))) <= 300


def test_the_error_about_an_invalid_message_shortens_a_long_field_name_and_a_long_problem() -> None:
    fault = Invalid(long("a", SIZE), long("b", SIZE))
    assert len(str(fault)) < 1500
    assert str(fault) == f"{fault.field}: {fault.problem}"
