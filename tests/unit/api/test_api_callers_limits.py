"""Limits of each caller: recipients per day, and the senders of its mails."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from mailroom.aws import clients
from mailroom.aws.dynamo_values import plain
from mailroom.budget import Budget
from mailroom.channels.contracts import CONTRACTS
from mailroom.environment import CallerLimit
from mailroom.errors import Contention
from mailroom.message.message import parse
from tests.support.unit.api_requests import Api, api_event
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.shared import BUCKET, BUDGETS, MAILBOX, Aws, FakeClock, Item, item

SENDERS = ("Mailroom <post@example.com>", "shop@example.com")
CALLERS = {
    "shop": CallerLimit(per_day=5, senders=["shop@example.com"]),
    "news": CallerLimit(senders=list(SENDERS)),
    "codes": CallerLimit(),
}


API = {"caller_claim": "sub", "callers": CALLERS, "mail_senders": SENDERS, "budgets_table": BUDGETS}


def by(caller: str) -> dict[str, Any]:
    return {"jwt": {"claims": {"sub": caller}, "scopes": None}}


def post_as(api: Api, body: Item, caller: str = "shop") -> Any:
    return api.post_as(by(caller), body)


def request_of_mails(*ids: str, **changes: Any) -> Item:
    return {"messages": [item(**{"id": each, "from": "shop@example.com", **changes}) for each in ids]}


def test_a_caller_over_its_daily_limit_is_refused_with_a_retry_after(api: Api, clock: FakeClock) -> None:
    assert post_as(api, request_of_mails("a", "b", "c")).status == 202
    over = post_as(api, request_of_mails("d", "e", "f"))
    assert (over.status, over.json["title"]) == (429, "Too Many Requests")
    assert "3 new recipients, but its caller may reach 2 more today" in over.json["detail"]
    again = int(over.headers["retry-after"])
    assert 86_400 < again < 91_000
    assert post_as(api, request_of_mails("d", "e")).status == 202
    clock.advance(again)
    assert post_as(api, request_of_mails("d", "e", "f")).status == 202


def spent(aws: Aws, clock: FakeClock) -> int:
    """The recipients of the caller `shop` that count now."""
    return Budget(aws.dynamodb, BUDGETS, "api#shop", [("0001-01-01", 5)], clock=clock).spent()[0]


def recipients(mailbox: Aws) -> int:
    """The recipients of all mails in the mailbox."""
    items = mailbox.dynamodb.scan(TableName=MAILBOX)["Items"]
    return sum(parse(plain(each), CONTRACTS).recipient_count for each in items)


def test_each_address_of_a_mail_counts_against_the_daily_limit_even_if_it_is_repeated(
    api: Api, aws: Aws, clock: FakeClock
) -> None:
    """SES counts the addresses in To, CC and BCC, however often an address comes."""
    spellings = {"to": ["ada@example.com", "Ada@Example.com"], "cc": "ADA@EXAMPLE.COM", "bcc": "eve@x.com"}
    assert post_as(api, request_of_mails("a", **spellings)).status == 202
    assert spent(aws, clock) == 4


@pytest.mark.parametrize("field", ["to", "email"])
def test_a_mail_to_more_recipients_than_the_daily_limit_is_refused_and_other_mails_are_accepted(
    api: Api, aws: Aws, clock: FakeClock, field: str
) -> None:
    several = [f"reader-{at}@example.com" for at in range(5)]
    large = item(**{"id": "a", "from": "shop@example.com", "to": ..., "cc": "cc@example.com", field: several})
    alone = post_as(api, large)
    assert (alone.status, alone.fields) == (422, [field])
    assert alone.json["errors"][0]["problem"] == (
        "has 6 recipients, but its caller may reach only 5 a day; use several mails, on several days"
    )
    listed = post_as(api, {"messages": [large, *request_of_mails("b")["messages"]]})
    assert [each["result"] for each in listed.json["messages"]] == ["refused", "accepted"]
    assert spent(aws, clock) == 1


def test_a_list_with_more_recipients_than_the_daily_limit_is_refused_without_a_retry_after(
    api: Api, aws: Aws
) -> None:
    """No later time has room for the whole list, so a Retry-After would bring it back for ever."""
    refused = post_as(api, request_of_mails(*"abcdef"))
    assert (refused.status, refused.fields) == (422, ["messages"])
    assert "retry-after" not in refused.headers
    assert refused.json["errors"][0]["problem"] == (
        "has 6 recipients, but its caller may reach only 5 a day; use several requests, on several days"
    )
    assert recipients(aws) == 0


def test_a_refused_request_is_accepted_after_its_retry_after(aws: Aws, clock: FakeClock) -> None:
    """Whatever was sent when: the first answer's Retry-After is enough, and is never a second for ever."""
    random = Random(20261126)
    for round_ in range(20):
        aws.dynamodb.empty()  # type: ignore[attr-defined]  # the double's
        api = Api(clock, caller_claim="sub", callers=CALLERS, mail_senders=SENDERS, budgets_table=BUDGETS)
        for at in range(random.randrange(6)):
            post_as(api, request_of_mails(*(f"{at}-{each}" for each in range(random.randrange(1, 4)))))
            clock.advance(random.randrange(40_000))
        last = request_of_mails(*(f"last-{each}" for each in range(random.randrange(1, 6))))
        answer = post_as(api, last)
        if answer.status == 429:
            clock.advance(int(answer.headers["retry-after"]))
            answer = post_as(api, last)
        assert answer.status == 202, round_


def statuses_of_ten(api: Api, body: Item) -> list[int]:
    return [post_as(api, body).status for _ in range(10)]


def test_a_message_that_is_put_repeatedly_counts_once_against_the_daily_limit(
    api: Api, aws: Aws, clock: FakeClock
) -> None:
    assert statuses_of_ten(api, request_of_mails("a")["messages"][0]) == [202, *[200] * 9]
    other = request_of_mails("a", text="other")["messages"][0]
    assert statuses_of_ten(api, other) == [409] * 10
    assert statuses_of_ten(api, request_of_mails("a", "b")) == [202, *[200] * 9]
    mixed = {"messages": [other, *request_of_mails("a", "c", "c")["messages"], item(id="bad", to="nobody")]}
    assert statuses_of_ten(api, mixed) == [202, *[200] * 9]
    assert spent(aws, clock) == recipients(aws) == 3


def test_an_existing_message_gets_its_usual_response_if_the_daily_limit_is_used_up(
    api: Api, aws: Aws
) -> None:
    assert post_as(api, request_of_mails(*"abcd")).status == 202
    assert statuses_of_ten(api, request_of_mails(*"bcde")) == [202, *[200] * 9]
    assert statuses_of_ten(api, request_of_mails("a", text="other")["messages"][0]) == [409] * 10
    over = post_as(api, request_of_mails("e", "f"))
    assert over.status == 429
    assert "1 new recipients, but its caller may reach 0 more today" in over.json["detail"]
    assert recipients(aws) == 5


def test_entries_with_one_key_count_against_the_daily_limit_only_by_the_one_that_is_stored(
    api: Api, aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is put if the mailbox does not take the first."""
    small, large = (
        request_of_mails("a")["messages"][0],
        request_of_mails("a", to=["a@x.com", "b@x.com"])["messages"][0],
    )
    assert post_as(api, {"messages": [small, large]}).json["accepted"] == 1
    assert spent(aws, clock) == recipients(aws) == 1
    refuses_one, _ = meddling(aws, clock, monkeypatch, put_item=failing(client_error("ValidationException")))
    second = {"messages": [{**small, "id": "b"}, {**large, "id": "b"}]}
    assert post_as(refuses_one, second).json["messages"][1]["result"] == "accepted"
    assert spent(aws, clock) == recipients(aws) == 3


def meddling(
    aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, **changes: Callable[..., Any]
) -> tuple[Api, Meddler]:
    """The API, whose calls of DynamoDB pass through `changes`."""
    client = Meddler(aws.dynamodb, **changes)
    monkeypatch.setattr(clients, "dynamodb", lambda: client)
    limits = {"callers": CALLERS, "mail_senders": SENDERS, "budgets_table": BUDGETS}
    return Api(clock, caller_claim="sub", **limits), client


def test_an_accepted_request_makes_one_put_per_message_and_one_write_of_the_daily_count(
    api: Api, aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post_as(api, request_of_mails("before")).status == 202
    watched, client = meddling(aws, clock, monkeypatch)
    assert post_as(watched, request_of_mails("a", "b")).status == 202
    assert sorted(client.names()) == ["put_item", "put_item", "update_item"]


def test_two_concurrent_requests_do_not_exceed_the_daily_limit_together(
    aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    second: list[int] = []

    def meanwhile(real: Callable[..., Any], **arguments: Any) -> Any:
        if not second:
            second.append(0)
            second[0] = post_as(both, request_of_mails("d", "e", "f")).status
        return real(**arguments)

    both, _ = meddling(aws, clock, monkeypatch, put_item=meanwhile)
    assert post_as(both, request_of_mails("a", "b", "c")).status == 202
    assert (second, recipients(aws), spent(aws, clock)) == ([429], 3, 3)


def test_a_message_whose_put_was_repeated_by_the_sdk_counts_against_the_daily_limit(
    aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK repeats a put whose response was lost, and finds its own item. It cannot be told from an item
    of another caller."""

    def repeats(real: Callable[..., Any], **arguments: Any) -> Any:
        real(**arguments)
        try:
            return real(**arguments)
        except ClientError as error:
            error.response["ResponseMetadata"]["RetryAttempts"] = 1
            raise

    api, _ = meddling(aws, clock, monkeypatch, put_item=repeats)
    assert post_as(api, request_of_mails("a")).json["accepted"] == 1
    assert spent(aws, clock) == recipients(aws) == 1


def test_a_put_with_an_unknown_outcome_counts_against_the_daily_limit(
    aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too much counts after an outage, and never too little."""

    def lost(real: Callable[..., Any], **arguments: Any) -> Any:
        real(**arguments)
        raise ReadTimeoutError(endpoint_url="https://dynamodb.example")

    api, _ = meddling(aws, clock, monkeypatch, put_item=lost)
    assert post_as(api, request_of_mails("a")).status == 503
    assert spent(aws, clock) == recipients(aws) == 1


def test_a_request_succeeds_if_its_surplus_count_cannot_be_subtracted_from_the_daily_count(
    api: Api, aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert post_as(api, request_of_mails("a")).status == 202
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    monkeypatch.setattr(clients, "dynamodb_once", lambda: down)
    assert post_as(api, request_of_mails("a")).status == 200
    assert (spent(aws, clock), recipients(aws)) == (2, 1)


def test_a_refused_message_does_not_count_against_the_daily_limit(api: Api) -> None:
    assert post_as(api, request_of_mails(*"abcdef", to="nobody")).status == 422
    assert post_as(api, request_of_mails(*"abcde")).status == 202


def test_callers_without_a_daily_limit_may_send_while_another_caller_has_used_up_its_limit(api: Api) -> None:
    assert post_as(api, request_of_mails(*"abcde")).status == 202
    assert post_as(api, request_of_mails("f"), "news").status == 202
    assert post_as(api, {"messages": [item(id=f"c-{at}") for at in range(50)]}, "codes").status == 202


LATER = "2026-12-24T18:00:00Z"
REQUESTS = [
    ("POST", "/messages"),
    ("POST", "/messages/m-1/cancel"),
    ("POST", "/messages/cancel?id=m-1"),
    ("GET", "/messages"),
    ("GET", "/messages?id=m-1"),
    ("GET", "/messages?recipient=vincent@example.com"),
    ("GET", "/messages/m-1"),
    ("GET", "/messages/none"),
    ("PUT", "/else"),
]


@pytest.mark.parametrize(("method", "url"), REQUESTS)
@pytest.mark.parametrize("caller", [{"jwt": {"claims": {"sub": "stranger"}}}, {"jwt": {"claims": {}}}, None])
def test_a_caller_without_an_entry_in_the_settings_gets_403_for_every_request(
    api: Api, aws: Aws, method: str, url: str, caller: Any
) -> None:
    assert post_as(api, item(send_at=LATER), "codes").status == 202
    refused = api.ask(api_event(method, url, "no JSON", authorizer=caller))
    assert (refused.status, refused.json["detail"]) == (
        403,
        "the caller is not in the stage's setting api.callers; add it there",
    )
    assert api.get("/messages/m-1", authorizer=by("codes")).json["status"] == "ready"


def test_a_caller_in_the_settings_may_read_and_cancel_the_messages_of_another_caller(
    api: Api, aws: Aws
) -> None:
    """A stage is the boundary: docs/reference/rights.md."""
    assert post_as(api, item(send_at=LATER), "codes").status == 202
    assert api.get("/messages/m-1", authorizer=by("news")).status == 200
    assert api.cancel("/messages/m-1/cancel", authorizer=by("news")).json["status"] == "cancelled"


@pytest.mark.parametrize(
    ("caller", "changes", "problem"),
    [
        ("shop", {"from": "post@example.com"}, "is not a sender that its caller may use; use one of shop@"),
        (
            "shop",
            {},
            "is missing, but its caller may not use the default sender; use one of shop@example.com",
        ),
        ("shop", {"from": "Shop <SHOP@example.com>"}, ""),
        ("news", {"from": "post@example.com"}, ""),
        ("news", {}, ""),
        ("news", {"from": None}, ""),
        ("codes", {}, ""),
        ("codes", {"from": "post@example.com"}, ""),
    ],
)
def test_a_mail_is_accepted_only_from_a_sender_that_its_caller_may_use(
    api: Api, caller: str, changes: Item, problem: str
) -> None:
    answer = post_as(api, item(**changes), caller)
    assert answer.status == (422 if problem else 202)
    if problem:
        assert answer.fields == ["from"]
        assert answer.json["errors"][0]["problem"].startswith(problem)


def test_a_mail_with_a_payload_and_without_a_sender_is_stored_with_the_stages_default_sender(
    api: Api, aws: Aws
) -> None:
    ref = f"s3://{BUCKET}/content.json"
    assert post_as(api, item(text=..., payload_ref=ref), "news").status == 202
    # The sender reads the payload later; what stands in the item counts then.
    assert aws.item(table=MAILBOX)["from"] == SENDERS[0]


def test_a_request_gets_a_retry_after_header_if_other_requests_always_change_the_daily_count_first(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise Contention("changed")

    monkeypatch.setattr(Budget, "ask", busy)
    refused = post_as(api, request_of_mails("a"))
    assert (refused.status, refused.headers["retry-after"]) == (503, "2")


def test_an_sms_is_accepted_from_a_caller_whose_mail_senders_are_restricted(api: Api) -> None:
    text = {"id": "t-1", "event_type": "sms", "to": "+16175551234", "text": "Hi"}
    assert post_as(api, text).status == 202


def test_requests_are_not_counted_and_every_sender_is_allowed_if_the_settings_have_no_callers(
    aws: Aws, clock: FakeClock
) -> None:
    free = Api(clock, caller_claim="sub", mail_senders=SENDERS)
    assert post_as(free, item(**{"from": "post@example.com"}), "anybody").status == 202
    assert aws.dynamodb.scan(TableName=BUDGETS)["Items"] == []
