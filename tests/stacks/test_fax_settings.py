"""A fax gateway that could not work stops synth with one sentence."""

from typing import Any

import pytest

from mailroom_stacks.settings.load import load, with_providers
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import REMOVED, STAGES, dev_with, refusal_of_setting


@pytest.mark.parametrize("sender", ["12025550123", "+02025550123", "+1 202 555 0123", "+1202555012345678"])
def test_a_fax_sender_that_is_not_a_number_in_e164_is_refused(sender: str) -> None:
    said = refusal_of_setting("fax.senders", ["+12025550123", sender])
    assert said.startswith(f"mailroom.dev.fax.senders.1: {sender!r} should match pattern ")


@pytest.mark.parametrize(
    ("fax", "url"),
    [
        ({"provider": "signalwire", "space": "acme"}, "https://acme.signalwire.com"),
        ({"provider": "signalwire", "base_url": "https://eu.example.com/v1"}, "https://eu.example.com/v1"),
        ({"provider": "telnyx", "connection_id": "1"}, "https://api.telnyx.com"),
        (
            {"provider": "telnyx", "connection_id": "1", "base_url": "https://api.telnyx.eu"},
            "https://api.telnyx.eu",
        ),
    ],
)
def test_the_url_of_a_fax_provider_comes_from_its_space_its_base_url_or_its_default(
    fax: dict[str, Any], url: str
) -> None:
    found = dev_with("fax", {**fax, "senders": ["+12025550123"]}).fax
    assert found is not None
    assert found.url == url


def test_the_settings_of_a_stage_without_a_fax_gateway_are_accepted() -> None:
    assert dev_with("fax", None).fax is None
    assert dev_with("fax", REMOVED).fax is None


def test_a_stage_with_real_providers_ignores_the_address_of_simulators() -> None:
    dev = load(STAGES, "dev")
    assert with_providers(dev, "http://127.0.0.1:4711") == dev
    assert with_providers(dev, None) == dev


@pytest.mark.parametrize("told", [None, "127.0.0.1:4711", "http://127.0.0.1:4711/", 5])
def test_a_stage_with_simulators_is_refused_without_their_valid_address_in_the_context(told: object) -> None:
    with pytest.raises(SettingsError) as refused:
        with_providers(load(STAGES, "local"), told)
    assert str(refused.value) == (
        "mailroom.local.sms.base_url: is 'providers', which needs a URL in the context key providers, not "
        f"{told!r}; run the app with -c providers=http://HOST:PORT."
    )
