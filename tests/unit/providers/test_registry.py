"""Providers of own channels beside those of Mailroom."""

import pytest
from msgspec import structs

from mailroom.channels.channel import Provider
from mailroom.channels.contracts import CHANNELS
from mailroom.providers import built_in, providers_of
from mailroom.providers.registry import with_own
from mailroom.providers.webhooks.sender import StandardWebhooks
from mailroom_stacks.settings.channels import SECRETS

OWN = structs.replace(CHANNELS["sms"], providers={"twilio": Provider(title="Twilio (WhatsApp)")})


def test_a_teams_own_channel_does_not_change_a_built_in_provider_of_the_same_name_as_its_own() -> None:
    assert with_own({"whatsapp": OWN}) == built_in()


def test_the_provider_of_a_teams_own_channel_is_assigned_to_that_channel() -> None:
    own = structs.replace(OWN, providers={"slack": Provider(title="Slack")})
    assert with_own({"chat": own})["slack"].channel == "chat"


def test_the_webhook_channel_has_only_the_provider_that_its_adapter_names() -> None:
    assert [*providers_of("webhook")] == [StandardWebhooks.provider]


def test_a_provider_that_is_given_as_a_string_raises_an_error_that_names_its_channel() -> None:
    own = structs.replace(OWN, providers={"slack": "Slack"})
    with pytest.raises(TypeError, match=r"channel chat: providers\['slack'\] must be a Provider"):
        with_own({"chat": own})


def test_the_channel_names_that_may_not_have_a_setting_secret_are_the_six_that_mailroom_uses() -> None:
    assert {"mail", "sms", "push", "unsubscribe", "twilio", "resend"} == SECRETS
