"""Messages come back to their queue, each after its own wait within the limits of SQS."""

from typing import Any

import pytest

from mailroom.aws.queues import Entry, send, set_visibility
from mailroom.telemetry import quiet
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.post import Counted
from tests.support.unit.shared import Aws


def visibility_entries(count: int) -> list[Entry]:
    return [Entry(str(number), "{}") for number in range(count)]


def test_each_message_becomes_visible_after_the_visibility_timeout_set_for_it(aws: Aws) -> None:
    client = Meddler(aws.sqs)
    send(aws.sqs, aws.urls["mail"], visibility_entries(2))
    first, second = (message["ReceiptHandle"] for message in aws.receive())
    set_visibility(client, aws.urls["mail"], [(first, 0), (second, 30)])  # type: ignore[arg-type]
    assert [entry["ReceiptHandle"] for _, arguments in client.calls for entry in arguments["Entries"]] == [
        first,
        second,
    ]
    assert len(aws.receive()) == 1
    timeouts = [entry["VisibilityTimeout"] for _, arguments in client.calls for entry in arguments["Entries"]]
    assert timeouts == [0, 30]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, 0), (-5, 0), (0.4, 1), (1, 1), (1.2, 2), (59.999, 60), (43_200, 42_300), (1e9, 42_300)],
)
def test_a_visibility_timeout_is_rounded_up_to_whole_seconds_within_the_limits_of_sqs(
    aws: Aws, seconds: float, expected: int
) -> None:
    client = Meddler(aws.sqs, change_message_visibility_batch=lambda _real, **_arguments: {})
    set_visibility(client, "url", [("receipt", seconds)])  # type: ignore[arg-type]
    assert [
        entry["VisibilityTimeout"] for _, arguments in client.calls for entry in arguments["Entries"]
    ] == [expected]


def test_one_call_sets_the_visibility_timeout_of_up_to_ten_messages(aws: Aws) -> None:
    client = Meddler(aws.sqs, change_message_visibility_batch=lambda _real, **_arguments: {})
    set_visibility(client, "url", [(f"receipt-{number}", 5) for number in range(23)])  # type: ignore[arg-type]
    assert [len(arguments["Entries"]) for _, arguments in client.calls] == [10, 10, 3]
    batches = [[entry["Id"] for entry in arguments["Entries"]] for _, arguments in client.calls]
    assert all(len(set(ids)) == len(ids) for ids in batches)


def test_an_empty_list_of_visibility_timeouts_makes_no_call_to_sqs(aws: Aws) -> None:
    client = Meddler(aws.sqs)
    set_visibility(client, "url", [])  # type: ignore[arg-type]
    assert client.calls == []


def test_a_visibility_timeout_that_cannot_be_set_is_counted_and_does_not_stop_the_next_call(
    aws: Aws, counted: Counted
) -> None:
    client = Meddler(
        aws.sqs,
        change_message_visibility_batch=lambda _real, **arguments: _no_more_than(1, client, arguments),
    )
    set_visibility(client, "url", [(f"receipt-{number}", 5) for number in range(12)])  # type: ignore[arg-type]
    assert len(client.calls) == 2
    assert counted() == {"VisibilityNotSet": 10 + 1}


def test_a_command_makes_all_its_calls_to_sqs_even_if_hundreds_of_visibility_timeouts_are_refused(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, counted: Counted
) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_NAMESPACE", raising=False)
    refusing = Meddler(
        aws.sqs,
        change_message_visibility_batch=lambda _real, **arguments: _no_more_than(150, refusing, arguments),
    )
    with quiet():
        set_visibility(refusing, "url", [("receipt", 0)] * 10 * 150)  # type: ignore[arg-type]
    assert len(refusing.calls) == 150
    assert counted() == {}


def _no_more_than(calls: int, client: Meddler, arguments: dict[str, Any]) -> Any:
    """Let the first calls fail as a whole, and later calls for their first entry."""
    if len(client.calls) <= calls:
        raise client_error("ServiceUnavailable", status=503)
    return {"Failed": [{"Id": arguments["Entries"][0]["Id"], "Code": "ReceiptHandleIsInvalid"}]}
