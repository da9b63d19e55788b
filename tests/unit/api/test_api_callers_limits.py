"""What each caller may send: its recipients of a day, and the senders of its mails."""

from typing import Any

import pytest

from mailroom.budget import Budget, Busy
from mailroom.environment import CallerLimit
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import BUCKET, BUDGETS, MAILBOX, Aws, FakeClock, Item, item

SENDERS = ("Mailroom <post@example.com>", "shop@example.com")
CALLERS = {
    "shop": CallerLimit(per_day=5, senders=["shop@example.com"]),
    "news": CallerLimit(senders=list(SENDERS)),
    "codes": CallerLimit(),
}


@pytest.fixture
def api(aws: Aws, clock: FakeClock) -> Api:
    return Api(clock, caller_claim="sub", callers=CALLERS, mail_senders=SENDERS, budgets_table=BUDGETS)


def by(caller: str) -> dict[str, Any]:
    return {"jwt": {"claims": {"sub": caller}, "scopes": None}}


def post(api: Api, body: Item, caller: str = "shop") -> Any:
    return api.post_as(by(caller), body)


def mails(*ids: str, **changes: Any) -> Item:
    return {"messages": [item(**{"id": each, "from": "shop@example.com", **changes}) for each in ids]}


def test_a_caller_sends_until_its_day_is_over_and_then_hears_when_to_come_again(
    api: Api, clock: FakeClock
) -> None:
    assert post(api, mails("a", "b", "c")).status == 202
    over = post(api, mails("d", "e", "f"))
    assert (over.status, over.json["title"]) == (429, "Too Many Requests")
    assert "for 3 recipients, and its caller may reach 2 more today" in over.json["detail"]
    again = int(over.headers["retry-after"])
    assert 86_400 < again < 91_000
    assert post(api, mails("d", "e")).status == 202
    clock.advance(again)
    assert post(api, mails("d", "e", "f")).status == 202


def test_a_request_over_the_day_puts_nothing_and_takes_nothing_of_it(api: Api, aws: Aws) -> None:
    assert post(api, mails(*"abcdef")).status == 429
    assert aws.item("a", table=MAILBOX) == {}
    assert post(api, mails(*"abcde")).status == 202


def test_a_mail_to_several_counts_for_each_of_them(api: Api) -> None:
    several = [f"reader-{at}@example.com" for at in range(6)]
    assert post(api, mails("a", to=several)).status == 429


def test_what_is_refused_does_not_count(api: Api) -> None:
    assert post(api, mails(*"abcdef", to="nobody")).status == 422
    assert post(api, mails(*"abcde")).status == 202


def test_one_callers_day_is_not_anothers(api: Api) -> None:
    assert post(api, mails(*"abcde")).status == 202
    assert post(api, mails("f"), "news").status == 202
    assert post(api, {"messages": [item(id=f"c-{at}") for at in range(50)]}, "codes").status == 202


def test_a_caller_that_is_not_named_may_send_nothing(api: Api, aws: Aws) -> None:
    refused = post(api, item(), "stranger")
    assert (refused.status, refused.json["detail"]) == (
        403,
        "its caller may send nothing; name it in api.callers",
    )
    assert aws.item(table=MAILBOX) == {}


@pytest.mark.parametrize(
    ("caller", "changes", "problem"),
    [
        ("shop", {"from": "post@example.com"}, "is not a sender that its caller may use; use one of shop@"),
        ("shop", {}, "is missing, and its caller may not use the default; use one of shop@example.com"),
        ("shop", {"from": "Shop <SHOP@example.com>"}, ""),
        ("news", {"from": "post@example.com"}, ""),
        ("news", {}, ""),
        ("news", {"from": None}, ""),
        ("codes", {}, ""),
        ("codes", {"from": "post@example.com"}, ""),
    ],
)
def test_a_mail_comes_from_a_sender_that_its_caller_may_use(
    api: Api, caller: str, changes: Item, problem: str
) -> None:
    answer = post(api, item(**changes), caller)
    assert answer.status == (422 if problem else 202)
    if problem:
        assert answer.fields == ["from"]
        assert answer.json["errors"][0]["problem"].startswith(problem)


def test_a_payload_cannot_name_a_sender_that_its_caller_may_not_use(api: Api, aws: Aws) -> None:
    ref = f"s3://{BUCKET}/content.json"
    assert post(api, item(text=..., payload_ref=ref), "news").status == 202
    # The sender reads the payload later; what stands in the item counts then.
    assert aws.item(table=MAILBOX)["from"] == SENDERS[0]


def test_a_day_that_others_always_change_first_is_no_verdict(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise Busy("changed")

    monkeypatch.setattr(Budget, "ask", busy)
    refused = post(api, mails("a"))
    assert (refused.status, refused.headers["retry-after"]) == (503, "2")


def test_the_same_request_again_is_the_same_message(api: Api) -> None:
    assert post(api, item(), "news").json["result"] == "accepted"
    assert post(api, item(), "news").json["result"] == "existed"


def test_other_channels_have_no_sender_to_check(api: Api) -> None:
    text = {"id": "t-1", "event_type": "sms", "to": "+16175551234", "text": "Hi"}
    assert post(api, text).status == 202


def test_without_callers_nobody_is_counted_and_every_sender_may_be_named(aws: Aws, clock: FakeClock) -> None:
    free = Api(clock, caller_claim="sub", mail_senders=SENDERS)
    assert post(free, item(**{"from": "post@example.com"}), "anybody").status == 202
    assert aws.dynamodb.scan(TableName=BUDGETS)["Items"] == []
