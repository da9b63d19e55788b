"""`mailroom send`: one message, judged before it is put."""

import json
import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest

from mailroom.clock import iso
from mailroom_ops.messages.send import SendAnswer, wait_for
from mailroom_ops.messages.views import reader_of
from tests.support.ops.message import LEDGER, MAILBOX, Stage, answer, run

pytestmark = pytest.mark.usefixtures("stage")
SOON = ("--send-at", iso(time.time() + 600))
HELLO = ("--to", "ada@example.com", "--subject", "Hello", "--text", "Hi")


def test_send_puts_a_mail_from_its_options_under_a_new_id_and_prints_the_id(stage: Stage) -> None:
    result = run("send", "mail", *HELLO, "--set", "first_name=Ada")
    assert result.exit_code == 0, result.stderr
    (id_,) = stage.mailbox()
    assert id_ in result.stdout
    assert re.fullmatch(r"mail-\d{8}-\d{6}-[a-z2-9]{6}", id_)
    assert stage.mailbox()[id_] == {
        "id": id_,
        "event_type": "mail",
        "to": "ada@example.com",
        "subject": "Hello",
        "text": "Hi",
        "first_name": "Ada",
    }


def test_send_puts_repeated_recipients_as_a_list_and_reads_values_of_the_option_set_as_json(
    stage: Stage,
) -> None:
    words = (
        "--to",
        "bob@example.com",
        "--id",
        "x",
        "--set",
        'headers={"X-Team": "a"}',
        "--set",
        "ttl=1900000000",
    )
    assert run("send", "mail", *HELLO, *words).exit_code == 0
    item = stage.mailbox()["x"]
    assert item["to"] == ["ada@example.com", "bob@example.com"]
    assert (item["headers"], item["ttl"]) == ({"X-Team": "a"}, 1_900_000_000)


def test_send_puts_the_message_of_a_file_and_its_options_override_attributes(
    stage: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "m.json"
    file.write_text('{"id": "f", "event_type": "sms", "to": "(617) 555-1234", "text": "one", "n": 1.5}')
    assert run("send", "--file", str(file), "--text", "two").exit_code == 0
    assert (stage.mailbox()["f"]["text"], float(stage.mailbox()["f"]["n"])) == ("two", 1.5)


def test_the_command_send_takes_a_send_at_without_an_offset_for_utc_and_prints_that() -> None:
    words = ("--send-at", f"{time.strftime('%Y')}-12-31T09:00", "--json")
    utc = f"{time.strftime('%Y')}-12-31T09:00:00.000Z"
    assert answer(run("send", "mail", *HELLO, *words))["send_at"] == utc
    shown = run("send", "mail", *HELLO, *words[:2]).stdout
    assert f"Its send_at has no offset and counts as UTC: {utc}." in shown


def test_send_reads_the_message_from_standard_input(stage: Stage) -> None:
    item = json.dumps({"id": "s", "to": "ada@example.com", "subject": "S", "text": "T"})
    assert run("send", "mail", "--file", "-", typed=item).exit_code == 0
    assert set(stage.mailbox()) == {"s"}


def test_a_repeated_send_reports_that_the_message_exists_or_that_other_content_is_a_conflict(
    stage: Stage,
) -> None:
    first = run("send", "mail", *HELLO, "--id", "one", "--json")
    again = run("send", "mail", *HELLO, "--id", "one", "--json")
    other = run("send", "mail", *HELLO, "--id", "one", "--set", "text=Other", "--json")
    assert [answer(each)["result"] for each in (first, again, other)] == ["accepted", "existed", "conflict"]
    assert [each.exit_code for each in (first, again, other)] == [0, 0, 1]
    assert stage.mailbox()["one"]["text"] == "Hi"


def test_the_option_unless_is_read_as_channel_id_and_statuses(stage: Stage) -> None:
    words = ("--unless", "sms:code:17:delivered", "--unless", "sms:code-18:sent,delivered")
    ended = run("send", "mail", *HELLO, "--id", "x", *SOON, *words)
    assert ended.exit_code == 0, ended.stderr
    assert stage.mailbox()["x"]["unless"] == [
        {"id": "code:17", "event_type": "sms", "status": ["delivered"]},
        {"id": "code-18", "event_type": "sms", "status": ["sent", "delivered"]},
    ]


REFUSALS: list[tuple[tuple[str, ...], str]] = [
    (("mail", *HELLO, "--unless", "sms:code-17:delivered"), "unless: needs send_at"),
    (("mail", *HELLO, *SOON, "--unless", "sms:code-17"), "unless[0].id: "),
    (("mail", *HELLO, *SOON, "--unless", "sms:code-17:"), "unless[0].status: '' is not a valid status"),
    (("mail", *HELLO, *SOON, "--unless", "code-17:sent"), "unless[0].id: "),
    (("mail", "--to", "ada@", "--subject", "S", "--text", "T"), "to: 'ada@' is not a mail address"),
    (("mail", *HELLO, "--send-at", "soon"), "send_at: 'soon' is not an ISO 8601 time"),
    (("mail", *HELLO, "--callback-url", "http://x.example"), "callback_url: "),
    (
        ("sms", "--to", "6175551234", "--text", "T", "--lane", "bulk"),
        "lane: 'bulk' is not set up for sms",
    ),
    (("push", "--to", "token", "--set", "title=T"), "event_type: 'push' is not allowed here"),
    (("mail", *HELLO, "--set", "headers=x"), "--set headers: is not JSON"),
    (("mail", *HELLO, "--set", "x"), "--set 'x' is not a pair"),
    (("fxa", *HELLO), "The channel is missing or unknown."),
    (HELLO, "The channel is missing or unknown."),
    (("mail", "--file", "/nowhere.json"), "/nowhere.json cannot be read"),
    (("mail", *HELLO, "--stage", "prod"), "mailroom-prod-messages-api"),
]


def test_send_refuses_an_invalid_option_or_message_with_a_sentence_and_does_not_put_it(stage: Stage) -> None:
    for words, sentence in REFUSALS:
        result = run("send", *words)
        assert (result.exit_code, sentence in result.stderr) == (2, True), (words, result.stderr)
    assert not stage.mailbox()


@pytest.mark.parametrize(
    ("applications", "sentence"),
    [
        ("[]", "Not put: to: is a device token, and this stage has no platform application; use an ARN."),
        ('["android", "ios"]', "Not put: platform: is missing for a device token; use android or ios."),
    ],
)
def test_a_push_to_a_device_is_not_put_if_its_platform_application_is_missing_or_ambiguous(
    stage: Stage, applications: str, sentence: str
) -> None:
    stage.functions.environment |= {"LANES": '{"push": ["normal"]}', "PUSH_APPLICATIONS": applications}
    result = run("send", "push", "--to", "token", "--set", "title=T")
    assert (result.exit_code, result.stderr.strip()) == (2, sentence)
    assert not stage.mailbox()


@pytest.mark.parametrize("applications", [{"PUSH_APPLICATIONS": '["ios"]'}, {}])
def test_send_puts_a_push_to_a_device_whose_platform_application_is_clear_or_unknown(
    stage: Stage, applications: dict[str, str]
) -> None:
    stage.functions.environment |= {"LANES": '{"push": ["normal"]}', **applications}
    assert run("send", "push", "--to", "token", "--set", "title=T", "--id", "p").exit_code == 0
    assert set(stage.mailbox()) == {"p"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"id": "a",\n "to" 1}', "line 2, column 7: is not JSON"),
        ("[{}]", "mailroom messages import"),
        ('{"event_type": "sms"}', "event_type is 'sms', but the command says mail"),
    ],
)
def test_an_invalid_file_is_refused_with_a_sentence_about_the_fault(
    tmp_path: Path, text: str, sentence: str
) -> None:
    file = tmp_path / "m.json"
    file.write_text(text)
    result = run("send", "mail", "--file", str(file))
    assert result.exit_code == 2
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"status": "sent", "provider_id": "ses-1"}, 0),
        ({"status": "failed", "error": {"code": "rejected", "message": "no such sender"}}, 1),
    ],
)
def test_send_with_wait_exits_as_soon_as_the_message_has_an_outcome_and_prints_the_status(
    stage: Stage, told: dict[str, str], code: int
) -> None:
    stage.put(LEDGER, id="w", event_type="mail", **told)
    result = run("send", "mail", *HELLO, "--id", "w", "--wait", "--json")
    assert result.exit_code == code
    assert answer(result)["status"] == told["status"]


@pytest.mark.parametrize("status", ["sent", "delivered"])
def test_send_with_wait_prints_sent_for_a_message_that_already_has_a_later_status(
    stage: Stage, status: str
) -> None:
    stage.put(LEDGER, id="w", event_type="mail", status=status, provider_id="ses-1")
    assert "It is sent" in run("send", "mail", *HELLO, "--id", "w", "--wait").stdout


def test_send_with_wait_polls_until_its_time_is_over_and_returns_the_last_status(stage: Stage) -> None:
    assert run("send", "mail", *HELLO, "--id", "p").exit_code == 0
    sent = SendAnswer(id="p", event_type="mail", stage="dev", result="accepted")
    reader = reader_of(boto3.Session(), "dev")
    now, seen = 0.0, list[str]()

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now > 3:
            stage.put(LEDGER, id="p", event_type="mail", status="sending")

    ended = wait_for(reader, sent, 10, report=seen.append, clock=lambda: now, sleep=sleep)
    assert ended == SendAnswer(id="p", event_type="mail", stage="dev", result="accepted", status="sending")
    assert 8 <= now <= 10
    assert seen[0] == "ready"


def test_the_command_that_send_prints_for_the_next_step_quotes_the_id_as_one_word(stage: Stage) -> None:
    result = run("send", "mail", *HELLO, "--id", "order 42; rm x")
    assert "mailroom messages show 'order 42; rm x' --channel mail --stage dev" in result.stdout


def test_send_reads_lists_whole_numbers_and_booleans_of_the_option_set_as_json_and_keeps_other_text(
    stage: Stage,
) -> None:
    typed = {
        "lines": '[{"name": "Pen", "price": 1.5}]',
        "count": "3",
        "done": "true",
        "price": "9.50",
        "zip": "02134",
        "code": "1e5",
        "word": "NaN",
        "note": "[draft",
    }
    sets = [word for name, value in typed.items() for word in ("--set", f"{name}={value}")]
    result = run("send", "mail", *HELLO, "--id", "x", *sets)
    assert result.exit_code == 0, result.stderr
    item = stage.mailbox()["x"]
    assert item["lines"] == [{"name": "Pen", "price": Decimal("1.5")}]
    assert (item["count"], item["done"]) == (3, True)
    assert {name: item[name] for name in [*typed][3:]} == dict([*typed.items()][3:])


ORDER: dict[str, Any] = {
    "id": "news#2026#ada#1",
    "event_type": "mail",
    "to": "ada@old.example",
    "cc": ["boss@old.example"],
    "subject": "Your order",
    "text": "Hi",
    "order": {"lines": [{"name": "Pen"}]},
    "send_at": "2026-01-01T00:00:00Z",
    "expires_at": "2026-01-02T00:00:00Z",
    "ttl": 1,
    "campaign_start": {"campaign": "news", "run": "2026", "start": 1},
}


def test_send_copies_a_message_to_another_address_under_an_id_derived_from_the_first_id(stage: Stage) -> None:
    stage.put(MAILBOX, **ORDER)
    result = run("send", "--from-message", ORDER["id"], "--to", "ada@new.example", "--set", "note=again")
    assert result.exit_code == 0, result.stderr
    mailbox = stage.mailbox()
    assert mailbox.pop(ORDER["id"])["to"] == "ada@old.example"
    ((id_, copied),) = mailbox.items()
    assert re.fullmatch(r"news-2026-ada-1-again-[a-z2-9]{6}", id_)
    assert copied == {
        "id": id_,
        "event_type": "mail",
        "to": "ada@new.example",
        "subject": "Your order",
        "text": "Hi",
        "order": {"lines": [{"name": "Pen"}]},
        "note": "again",
    }


def test_the_id_of_a_copy_of_a_copied_message_is_as_long_as_the_id_of_the_copy(stage: Stage) -> None:
    stage.put(MAILBOX, **{**ORDER, "id": "m-1-again-k7wq3f"})
    assert run("send", "--from-message", "m-1-again-k7wq3f", "--to", "a@b.example").exit_code == 0
    assert sum(re.fullmatch(r"m-1-again-[a-z2-9]{6}", id_) is not None for id_ in stage.mailbox()) == 2


def test_send_refuses_to_copy_a_message_without_a_new_recipient(stage: Stage) -> None:
    stage.put(MAILBOX, **ORDER)
    result = run("send", "--from-message", ORDER["id"])
    assert result.exit_code == 2
    assert "Not put: to: is missing" in result.stderr


def test_send_refuses_to_copy_a_missing_or_ambiguous_message_with_a_remedy(stage: Stage) -> None:
    empty = run("send", "--from-message", "", "--to", "a@b.example")
    assert "The mailbox has no item of ''" in empty.stderr
    missing = run("send", "--from-message", "nosuch", "--to", "a@b.example")
    assert missing.exit_code == 2
    assert "The mailbox has no item of 'nosuch'" in missing.stderr
    stage.put(MAILBOX, id="x", event_type="mail", to="a@b.example", text="Hi", subject="Hi")
    stage.put(MAILBOX, id="x", event_type="sms", to="+16175551234", text="Hi")
    several = run("send", "--from-message", "x", "--to", "a@b.example")
    assert "mail and sms have messages with that id" in several.stderr
    assert run("send", "mail", "--from-message", "x", "--to", "b@b.example").exit_code == 0
