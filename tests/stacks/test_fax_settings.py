"""A fax gateway that could not work stops synth with one sentence."""

from typing import Any

import pytest

from stacks.settings.load import load, with_providers
from stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import REMOVED, STAGES, accepted, refusal

TELNYX: dict[str, Any] = {
    "provider": "telnyx",
    "connection_id": "1494404757140276705",
    "senders": ["+12025550123"],
}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("fax.concurrent_calls", 1, "1 is under 2; use 2 to 1000."),
        ("fax.ttl_minutes", 4, "4 is under 5; use 5 to 120."),
        ("fax.poll_seconds", 0, "0 is under 0.1; use 0.1 to 300."),
        ("fax.retry_growth", 0.5, "0.5 is under 1; use 1 to 10."),
        ("fax.retry_delay_cap_seconds", 43_201, "43201 is over 43200; use 1 to 43200."),
        ("fax.provider", "twilio", "'twilio' is unknown; use signalwire or telnyx."),
        ("fax.on_unknown", "maybe", "'maybe' is unknown; use resend or hold."),
        ("fax.retry.timeout_seconds", 901, "901 is over 900; use 1 to 900."),
        (
            "fax.retry.speed",
            1,
            "is not a setting; use one of batch_size, batch_window_seconds, maximum_concurrency, "
            "timeout_seconds, memory_mb, longest_throttling_seconds, crash_allowance.",
        ),
        (
            "fax.senders",
            REMOVED,
            "is missing; add it: our own numbers in E.164, such as +12025550123; the first is the default.",
        ),
        (
            "fax.base_url",
            "http://example.com",
            "'http://example.com' does not fit ^(https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~-]+)*|"
            "providers)$: the address of the provider's API where it is not the usual one: https, without a "
            "slash at its end; or providers, whose address the app gets by -c providers=URL.",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(key: str, value: object, said: str) -> None:
    assert refusal(key, value) == f"mailroom.dev.{key}: {said}"


@pytest.mark.parametrize("sender", ["12025550123", "+02025550123", "+1 202 555 0123", "+1202555012345678"])
def test_a_sender_is_a_number_in_e164(sender: str) -> None:
    said = refusal("fax.senders", ["+12025550123", sender])
    assert said.startswith(f"mailroom.dev.fax.senders.1: {sender!r} does not fit ^\\+[1-9][0-9]{{6,14}}$")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "fax.space",
            REMOVED,
            "fax.space: signalwire needs exactly one of space and base_url; use the space "
            "of {space}.signalwire.com.",
        ),
        (
            "fax.base_url",
            "https://example.com",
            "fax.space: signalwire needs exactly one of space and base_url; use the space "
            "of {space}.signalwire.com.",
        ),
        (
            "fax.connection_id",
            "123",
            "fax.connection_id: is telnyx's, and provider is signalwire; remove it.",
        ),
        (
            "fax",
            {**TELNYX, "connection_id": None},
            "fax.connection_id: is missing; telnyx needs the id of the fax application.",
        ),
        (
            "fax",
            {**TELNYX, "space": "example"},
            "fax.space: is signalwire's, and provider is telnyx; remove it.",
        ),
        (
            "fax.timeout_seconds",
            37,
            "fax.timeout_seconds: 37 must be over 37 s: the gap 2 (concurrent_calls 2 / calls_per_second 1) "
            "+ submit_seconds 20 + record_seconds 10 + poll_seconds 5; raise it or lower those.",
        ),
        (
            "fax.ttl_minutes",
            120,
            "fax.longest_fax_seconds: 7200 must be over ttl_minutes 120 x 60, for until then the provider "
            "may still start; use 7201 or more.",
        ),
        (
            "fax.ttl_minutes",
            61,
            "fax.media_seconds: 3600 ends before the provider's last try, which may fetch the PDF; use 3660 "
            "or more (ttl_minutes 61 x 60).",
        ),
        (
            "fax.retry_delay_seconds",
            3_601,
            "fax.retry_delay_cap_seconds: 3600 is under retry_delay_seconds; use 3601 or more.",
        ),
        (
            "fax.backoff_cap_seconds",
            4,
            "fax.backoff_cap_seconds: 4 is under backoff_seconds; use 5 or more.",
        ),
        (
            "fax.backoff_cap_seconds",
            5,
            "fax.longest_throttling_seconds: takes over 1000 receives (as many as cover it when each wait is "
            "at its shortest, plus as many as cover longest_fax_seconds, plus crash_allowance), "
            "and SQS allows 1000; lower it, or longest_fax_seconds, or raise backoff_cap_seconds.",
        ),
        (
            "fax.longest_throttling_seconds",
            172_800,
            "retention.queue_days: 4 is too short for fax, whose 413 receives may take 430260 s (the longest "
            "wait or visibility after each) with margin_days 1 on top, and SQS deletes silently past "
            "retention; use 6 or more.",
        ),
        (
            "fax.retry.timeout_seconds",
            12,
            "fax.retry.timeout_seconds: 12 gives a lease of 72 s (time-out + 60), which must end before the "
            "visibility time-out of 72 s (6 x time-out + batch window); use 13 or more.",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_named_with_their_formula(
    key: str, value: object, said: str
) -> None:
    assert refusal(key, value) == f"mailroom.dev.{said}"


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
def test_a_provider_is_found_by_its_space_its_base_url_or_its_own_address(
    fax: dict[str, Any], url: str
) -> None:
    found = accepted("fax", {**fax, "senders": ["+12025550123"]}).fax
    assert found is not None
    assert found.url == url


def test_a_stage_needs_no_fax_gateway() -> None:
    assert accepted("fax", None).fax is None
    assert accepted("fax", REMOVED).fax is None


def test_the_providers_simulators_are_where_the_app_is_told() -> None:
    local = load(STAGES, "local")
    placed = with_providers(local, "http://127.0.0.1:4711").fax
    assert placed is not None
    assert placed.url == "http://127.0.0.1:4711/signalwire"


def test_a_stage_with_a_provider_of_its_own_is_not_moved() -> None:
    dev = load(STAGES, "dev")
    assert with_providers(dev, "http://127.0.0.1:4711") == dev
    assert with_providers(dev, None) == dev


@pytest.mark.parametrize("told", [None, "127.0.0.1:4711", "http://127.0.0.1:4711/", 5])
def test_providers_without_a_usable_address_are_asked_for(told: object) -> None:
    with pytest.raises(SettingsError) as refused:
        with_providers(load(STAGES, "local"), told)
    assert str(refused.value) == (
        f"mailroom.local.sms.base_url: is 'providers', and the context's providers is {told!r}; run the app "
        "with -c providers=http://HOST:PORT."
    )
