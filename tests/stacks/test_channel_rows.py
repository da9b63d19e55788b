"""A row of channels that says where its provider is and what the secret with its credentials holds."""

from typing import Any

import pytest

from mailroom_stacks.channels import NEEDS
from mailroom_stacks.settings.channels import WITH_OWN_NEEDS
from mailroom_stacks.settings.load import load, with_providers
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import refusal_of_setting, with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import CHAT

SENDERS = ("mailroom-dev-send-mail-resend", "mailroom-dev-send-mail-resend-bulk")


@pytest.fixture
def chats() -> dict[str, Any]:
    """The rows of dev, with one that a provider's API is named in."""
    return with_settings({"channels.chat": CHAT})


def test_each_sender_of_a_custom_channel_has_the_providers_url_and_may_read_its_secret(
    otherwise: Templates, lean: Templates
) -> None:
    channels = otherwise["channels"]
    secret = channels.one("SecretsManager::Secret", Name="mailroom-dev-chat")
    assert secret["Description"] == CHAT["secret"]
    for function in SENDERS:
        environment = channels.environment(function)
        assert environment["PROVIDER_URL"] == CHAT["base_url"]
        assert environment["PROVIDER_SECRET_ARN"] == channels.output("ChatSecretArn")
        (readable,) = channels.policy(function)["secretsmanager:GetSecretValue"]
        assert readable == channels.output("ChatSecretArn")
    without = lean["channels"].environment("mailroom-dev-send-push")
    assert not {"PROVIDER_URL", "PROVIDER_SECRET_ARN", "SUPPRESSIONS_TABLE"} & without.keys()


def test_the_sender_of_a_suppressible_channel_may_read_preferences_but_write_only_suppressions(
    otherwise: Templates,
) -> None:
    channels = otherwise["channels"]
    for function in SENDERS:
        environment, policy = channels.environment(function), channels.policy(function)
        assert "Suppressions" in environment["SUPPRESSIONS_TABLE"]
        assert "Preferences" in environment["PREFERENCES_TABLE"]
        _ledger, preferences, _runs, suppressions = sorted(policy["dynamodb:BatchGetItem"])
        assert "Suppressions" in suppressions
        assert "Preferences" in preferences
        assert suppressions in policy["dynamodb:UpdateItem"]
        assert preferences not in policy["dynamodb:UpdateItem"]


def test_the_address_of_a_custom_channels_simulator_ends_with_the_channels_name(
    chats: dict[str, Any],
) -> None:
    chats["dev"]["channels"]["chat"]["base_url"] = "providers"
    settings = load(chats, "dev")
    placed = with_providers(settings, "http://127.0.0.1:4711").channels
    assert placed["chat"].base_url == "http://127.0.0.1:4711/chat"
    assert placed["mail"] == settings.channels["mail"]
    with pytest.raises(SettingsError, match=r"^mailroom\.dev\.channels\.chat\.base_url: is 'providers', "):
        with_providers(settings, None)


@pytest.mark.parametrize("url", ["http://slack.com/api", "https://slack.com/api/", "slack.com"])
def test_a_base_url_without_https_or_with_a_slash_at_its_end_is_refused(url: str) -> None:
    assert refusal_of_setting("channels.chat", {**CHAT, "base_url": url}).startswith(
        f"mailroom.dev.channels.chat.base_url: {url!r} should match pattern "
    )


def test_a_local_server_is_accepted_as_a_provider_in_the_stage_local_only(chats: dict[str, Any]) -> None:
    row = {**CHAT, "base_url": "http://127.0.0.1:9999/chat", "messages_per_second": 1000}
    for stage in ("dev", "local"):
        chats[stage]["channels"] = {"chat": row}
    assert load(chats, "local").channels["chat"].base_url == row["base_url"]
    with pytest.raises(SettingsError, match=r"^mailroom\.dev\.channels\.chat\.base_url: .* use https\.$"):
        load(chats, "dev")


@pytest.mark.parametrize("event_type", ["mail", "twilio", "unsubscribe"])
def test_the_secret_of_a_channel_under_a_reserved_name_is_refused(event_type: str) -> None:
    assert refusal_of_setting(f"channels.{event_type}", CHAT) == (
        f"mailroom.dev.channels.{event_type}.secret: the name {event_type!r} is reserved for Mailroom; "
        "remove the secret, or rename the channel."
    )


def test_the_settings_module_lists_the_channels_that_have_own_needs_in_the_channels_stack() -> None:
    assert {*WITH_OWN_NEEDS} == NEEDS.keys()
