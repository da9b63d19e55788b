"""Batches for SQS keep its limits and lose no entry, and an entry that fails leaves the others untouched."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st

from mailroom.aws.queues import MAX_BYTES, MAX_ENTRIES, Entry, depth, send
from mailroom.aws.queues import batches as batches_by
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Log
from tests.support.unit.shared import Aws


def queue_entries(count: int, body: str = "{}") -> list[Entry]:
    return [Entry(str(number), body, {"channel": "mail"}) for number in range(count)]


# Batches


def batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    return batches_by(entries, lambda entry: entry.size)


@given(st.lists(st.integers(0, MAX_BYTES) | st.integers(0, 200), max_size=40))
def test_batches_for_sqs_contain_every_entry_in_order_within_the_limits_of_sqs(sizes: list[int]) -> None:
    sized = [Entry(str(number), "x" * size) for number, size in enumerate(sizes)]
    result = list(batches(sized))
    assert [entry for batch in result for entry in batch] == sized
    for batch in result:
        assert 1 <= len(batch) <= MAX_ENTRIES
        assert sum(entry.size for entry in batch) <= MAX_BYTES


@given(st.lists(st.integers(0, MAX_BYTES), min_size=2, max_size=30))
def test_a_batch_for_sqs_ends_only_if_the_next_entry_would_exceed_a_limit(sizes: list[int]) -> None:
    result = list(batches(Entry(str(number), "x" * size) for number, size in enumerate(sizes)))
    for batch, following in pairwise(result):
        full = len(batch) == MAX_ENTRIES
        assert full or sum(entry.size for entry in [*batch, following[0]]) > MAX_BYTES


@pytest.mark.parametrize(("size", "count"), [(MAX_BYTES // 2, 1), (MAX_BYTES // 2 + 1, 2)])
def test_a_batch_for_sqs_may_have_exactly_the_maximum_number_of_bytes(size: int, count: int) -> None:
    halves = [Entry("1", "x" * (MAX_BYTES // 2)), Entry("2", "x" * size)]
    assert len(list(batches(halves))) == count


def test_the_size_of_an_sqs_entry_is_its_utf_8_bytes_including_message_attributes() -> None:
    assert Entry("1", "ü").size == 2
    assert Entry("1", "ü", {"type": "ä"}).size == 2 + len("type") + len("String") + 2


def test_an_empty_list_of_entries_makes_no_call_to_sqs(aws: Aws) -> None:
    client = Meddler(aws.sqs)
    assert list(batches([])) == []
    assert send(client, aws.urls["mail"], []) == set()  # type: ignore[arg-type]
    assert client.calls == []


# Sending


def test_a_message_sent_to_sqs_is_received_with_its_body_and_attributes(aws: Aws) -> None:
    assert (
        send(aws.sqs, aws.urls["mail"], [Entry("1", '{"a":1}', {"channel": "mail", "type": "html"})]) == set()
    )
    (message,) = aws.receive()
    assert message["Body"] == '{"a":1}'
    assert {name: value["StringValue"] for name, value in message["MessageAttributes"].items()} == {
        "channel": "mail",
        "type": "html",
    }


def test_a_message_sent_to_sqs_with_a_delay_cannot_be_received_at_once(aws: Aws) -> None:
    send(aws.sqs, aws.urls["mail"], [Entry("1", "now"), Entry("2", "later", delay=900)])
    assert [message["Body"] for message in aws.receive()] == ["now"]


def test_messages_are_sent_to_sqs_in_calls_of_at_most_ten_entries(aws: Aws) -> None:
    client = Meddler(aws.sqs)
    assert send(client, aws.urls["mail"], queue_entries(25)) == set()  # type: ignore[arg-type]
    assert [len(arguments["Entries"]) for _, arguments in client.calls] == [10, 10, 5]


def refuse_bodies(*bodies: str, sender_fault: bool = True) -> Callable[..., Any]:
    """Return a call of SQS that accepts every entry except those with these bodies."""

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        bad = [entry for entry in arguments["Entries"] if entry["MessageBody"] in bodies]
        arguments["Entries"] = [entry for entry in arguments["Entries"] if entry not in bad]
        response = real(**arguments) if arguments["Entries"] else {}
        code = "InvalidMessageContents" if sender_fault else "InternalError"
        response["Failed"] = [{"Id": entry["Id"], "Code": code, "SenderFault": sender_fault} for entry in bad]
        return response

    return call


@pytest.mark.parametrize("sender_fault", [True, False])
def test_an_entry_that_sqs_refuses_is_retried_alone_and_the_other_entries_of_its_batch_are_sent(
    aws: Aws, log: Log, sender_fault: bool
) -> None:
    client = Meddler(aws.sqs, send_message_batch=refuse_bodies("bad", sender_fault=sender_fault))
    mixed = [Entry("a", "1"), Entry("b", "bad"), Entry("c", "2"), Entry("d", "bad"), Entry("e", "3")]
    assert send(client, aws.urls["mail"], mixed) == {"b", "d"}  # type: ignore[arg-type]
    assert sorted(message["Body"] for message in aws.receive()) == ["1", "2", "3"]
    retries = [[entry["MessageBody"] for entry in arguments["Entries"]] for _, arguments in client.calls[1:]]
    assert retries == [["bad"], ["bad"]]
    assert "bad" not in str(log())


def test_an_entry_that_sqs_refused_once_is_sent_by_a_second_call(aws: Aws) -> None:
    tries: list[int] = []

    def refusing_the_first(real: Callable[..., Any], **arguments: Any) -> Any:
        tries.append(len(arguments["Entries"]))
        bodies = ["1"] if len(tries) == 1 else []
        return refuse_bodies(*bodies)(real, **arguments)

    client = Meddler(aws.sqs, send_message_batch=refusing_the_first)
    assert send(client, aws.urls["mail"], [Entry("a", "1"), Entry("b", "2")]) == set()  # type: ignore[arg-type]
    assert tries == [2, 1]
    assert sorted(message["Body"] for message in aws.receive()) == ["1", "2"]


@pytest.mark.parametrize(
    "error",
    [
        client_error("ServiceUnavailable", status=503),
        EndpointConnectionError(endpoint_url="https://sqs.example/"),
    ],
)
def test_after_a_failed_batch_call_to_sqs_each_entry_is_sent_by_a_separate_call(
    aws: Aws, error: Exception
) -> None:
    client = Meddler(aws.sqs, send_message_batch=failing(error))
    assert send(client, aws.urls["mail"], queue_entries(3)) == set()  # type: ignore[arg-type]
    assert [len(arguments["Entries"]) for _, arguments in client.calls] == [3, 1, 1, 1]
    assert len(aws.receive()) == 3


def test_a_send_to_sqs_returns_the_references_of_all_entries_as_unsent_while_sqs_is_down(aws: Aws) -> None:
    client = Meddler(aws.sqs, send_message_batch=failing(*[client_error("ServiceUnavailable")] * 99))
    assert send(client, aws.urls["mail"], queue_entries(12)) == {str(number) for number in range(12)}  # type: ignore[arg-type]


# Depth


def test_the_depth_of_a_queue_includes_messages_in_flight_and_delayed(aws: Aws) -> None:
    send(aws.sqs, aws.urls["mail"], [*queue_entries(3), Entry("later", "{}", delay=900)])
    aws.sqs.receive_message(QueueUrl=aws.urls["mail"], MaxNumberOfMessages=1)
    assert depth(aws.sqs, aws.urls["mail"]) == 4
