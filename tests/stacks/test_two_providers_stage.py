"""A stage whose mails and texts have two providers."""

import json
import re

import msgspec
import pytest

from mailroom.environment import OtherProvider, ResendSender, SesSender, SmsSender, read
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.waiting import waiting_seconds
from tests.support import ROOT
from tests.support.stacks.dashboard import bodies
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import TWO_PROVIDERS

QUEUES = "https://sqs.eu-central-1.amazonaws.com/111122223333/mailroom-dev-"
LANES = pytest.mark.parametrize("lane", ["", "-bulk"])


def sender(stage: Templates, name: str, kind: type) -> object:
    """Return the settings that a sender reads."""
    return read(kind, stage["channels"].environment(f"mailroom-dev-{name}"))


@LANES
def test_the_senders_of_each_lane_get_the_queue_of_the_other_provider(
    two_providers: Templates, lane: str
) -> None:
    first = sender(two_providers, f"send-mail{lane}", SesSender)
    second = sender(two_providers, f"send-mail{lane}-fallback", ResendSender)
    assert isinstance(first, SesSender)
    assert isinstance(second, ResendSender)
    assert first.other_provider == OtherProvider(
        name="resend",
        queue_url=f"{QUEUES}mail{lane}-fallback",
        after_tries=3,
        after_seconds=60,
        when_day_used_up=True,
    )
    assert second.other_provider == OtherProvider(name="ses", queue_url=f"{QUEUES}mail{lane}")


def test_each_mail_provider_has_its_own_rate_daily_limit_and_credentials(two_providers: Templates) -> None:
    first = sender(two_providers, "send-mail", SesSender)
    second = sender(two_providers, "send-mail-fallback", ResendSender)
    assert isinstance(first, SesSender)
    assert isinstance(second, ResendSender)
    assert (first.pace_seconds, second.pace_seconds) == (4, 2)
    assert (first.per_day, second.per_day) == ([("0001-01-01", 1000)], [("0001-01-01", 500)])
    assert (first.budget, second.budget) == ("", "mail-fallback")
    assert first.configuration_set
    assert second.resend_secret_arn
    channels = two_providers["channels"]
    assert channels.one("Lambda::Function", FunctionName="mailroom-dev-send-mail-fallback")["Handler"] == (
        "send_mail_resend.handler"
    )


def test_a_sender_may_use_only_its_own_provider_and_put_messages_only_into_the_other_queue(
    two_providers: Templates,
) -> None:
    first = two_providers["channels"].policy("mailroom-dev-send-mail")
    second = two_providers["channels"].policy("mailroom-dev-send-mail-fallback")
    assert "ses:SendEmail" in first
    assert not any("Resend" in each for each in first["secretsmanager:GetSecretValue"])
    assert not any(action.startswith("ses:") for action in second)
    assert any("Resend" in each for each in second["secretsmanager:GetSecretValue"])
    for rights, other in ((first, "mail-fallback"), (second, "mail")):
        assert rights["sqs:SendMessage"] == {f"arn:aws:sqs:eu-central-1:111122223333:mailroom-dev-{other}"}


def test_each_function_that_sends_sms_has_the_number_and_the_account_of_its_provider(
    two_providers: Templates,
) -> None:
    first = sender(two_providers, "send-sms", SmsSender)
    second = sender(two_providers, "send-sms-fallback", SmsSender)
    assert isinstance(first, SmsSender)
    assert isinstance(second, SmsSender)
    assert (first.sms_provider, first.sms_sender, first.twilio_secret_arn) == ("aws", "+12025550123", "")
    assert (second.sms_provider, second.sms_sender) == ("twilio", "+12025550199")
    assert second.callback_url
    assert second.twilio_secret_arn
    assert not second.sms_configuration_set


def test_the_stage_receives_the_events_of_both_providers_and_uses_one_list_of_stop_words(
    two_providers: Templates,
) -> None:
    feedback = two_providers["feedback"].environment("mailroom-dev-feedback")
    callbacks = two_providers["api"].environment("mailroom-dev-twilio-callbacks")
    assert feedback["STOP_WORDS"] == callbacks["STOP_WORDS"]
    assert two_providers["feedback"].all("SMSVOICE::ConfigurationSet")
    assert two_providers["api"].one("Lambda::Function", FunctionName="mailroom-dev-resend-mail-events")
    alarms = two_providers["feedback"].all("CloudWatch::Alarm")
    assert [each for each in alarms if "-ses-" in each["AlarmName"]]


def test_dispatch_and_release_send_only_to_the_queues_of_the_first_providers(
    two_providers: Templates,
) -> None:
    for name in ("dispatch", "release"):
        variables = two_providers["routing"].environment(f"mailroom-dev-{name}")
        assert "fallback" not in variables["ROUTES"]
        assert "fallback" not in str(
            two_providers["routing"].policy(f"mailroom-dev-{name}")["sqs:SendMessage"]
        )
    lines = msgspec.json.decode(two_providers["routing"].environment("mailroom-dev-release")["LINES"])
    assert lines["mail"]["per_day"] == [["0001-01-01", 1000]]


def test_the_alarm_of_waiting_messages_has_the_same_threshold_for_both_providers_unless_it_is_set() -> None:
    settings = load(with_settings(TWO_PROVIDERS), "dev")
    assert waiting_seconds(settings, "mail-bulk-fallback") == waiting_seconds(settings, "mail-bulk")
    changes = {**TWO_PROVIDERS, "monitoring.waiting_minutes": {"mail-bulk-fallback": 7}}
    assert waiting_seconds(load(with_settings(changes), "dev"), "mail-bulk-fallback") == 420


def test_only_the_queue_of_the_first_provider_has_an_alarm_of_late_codes(
    two_providers: Templates,
) -> None:
    names = [each["AlarmName"] for each in two_providers["monitoring"].all("CloudWatch::Alarm")]
    assert "mailroom-dev-mail-codes-late" in names
    assert "mailroom-dev-mail-fallback-codes-late" not in names


def test_a_stage_with_one_provider_has_no_resource_of_a_second_provider(dev: Templates) -> None:
    assert not [name for name, stack in dev.stacks.items() if "fallback" in str(stack.body).lower()]
    assert not [name for name, stack in dev.stacks.items() if "OTHER_PROVIDER" in str(stack.body)]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mail.fallback": "ses"}, "mail.fallback: 'ses' is mail.provider already"),
        ({"sms.fallback": "twilio"}, "sms.fallback: 'twilio' is sms.provider already"),
        (
            {
                "mail.fallback": "resend",
                "channels.mail.lanes.bulk.maximum_concurrency": 500,
                "channels.mail.messages_per_second": 500,
                "channels.mail.fallback": {"messages_per_second": 0.5},
            },
            "Lambda allows 900; lower it, or raise channels.mail.fallback.messages_per_second.",
        ),
        (
            {"sms.fallback": "aws"},
            "sms.fallback_sender: is missing; use a number in E.164, a sender id, or the id or ARN of a "
            "number, pool or RCS agent.",
        ),
        (
            {"sms": {"provider": "aws", "sender": "SHOP", "fallback": "twilio", "fallback_sender": "SHOP"}},
            "sms.fallback_sender: 'SHOP' is not a sender of twilio",
        ),
        (
            {"mail.fallback": "resend", "channels.mail.fallback": {"per_day": 20}},
            "channels.mail.fallback.per_day: 20 with a reserve of 0.25 leaves 15 for bulk",
        ),
        (
            {
                "sms": {
                    "provider": "aws",
                    "sender": "SHOP",
                    "fallback": "twilio",
                    "fallback_sender": "MG" + "a" * 32,
                },
                "channels.sms.fallback": {"messages_per_second": 100},
            },
            "would throttle status callbacks, and Twilio does not repeat callbacks that got 429; use 1667 or "
            "more (5 x channels.sms.fallback.messages_per_second 100",
        ),
        (
            {"mail.fallback": "resend", "retention.mailbox_days": 20},
            "retention.mailbox_days: 20 would lose the item",
        ),
    ],
)
def test_an_impossible_setting_of_a_second_provider_is_refused(
    changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        load(with_settings(changes), "dev")
    assert sentence in str(refusal.value)


def test_the_base_url_of_sms_is_that_of_the_second_provider_if_the_first_does_not_use_one() -> None:
    url = "https://api.dublin.ie1.twilio.com"
    settings = load(with_settings({"sms": {**TWO_PROVIDERS["sms"], "base_url": url}}), "dev")
    assert settings.sms_by("twilio").url == url


def test_a_second_provider_of_a_channel_that_the_stage_does_not_have_is_ignored() -> None:
    sms = {"provider": "twilio", "sender": "+12025550123", "fallback": "aws", "fallback_sender": "SHOP"}
    settings = load(with_settings({"sms": sms, "channels.sms": REMOVED}), "dev")
    assert settings.fallbacks == {}


def test_the_graph_of_the_daily_limit_counts_the_first_providers_messages_alone(
    two_providers: Templates,
) -> None:
    (days,) = re.findall(r"RUNNING_SUM.*?300\)", json.dumps(bodies(two_providers)))
    assert "send-mail-bulk" in days
    assert "fallback" not in days


@pytest.mark.parametrize(
    ("budget", "services"),
    [
        ("mail", {"send-mail", "send-mail-bulk", "collect"}),
        ("mail-fallback", {"send-mail-fallback", "send-mail-bulk-fallback"}),
    ],
)
def test_the_alarm_of_a_used_up_daily_limit_covers_the_functions_of_its_own_provider(
    two_providers: Templates, budget: str, services: set[str]
) -> None:
    name = f"mailroom-dev-{budget}-day-used-up-warning"
    alarm = two_providers["monitoring"].one("CloudWatch::Alarm", AlarmName=name)
    metrics = [each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each]
    dimensions = [each for metric in metrics for each in metric["Dimensions"]]
    assert {each["Value"] for each in dimensions if each["Name"] == "service"} == services


@pytest.mark.parametrize("queue", ["mail", "mail-bulk", "sms"])
def test_an_alarm_rings_if_messages_go_to_the_second_provider_in_three_of_twelve_periods(
    two_providers: Templates, queue: str
) -> None:
    name = f"mailroom-dev-{queue}-fallback-used-warning"
    alarm = two_providers["monitoring"].one("CloudWatch::Alarm", AlarmName=name)
    assert (
        alarm["MetricName"],
        alarm["Threshold"],
        alarm["EvaluationPeriods"],
        alarm["DatapointsToAlarm"],
    ) == (
        "ToOtherProvider",
        1,
        12,
        3,
    )
    services = [each["Value"] for each in alarm["Dimensions"] if each["Name"] == "service"]
    assert services == [f"send-{queue}"]
    assert "`mailroom docs fallback-used`" in alarm["AlarmDescription"]
    assert (ROOT / "docs" / "alarms" / "fallback-used.md").exists()
