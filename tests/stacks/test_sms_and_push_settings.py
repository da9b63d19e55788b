"""SMS, push and feedback that could not work stop synth with one sentence."""

from typing import Any

import pytest

from mailroom_stacks.settings.feedback import feedback_rules
from mailroom_stacks.settings.load import load, with_providers
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import STAGES, dev_with, refusal_of_setting, with_settings
from tests.support.stacks.variants import ANDROID, AWS, IOS, NEWS, PUSH, PUSH_ROW, TWILIO

SERVICE = "MG" + "0" * 32


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "sms.default_region",
            "UK",
            "'UK' is not a country; write its ISO 3166 code in two capitals, such as US or GB.",
        ),
        (
            "sms.default_region",
            "us",
            "'us' is not a country; write its ISO 3166 code in two capitals, such as US or GB.",
        ),
        ("sms.messaging_service_sid", "MG123", "'MG123' should match pattern '^MG[0-9a-f]{32}$'."),
        (
            "api.public_url",
            "https://example.com/mail",
            "'https://example.com/mail' should match pattern '^(https://[A-Za-z0-9.-]+(:[0-9]+)?|providers)$'.",
        ),
    ],
)
def test_the_error_about_a_wrong_value_names_its_setting_and_the_valid_values(
    key: str, value: object, said: str
) -> None:
    assert refusal_of_setting(key, value) == f"mailroom.dev.{key}: {said}"


def test_the_error_about_a_stop_word_without_letters_and_digits_names_its_place() -> None:
    assert refusal_of_setting("sms.stop_words", ["arrêt", "🛑!"]) == (
        "mailroom.dev.sms.stop_words.1: '🛑!' needs a letter or a digit; case, spaces and punctuation are "
        "ignored."
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "sms",
            None,
            "sms: is missing, but channels.sms needs it; add sms, or remove channels.sms.",
        ),
        (
            "channels.push",
            PUSH_ROW,
            "push: is missing, but channels.push needs it; add push, or remove channels.push.",
        ),
        (
            "sms.sender",
            None,
            "sms.sender: twilio needs exactly one of sender and messaging_service_sid; use a "
            "number of yours in E.164, such as +12025550123.",
        ),
        (
            "sms.messaging_service_sid",
            SERVICE,
            "sms.sender: twilio needs exactly one of sender and messaging_service_sid; use a "
            "number of yours in E.164, such as +12025550123.",
        ),
        (
            "sms.sender",
            "MAILROOM",
            "sms.sender: 'MAILROOM' is not a sender of twilio; use a number of yours in E.164, such as "
            "+12025550123.",
        ),
        (
            "sms",
            {**AWS, "sender": None},
            "sms.sender: is missing; aws needs a number in E.164, a sender id, or the id or ARN of a "
            "number, pool or RCS agent.",
        ),
        (
            "channels.sms.messages_per_second",
            100.5,
            "api.requests_per_second: 1000 would throttle status callbacks, and Twilio does not repeat "
            "callbacks that got 429; use 1677 or more (5 x channels.sms.messages_per_second 100.5 / their "
            "share 0.3).",
        ),
        (
            "monitoring.concurrency_quota",
            10,
            "feedback.maximum_concurrency: 10 + webhook.maximum_concurrency 10 = 20 functions for events and "
            "callbacks must be under 8, at which the alarm concurrency rings (0.8 x "
            "monitoring.concurrency_quota 10), so that some are left for sending; use 7 or less in all, or "
            "have the account's quota raised.",
        ),
        (
            "webhook.maximum_concurrency",
            790,
            "feedback.maximum_concurrency: 10 + webhook.maximum_concurrency 790 = 800 functions for events "
            "and callbacks must be under 800, at which the alarm concurrency rings (0.8 x "
            "monitoring.concurrency_quota 1000), so that some are left for sending; use 799 or less in all, "
            "or have the account's quota raised.",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_with_the_reason_and_a_remedy(
    key: str, value: object, said: str
) -> None:
    assert refusal_of_setting(key, value) == f"mailroom.dev.{said}"


def refused_push(push: dict[str, Any]) -> str:
    """Return the error of a section `push` whose row exists."""
    stages = with_settings({"channels.push": PUSH_ROW})
    stages["dev"]["push"] = push
    with pytest.raises(SettingsError) as refused:
        load(stages, "dev")
    return str(refused.value)


def in_region(region: str | None, push: dict[str, Any]) -> dict[str, Any]:
    """The stages, dev with pushes and a region."""
    stages = with_settings({"channels.push": PUSH_ROW})
    stages["dev"]["push"] = push
    stages["dev"]["deployment"]["region"] = region
    return stages


@pytest.mark.parametrize(
    ("push", "said"),
    [
        (
            {"platform_applications": {"android": ANDROID.replace("eu-central-1", "us-east-1"), "ios": IOS}},
            "push.platform_applications.android: is in region us-east-1, and the stage in "
            "deployment.region eu-central-1; use one in eu-central-1.",
        ),
        (
            {"topics": [NEWS, NEWS.replace("eu-central-1", "eu-central-2")]},
            "push.topics.1: is in region eu-central-2, and the stage in "
            "deployment.region eu-central-1; use one in eu-central-1.",
        ),
    ],
)
def test_a_push_application_or_topic_in_another_region_than_the_stage_is_refused(
    push: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load(in_region("eu-central-1", push), "dev")
    assert str(refused.value) == f"mailroom.dev.{said}"
    assert load(in_region(None, push), "dev").push is not None
    assert load(in_region("eu-central-1", PUSH), "dev").push is not None


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sns:eu-central-1:111122223333:shop",
        "arn:aws:sns:eu-central-1:111122223333:app/ADM/shop",
        "arn:aws:sns:eu-central-1:111122223333:endpoint/GCM/shop/1",
        "shop",
    ],
)
def test_a_push_application_of_a_platform_other_than_apples_or_firebases_is_refused(arn: str) -> None:
    said = refused_push({"platform_applications": {"shop": arn}})
    assert said.startswith(f"mailroom.dev.push.platform_applications.shop: {arn!r} should match pattern ")


@pytest.mark.parametrize("arn", [IOS, "arn:aws:sns:eu-central-1:111122223333:news.fifo", "news"])
def test_a_push_topic_that_is_not_a_standard_topic_of_sns_is_refused(arn: str) -> None:
    said = refused_push({"topics": [arn]})
    assert said.startswith(f"mailroom.dev.push.topics.0: {arn!r} should match pattern '^arn:")


def test_the_name_of_a_push_application_that_is_not_a_plain_word_is_refused() -> None:
    assert "'i OS' should match pattern" in refused_push({"platform_applications": {"i OS": IOS}})


@pytest.mark.parametrize(
    "sms",
    [
        TWILIO,
        {"provider": "twilio", "messaging_service_sid": SERVICE, "default_region": "DE"},
        {**TWILIO, "base_url": "https://api.dublin.ie1.twilio.com"},
        AWS,
        {"provider": "aws", "sender": "pool-" + "0" * 32},
        {"provider": "aws", "sender": "arn:aws:sms-voice:us-east-1:111122223333:sender-id/SHOP/DE"},
        {"provider": "aws", "sender": "arn:aws:sms-voice:us-east-1:111122223333:rcs-agent/rcs-a1b2c3d4"},
        {"provider": "aws", "sender": "rcs-a1b2c3d4"},
    ],
)
def test_twilio_and_aws_are_accepted_as_providers_of_sms_with_their_settings(sms: dict[str, Any]) -> None:
    assert dev_with("sms", sms).sms is not None


@pytest.mark.parametrize("sender", ["", "+1 202 555 0123", "TWELVELETTER", "arn:aws:sns:us-east-1:1:x"])
def test_an_invalid_sms_sender_is_refused(sender: str) -> None:
    said = refusal_of_setting("sms.sender", sender)
    assert said.startswith(f"mailroom.dev.sms.sender: {sender!r} should match pattern ")


def test_the_simulators_of_the_sms_and_fax_providers_are_below_one_address() -> None:
    placed = with_providers(load(STAGES, "local"), "http://127.0.0.1:4711")
    assert placed.sms is not None
    assert placed.fax is not None
    assert (placed.sms.url, placed.fax.url) == (
        "http://127.0.0.1:4711/twilio",
        "http://127.0.0.1:4711/signalwire",
    )


def test_a_stage_with_twilios_simulator_needs_a_valid_address() -> None:
    stages = with_settings({"sms.base_url": "providers"})
    with pytest.raises(SettingsError) as refused:
        with_providers(load(stages, "dev"), "127.0.0.1:4711")
    assert str(refused.value) == (
        "mailroom.dev.sms.base_url: is 'providers', which needs a URL in the context key providers, not "
        "'127.0.0.1:4711'; run the app with -c providers=http://HOST:PORT."
    )


def test_the_numbers_of_the_feedback_queue_in_stage_dev_are_those_of_the_formulas() -> None:
    dev = load(STAGES, "dev")
    rules = feedback_rules(dev.times)
    assert rules.visibility == 6 * 60 + 2
    # Half a visibility at least between receives: 80 of them cover four hours.
    assert rules.max_receives == 1 + 80 + 5
