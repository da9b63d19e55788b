"""SQS in batches: limits held, nothing lost, and one entry's failure never another's."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from mailroom.aws.queues import MAX_BYTES, MAX_ENTRIES, Entry, send
from mailroom.aws.queues import batches as batches_by
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import Aws

Counted = Callable[[], dict[str, float]]
Log = Callable[[], list[dict[str, Any]]]


def entries(count: int, body: str = "{}") -> list[Entry]:
    return [Entry(str(at), body, {"channel": "mail"}) for at in range(count)]


# Batches


def batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    return batches_by(entries, lambda each: each.size)


@given(st.lists(st.integers(0, MAX_BYTES) | st.integers(0, 200), max_size=40))
def test_batches_lose_nothing_keep_the_order_and_hold_the_limits(sizes: list[int]) -> None:
    given_ = [Entry(str(at), "x" * size) for at, size in enumerate(sizes)]
    made = list(batches(given_))
    assert [entry for batch in made for entry in batch] == given_
    for batch in made:
        assert 1 <= len(batch) <= MAX_ENTRIES
        assert sum(entry.size for entry in batch) <= MAX_BYTES


@given(st.lists(st.integers(0, MAX_BYTES), min_size=2, max_size=30))
def test_a_batch_ends_only_where_the_next_entry_would_not_fit(sizes: list[int]) -> None:
    made = list(batches(Entry(str(at), "x" * size) for at, size in enumerate(sizes)))
    for batch, following in pairwise(made):
        full = len(batch) == MAX_ENTRIES
        assert full or sum(entry.size for entry in [*batch, following[0]]) > MAX_BYTES


@pytest.mark.parametrize(("size", "made"), [(MAX_BYTES // 2, 1), (MAX_BYTES // 2 + 1, 2)])
def test_a_batch_may_be_full_to_the_byte_and_no_fuller(size: int, made: int) -> None:
    halves = [Entry("1", "x" * (MAX_BYTES // 2)), Entry("2", "x" * size)]
    assert len(list(batches(halves))) == made


def test_an_entrys_size_counts_bytes_and_attributes_as_sqs_does() -> None:
    assert Entry("1", "ü").size == 2
    assert Entry("1", "ü", {"type": "ä"}).size == 2 + len("type") + len("String") + 2


def test_no_entries_make_no_batch(aws: Aws) -> None:
    client = Meddler(aws.sqs)
    assert list(batches([])) == []
    assert send(client, aws.urls["mail"], []) == set()  # type: ignore[arg-type]
    assert client.calls == []


# Sending


def test_a_message_arrives_with_its_body_and_attributes(aws: Aws) -> None:
    assert (
        send(aws.sqs, aws.urls["mail"], [Entry("1", '{"a":1}', {"channel": "mail", "type": "html"})]) == set()
    )
    (found,) = aws.receive()
    assert found["Body"] == '{"a":1}'
    assert {name: each["StringValue"] for name, each in found["MessageAttributes"].items()} == {
        "channel": "mail",
        "type": "html",
    }


def test_a_delayed_message_is_not_there_yet(aws: Aws) -> None:
    send(aws.sqs, aws.urls["mail"], [Entry("1", "now"), Entry("2", "later", delay=900)])
    assert [each["Body"] for each in aws.receive()] == ["now"]


def test_twenty_five_messages_take_three_calls(aws: Aws) -> None:
    client = Meddler(aws.sqs)
    assert send(client, aws.urls["mail"], entries(25)) == set()  # type: ignore[arg-type]
    assert [len(arguments["Entries"]) for _, arguments in client.calls] == [10, 10, 5]


def refusing(*bodies: str, sender_fault: bool = True) -> Callable[..., Any]:
    """SQS that takes every entry but those with these bodies."""

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        refused = [each for each in arguments["Entries"] if each["MessageBody"] in bodies]
        arguments["Entries"] = [each for each in arguments["Entries"] if each not in refused]
        reply = real(**arguments) if arguments["Entries"] else {}
        code = "InvalidMessageContents" if sender_fault else "InternalError"
        reply["Failed"] = [{"Id": each["Id"], "Code": code, "SenderFault": sender_fault} for each in refused]
        return reply

    return call


@pytest.mark.parametrize("sender_fault", [True, False])
def test_an_entry_that_sqs_refuses_fails_alone(aws: Aws, log: Log, sender_fault: bool) -> None:
    client = Meddler(aws.sqs, send_message_batch=refusing("bad", sender_fault=sender_fault))
    mixed = [Entry("a", "1"), Entry("b", "bad"), Entry("c", "2"), Entry("d", "bad"), Entry("e", "3")]
    assert send(client, aws.urls["mail"], mixed) == {"b", "d"}  # type: ignore[arg-type]
    assert sorted(each["Body"] for each in aws.receive()) == ["1", "2", "3"]
    retried = [[each["MessageBody"] for each in arguments["Entries"]] for _, arguments in client.calls[1:]]
    assert retried == [["bad"], ["bad"]]
    assert "bad" not in str(log())


def test_an_entry_refused_once_is_sent_by_its_second_try(aws: Aws) -> None:
    tries: list[int] = []

    def once(real: Callable[..., Any], **arguments: Any) -> Any:
        tries.append(len(arguments["Entries"]))
        refused = ["1"] if len(tries) == 1 else []
        return refusing(*refused)(real, **arguments)

    client = Meddler(aws.sqs, send_message_batch=once)
    assert send(client, aws.urls["mail"], [Entry("a", "1"), Entry("b", "2")]) == set()  # type: ignore[arg-type]
    assert tries == [2, 1]
    assert sorted(each["Body"] for each in aws.receive()) == ["1", "2"]


@pytest.mark.parametrize(
    "error",
    [
        client_error("ServiceUnavailable", status=503),
        EndpointConnectionError(endpoint_url="https://sqs.example/"),
    ],
)
def test_a_call_that_fails_as_a_whole_is_made_again_entry_by_entry(aws: Aws, error: Exception) -> None:
    client = Meddler(aws.sqs, send_message_batch=failing(error))
    assert send(client, aws.urls["mail"], entries(3)) == set()  # type: ignore[arg-type]
    assert [len(arguments["Entries"]) for _, arguments in client.calls] == [3, 1, 1, 1]
    assert len(aws.receive()) == 3


def test_where_sqs_is_down_every_reference_comes_back(aws: Aws) -> None:
    client = Meddler(aws.sqs, send_message_batch=failing(*[client_error("ServiceUnavailable")] * 99))
    assert send(client, aws.urls["mail"], entries(12)) == {str(at) for at in range(12)}  # type: ignore[arg-type]
