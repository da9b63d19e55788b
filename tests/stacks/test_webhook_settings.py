"""Webhooks that could not be sent as promised stop synth with one sentence."""

import pytest

from tests.support.stacks.refusals import dev_with, refusal_of_setting


@pytest.mark.parametrize("network", ["10.1.0.1/16", "intranet"])
def test_an_allowed_network_that_is_not_a_cidr_block_is_refused(network: str) -> None:
    assert refusal_of_setting("webhook.allowed_networks", [network]) == (
        f"mailroom.dev.webhook.allowed_networks.0: {network!r} is not a CIDR block without host bits; use "
        "one such as 10.1.0.0/16."
    )


@pytest.mark.parametrize("network", ["10.0.0.0/8", "127.0.0.0/8", "fd12:3456::/32", "0.0.0.0/0", "192.0.2.7"])
def test_a_private_or_public_network_of_any_size_may_be_allowed(network: str) -> None:
    assert dev_with("webhook.allowed_networks", [network]).webhook.allowed_networks == (network,)
