"""Webhooks that could not be sent as promised stop synth with one sentence."""

import pytest

from tests.support.stacks.refusals import accepted, refusal


@pytest.mark.parametrize("network", ["10.1.0.1/16", "intranet"])
def test_a_network_that_is_not_in_cidr_is_refused(network: str) -> None:
    assert refusal("webhook.allowed_networks", [network]) == (
        f"mailroom.dev.webhook.allowed_networks.0: {network!r} is not a CIDR block without host bits; use "
        "one such as 10.1.0.0/16."
    )


@pytest.mark.parametrize("network", ["10.0.0.0/8", "127.0.0.0/8", "fd12:3456::/32", "0.0.0.0/0", "192.0.2.7"])
def test_a_network_that_holds_more_than_metadata_may_be_opened(network: str) -> None:
    assert accepted("webhook.allowed_networks", [network]).webhook.allowed_networks == (network,)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "webhook.delays_seconds",
            [39_600] * 8,
            "webhook.delays_seconds: leads to 9 receives, which may take 320040 s (the longest wait or "
            "visibility timeout after each); the limit is 259200 s, one day less than the 4 days after "
            "which SQS deletes a message; lower it.",
        ),
    ],
)
def test_numbers_that_do_not_fit_together_are_named_with_their_formula(
    key: str, value: object, said: str
) -> None:
    assert refusal(key, value) == f"mailroom.dev.{said}"
