"""Suppressed people at the command line: what is printed, what is asked, and what is lifted where."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from mailroom.recipients.choices import Suppression
from mailroom_ops import cli
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.campaign import FakeFunctions
from tests.support.ops.dead_letters import FakeSes
from tests.support.ops.run_app import run_app
from tests.support.ops.shared import Session, client, make_deeds, make_table, suppressions_of_dev

AT = 1_795_251_600_000  # 2026-11-21T09:00:00Z
ADA = "ada@example.com"
NUMBER = "+16175551234"


@pytest.fixture
def ses_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSes]:
    """The account: an empty table, and SES."""
    with mock_aws(), in_memory_dynamodb():
        make_table(client("dynamodb"), "mailroom-dev-suppressions", "recipient", "channel")
        make_table(client("dynamodb"), "mailroom-dev-preferences", "recipient", "topic")
        make_deeds(client("dynamodb"))
        ses = FakeSes()
        session = Session({"sesv2": ses, "lambda": FakeFunctions()})
        monkeypatch.setattr("boto3.Session", lambda: session)
        yield ses


def on_list(recipient: str = ADA, channel: str = "mail", **changes: Any) -> Suppression:
    """Mark a recipient."""
    known = {"reason": "bounce", "at": AT, "detail": "hard bounce (General)", "message_id": "m-1"}
    suppression = Suppression(recipient=recipient, channel=channel, **{**known, **changes})
    assert suppressions_of_dev().mark(suppression)
    return suppression


run_people = partial(run_app, cli.app, "people", columns=160)


# list


@pytest.mark.usefixtures("ses_account")
def test_people_list_shows_the_newest_suppression_first_and_the_total() -> None:
    on_list()
    on_list(NUMBER, "sms", at=AT + 60_000, reason="gone", detail="30006")
    result = run_people("list")
    assert result.exit_code == 0
    head, rule, *rest = [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]
    assert head == "since (UTC), channel reason recipient"
    assert set(rule) == {"─"}
    assert rest == [
        f"2026-11-21 09:01:00 sms gone {NUMBER} by message m-1 30006",
        f"2026-11-21 09:00:00 mail bounce {ADA} by message m-1 hard bounce (General)",
        "2 on the suppression list of dev.",
    ]


@pytest.mark.usefixtures("ses_account")
def test_a_number_that_sent_stop_is_shown_with_the_called_number_and_can_be_lifted() -> None:
    on_list(NUMBER, "sms", reason="stop", detail="STOP sent to +12025550123", message_id="")
    shown = run_people("show", NUMBER)
    assert shown.exit_code == 0
    assert shown.stdout == (
        f"{NUMBER} has received no sms since 2026-11-21 09:00:00 UTC: the recipient opted out "
        "(STOP sent to +12025550123).\n"
    )
    (found,) = json.loads(run_people("list", "--json").stdout)["suppressions"]
    assert (found["reason"], found["message_id"]) == ("stop", "")
    assert run_people("allow", NUMBER, "--channel", "sms", "--yes").exit_code == 0
    assert run_people("show", NUMBER).exit_code == 1


@pytest.mark.usefixtures("ses_account")
def test_people_list_with_a_channel_leaves_the_other_channels_out() -> None:
    on_list()
    on_list(NUMBER, "sms")
    assert "1 on the suppression list" in run_people("list", "--channel", "sms").stdout
    assert ADA not in run_people("list", "--channel", "sms").stdout


@pytest.mark.usefixtures("ses_account")
def test_people_list_prints_every_field_of_a_suppression_as_json() -> None:
    on_list()
    (found,) = json.loads(run_people("list", "--json").stdout)["suppressions"]
    assert found == {
        "recipient": ADA,
        "channel": "mail",
        "reason": "bounce",
        "since": "2026-11-21T09:00:00.000Z",
        "detail": "hard bounce (General)",
        "message_id": "m-1",
        "actor": "",
    }


@pytest.mark.usefixtures("ses_account")
def test_people_list_for_a_period_shows_its_newest_entries_up_to_the_limit_and_their_total() -> None:
    for second in range(1, 6):
        on_list(f"p{second}@example.com", at=1_000 * second)
    period = ("list", "--since", "1970-01-01T00:00:02Z", "--until", "1970-01-01T00:00:05Z")
    answer = json.loads(run_people(*period, "--json").stdout)
    assert [each["recipient"][:2] for each in answer["suppressions"]] == ["p4", "p3", "p2"]
    answer = json.loads(run_people(*period, "--limit", "2", "--json").stdout)
    assert ([each["recipient"][:2] for each in answer["suppressions"]], answer["total"]) == (["p4", "p3"], 3)
    cut = run_people(*period, "--limit", "2").stdout.splitlines()[-2:]
    assert cut == ["The newest 2 of 3 on the suppression list of dev.", "More: --limit 3"]
    assert "More" not in run_people(*period).stdout
    refused = run_people("list", "--since", "2d", "--until", "3d")
    assert (refused.exit_code, "after --until; use an earlier time." in refused.stderr) == (2, True)


# show


@pytest.mark.usefixtures("ses_account")
def test_people_show_finds_a_suppressed_address_in_another_spelling_and_prints_the_reason() -> None:
    on_list()
    result = run_people("show", " Ada Lovelace <ADA@Example.com> ")
    assert result.exit_code == 0
    assert result.stdout == (
        "ada@example.com has received no mail since 2026-11-21 09:00:00 UTC: a message to it bounced "
        "permanently (hard bounce (General)). Caused by message m-1.\n"
    )


@pytest.mark.usefixtures("ses_account")
def test_the_suppression_of_a_number_can_be_lifted_under_another_form_of_the_number() -> None:
    on_list("+5491123456789", "sms", reason="complaint", detail="", message_id="")
    assert run_people("allow", "+54 11 15 2345-6789", "--channel", "sms", "--yes").exit_code == 0
    assert list(suppressions_of_dev().listed()) == []


@pytest.mark.usefixtures("ses_account")
def test_people_show_exits_with_1_if_the_recipient_is_neither_suppressed_nor_opted_out() -> None:
    result = run_people("show", ADA)
    sentence = f"{ADA} is not suppressed in dev, and has not opted out of a topic.\n"
    assert (result.exit_code, result.stdout) == (1, sentence)
    result = run_people("show", ADA, "--json")
    assert (result.exit_code, result.stdout) == (1, '{"stage":"dev","suppressions":[],"opt_outs":[]}\n')


# stop


@pytest.mark.usefixtures("ses_account")
def test_people_stop_stores_the_reason_of_a_suppression_and_a_second_stop_exits_with_1() -> None:
    words = ("stop", "Ada <ADA@Example.com>", "--channel", "mail", "--why", "asked by phone")
    result = run_people(*words)
    assert result.exit_code == 0
    assert result.stdout.endswith(": moto put it on the list (asked by phone).\n")
    (entry,) = suppressions_of_dev().listed()
    assert (entry.recipient, entry.reason, entry.detail) == (ADA, "operator", "asked by phone")
    assert run_people(*words).exit_code == 1
    assert [*suppressions_of_dev().listed()] == [entry]


@pytest.mark.usefixtures("ses_account")
def test_people_stop_prints_the_suppression_and_the_opt_out_of_the_recipient_as_people_show_does() -> None:
    on_list()
    result = run_people("stop", ADA, "--topic", "news")
    mail, news = result.stdout.splitlines()
    assert mail.startswith(f"{ADA} has received no mail since 2026-11-21 09:00:00 UTC: a message to it")
    assert news.startswith(f"{ADA} has received no news since ")
    assert run_people("show", ADA).stdout == result.stdout


@pytest.mark.usefixtures("ses_account")
@pytest.mark.parametrize("command", ["stop", "allow"])
@pytest.mark.parametrize("options", [(), ("--topic", "news", "--channel", "mail")])
def test_people_stop_and_people_allow_require_either_a_topic_or_a_channel(
    command: str, options: tuple[str, ...]
) -> None:
    result = run_people(command, ADA, "--why", "asked", *options)
    assert result.exit_code == 2
    assert "Use either --topic or --channel: --topic for messages of one topic" in result.stderr
    assert [*suppressions_of_dev().listed()] == []


@pytest.mark.usefixtures("ses_account")
@pytest.mark.parametrize("options", [(), ("--why", " ")])
def test_people_stop_refuses_a_channel_without_the_option_why(options: tuple[str, ...]) -> None:
    result = run_people("stop", ADA, "--channel", "mail", *options)
    assert (result.exit_code, "--channel needs --why" in result.stderr) == (2, True)
    assert [*suppressions_of_dev().listed()] == []


@pytest.mark.usefixtures("ses_account")
def test_people_stop_refuses_a_recipient_that_is_invalid_for_the_channel() -> None:
    result = run_people("stop", "ada at example", "--channel", "mail", "--why", "asked")
    assert (result.exit_code, "is not a mail address" in result.stderr) == (2, True)
    assert [*suppressions_of_dev().listed()] == []


# allow


def test_people_allow_shows_the_reason_asks_and_removes_an_address_from_both_suppression_lists(
    ses_account: FakeSes,
) -> None:
    on_list()
    ses_account.listed.add(ADA)
    result = run_people("allow", ADA, "--channel", "mail", typed="y\n")
    assert result.exit_code == 0
    assert "bounced permanently" in result.stdout
    assert (
        "Remove it from the suppression list of dev for mail and from SES's own list, which" in result.stderr
    )
    assert f"{ADA} was removed from SES's own list." in result.stdout
    assert f"{ADA} gets mail of dev again." in result.stdout
    assert not suppressions_of_dev().find("mail", [ADA])
    assert not ses_account.listed


def test_people_allow_does_not_lift_a_suppression_without_a_confirmation(ses_account: FakeSes) -> None:
    on_list()
    result = run_people("allow", ADA, "--channel", "mail", typed="\n")
    assert result.exit_code == 1
    assert suppressions_of_dev().find("mail", [ADA])
    assert not ses_account.asked


@pytest.mark.parametrize(
    "fault",
    [
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Delete"),
        EndpointConnectionError(endpoint_url="https://email.example/"),
    ],
)
def test_people_allow_reports_a_refusal_of_ses_although_it_has_lifted_mailrooms_own_suppression(
    ses_account: FakeSes, fault: Exception
) -> None:
    on_list()
    ses_account.fault = fault
    result = run_people("allow", ADA, "--channel", "mail", "--yes")
    assert result.exit_code == 1
    assert f"SES did not remove {ADA} from its suppression list" in result.stdout
    assert "run this command again" in result.stdout
    assert f"{ADA} gets mail of dev again." in result.stdout
    assert not suppressions_of_dev().find("mail", [ADA])


def test_people_allow_removes_an_address_that_is_only_on_the_suppression_list_of_ses(
    ses_account: FakeSes,
) -> None:
    ses_account.listed.add("Ada@example.com")
    result = run_people("allow", "Ada@Example.com", "--channel", "mail", "--yes")
    assert result.exit_code == 1
    assert not (ses_account.listed - {"Ada@example.com"})
    result = run_people("allow", "Ada@example.com", "--channel", "mail", typed="y\n")
    assert result.exit_code == 0
    assert "Remove it from SES's own list?" in result.stderr
    assert not ses_account.listed


def test_people_allow_lifts_the_suppression_of_a_number_without_a_request_to_ses(
    ses_account: FakeSes,
) -> None:
    on_list(NUMBER, "sms")
    on_list(NUMBER, "push")
    result = run_people("allow", NUMBER, "--channel", "sms", typed="y\n")
    assert result.exit_code == 0
    assert "Remove it from the suppression list of dev for sms?" in result.stderr
    assert not ses_account.asked
    assert not suppressions_of_dev().find("sms", [NUMBER])
    assert suppressions_of_dev().find("push", [NUMBER])


def test_people_allow_with_json_prints_only_the_json_to_standard_output(ses_account: FakeSes) -> None:
    on_list()
    result = run_people("allow", ADA, "--channel", "mail", "--yes", "--json")
    answer = json.loads(result.stdout)
    assert [each["recipient"] for each in answer["suppressions"]] == [ADA]
    assert (answer["stage"], answer["opt_outs"], answer["ses"]) == ("dev", [], "not_listed")
    assert f"{ADA} gets mail of dev again." in result.stderr
    on_list(NUMBER, "sms")
    refused = run_people("allow", NUMBER, "--channel", "sms", "--json", typed="n\n")
    assert (refused.exit_code, "{" in refused.stdout) == (1, False)
    assert suppressions_of_dev().find("sms", [NUMBER])


def test_people_allow_lifts_an_invalid_suppression_by_the_name_that_people_list_shows(
    ses_account: FakeSes,
) -> None:
    on_list("not an address")
    assert run_people("allow", "not an address", "--channel", "mail", "--yes").exit_code == 0
    assert not suppressions_of_dev().find("mail", ["not an address"])


@pytest.mark.usefixtures("ses_account")
def test_the_commands_of_people_refuse_a_channel_without_a_suppression_list_and_name_the_others() -> None:
    for command in ("stop", "allow", "list"):
        recipient = () if command == "list" else (ADA,)
        result = run_people(command, *recipient, "--channel", "fax")
        assert (result.exit_code, "'fax' is not one of mail, sms, push." in result.stderr) == (2, True)
