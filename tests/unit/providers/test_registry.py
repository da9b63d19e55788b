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


def test_an_own_channel_with_a_provider_of_the_same_name_does_not_change_the_built_in_provider() -> None:
    assert with_own({"whatsapp": OWN}) == built_in()


def test_a_provider_of_an_own_channel_has_the_channel() -> None:
    own = structs.replace(OWN, providers={"slack": Provider(title="Slack")})
    assert with_own({"chat": own})["slack"].channel == "chat"


def test_the_name_of_webhooks_in_the_ledger_is_that_of_the_provider_of_their_channel() -> None:
    assert [*providers_of("webhook")] == [StandardWebhooks.provider]


def test_a_provider_that_is_only_a_name_is_an_error_that_names_the_channel() -> None:
    own = structs.replace(OWN, providers={"slack": "Slack"})
    with pytest.raises(TypeError, match=r"channel chat: providers\['slack'\] must be a Provider"):
        with_own({"chat": own})


def test_own_channels_may_have_a_secret_unless_mailroom_has_one_of_that_name() -> None:
    assert {"mail", "sms", "push", "unsubscribe", "twilio", "resend"} == SECRETS
