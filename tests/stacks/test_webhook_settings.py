"""Webhooks that could not be sent as promised stop synth with one sentence."""

import pytest

from tests.support.stacks.refusals import accepted, refusal


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("webhook.maximum_concurrency", 1, "1 is under 2; use 2 to 1000."),
        ("webhook.delays_seconds", [1] * 1000, "has 1000 entries; give at most 999."),
        ("webhook.allowed_ports", "443", "'443' is of the wrong kind; use a list."),
        (
            "webhook.delays_seconds",
            [],
            "is empty; give at least one: the wait after each failed try. The try after the last wait is the "
            "last one.",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(key: str, value: object, said: str) -> None:
    assert refusal(key, value) == f"mailroom.dev.{key}: {said}"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("delays_seconds", 39_601, "39601 is over 39600; use 0 to 39600."),
        ("delays_seconds", -1, "-1 is under 0; use 0 to 39600."),
        ("allowed_ports", 65_536, "65536 is over 65535; use 1 to 65535."),
        (
            "allowed_networks",
            "10.1.0.1/16",
            "'10.1.0.1/16' is not a network; write it like 10.1.0.0/16, all bits past the prefix zero.",
        ),
        (
            "allowed_networks",
            "intranet",
            "'intranet' is not a network; write it like 10.1.0.0/16, all bits past the prefix zero.",
        ),
    ],
)
def test_a_wrong_entry_of_a_list_is_named_with_what_would_be_right(
    key: str, value: object, said: str
) -> None:
    assert refusal(f"webhook.{key}", [value]) == f"mailroom.dev.webhook.{key}.0: {said}"


@pytest.mark.parametrize("network", ["10.0.0.0/8", "127.0.0.0/8", "fd12:3456::/32", "0.0.0.0/0", "192.0.2.7"])
def test_a_network_that_holds_more_than_metadata_may_be_opened(network: str) -> None:
    assert accepted("webhook.allowed_networks", [network]).webhook.allowed_networks == (network,)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "webhook.delays_seconds",
            [39_600] * 8,
            "webhook.delays_seconds: gives 9 receives, which may take 320040 s (the longest wait or "
            "visibility after each), and SQS deletes silently what is older than 4 days; they may take "
            "259200 s, a day less; lower it.",
        ),
    ],
)
def test_numbers_that_do_not_fit_together_are_named_with_their_formula(
    key: str, value: object, said: str
) -> None:
    assert refusal(key, value) == f"mailroom.dev.{said}"
