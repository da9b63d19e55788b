"""Recipients that a stage may reach: settings that stop synth, and variables of senders."""

import json
from typing import Any

import pytest

from mailroom import environment
from mailroom.channels.contracts import CONTRACTS
from mailroom.environment import Sender
from mailroom.message.message import parse
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import dev_with, refusal_of_setting, with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import IOS, NEWS, OTHERWISE, PUSH, PUSH_ROW

KINDS = (
    "use an address (ada@example.com), a domain (example.com; letters beyond ASCII as xn--), a number "
    "prefix (+1202555; four digits or more), or CHANNEL:RECIPIENT (push:arn:aws:sns:…)"
)
ENDPOINT = IOS.replace(":app/", ":endpoint/") + "/0f5e8a3c"
REACHABLE = OTHERWISE["recipients"]


def with_push(recipients: dict[str, Any]) -> str:
    """Return the error of `load` for a stage that pushes."""
    changes = {"push": PUSH, "channels.push": PUSH_ROW, "recipients": recipients}
    try:
        load(with_settings(changes), "dev")
    except SettingsError as refused:
        return str(refused).removeprefix("mailroom.dev.recipients.")
    return ""


@pytest.mark.parametrize(
    "entry", ["ada@example.com", "example.com", "xn--bcher-kva.example", "+1202", "+16175551234", "a.b-c.dev"]
)
def test_the_setting_recipients_accepts_addresses_domains_and_beginnings_of_numbers(entry: str) -> None:
    recipients = dev_with("recipients", {"only": [entry]}).recipients
    assert recipients is not None
    assert recipients.only == (entry,)


def test_addresses_and_domains_in_the_setting_recipients_are_kept_in_lower_case() -> None:
    recipients = dev_with("recipients", {"only": ["Ada@Example.COM", "Corp.Example"]}).recipients
    assert recipients is not None
    assert recipients.only == ("ada@example.com", "corp.example")


@pytest.mark.parametrize(
    "entry",
    [
        *("", "example", "@example.com", "Ada <ada@example.com>", "ada@", "bücher.example", "*.example.com"),
        *("+", "+1", "+120", "12025550123", "+0202555", "+1 202 555", "+1202555*", "+1234567890123456"),
        *("-a.example", "example.com ", "a b.example", "example..com", "Push:x", "push:a b"),
    ],
)
def test_an_invalid_entry_of_the_setting_recipients_is_refused_with_the_valid_kinds(entry: str) -> None:
    said = f"mailroom.dev.recipients.only.0: {entry!r} is not a recipient; {KINDS}."
    assert refusal_of_setting("recipients", {"only": [entry]}) == said


@pytest.mark.parametrize(
    ("recipients", "said"),
    [
        (
            {"only": ["sms:+12025550123"]},
            "only.0: 'sms:+12025550123' names a channel; write the address or number alone.",
        ),
        (
            {"redirect_to": {"chat": "42"}},
            "redirect_to.chat: cannot be redirected; use mail, sms, push.",
        ),
        (
            {"redirect_to": {"fax": "+12025550199"}},
            "redirect_to.fax: cannot be redirected; use mail, sms, push.",
        ),
        (
            {"redirect_to": {"webhook": "https://example.com"}},
            "redirect_to.webhook: cannot be redirected; use mail, sms, push.",
        ),
        *(
            (
                {"redirect_to": {"mail": target}},
                f"redirect_to.mail: {target!r} cannot get the channel's messages; use one address without a "
                "name, in lower case, such as testers@example.com.",
            )
            for target in ("Testers@example.com", "T <t@example.com>", "example.com", "a@b.c\nBcc: x@y.z", "")
        ),
        (
            {"redirect_to": {"sms": "2025550199"}},
            "redirect_to.sms: '2025550199' cannot get the channel's messages; use one number in E.164, such "
            "as +12025550123.",
        ),
        ({"redirect_to": {"push": ENDPOINT}}, ""),
        ({"redirect_to": {"push": NEWS}}, ""),
        ({"only": [f"push:{NEWS}", "push:android#token"]}, ""),
    ],
)
def test_recipients_settings_stop_synth_with_one_sentence_if_and_only_if_they_are_invalid(
    recipients: dict[str, Any], said: str
) -> None:
    assert with_push(recipients) == said


@pytest.mark.parametrize(
    ("channel", "content"),
    [("mail", {"template": "default"}), ("sms", {"text": "Hi"}), ("push", {"title": "Hi"})],
)
def test_the_contract_of_a_channel_accepts_each_valid_target_of_a_redirection(
    channel: str, content: dict[str, str]
) -> None:
    targets = {**REACHABLE["redirect_to"], "push": ENDPOINT}
    assert with_push({"redirect_to": targets}) == ""
    message = {"id": "m-1", "event_type": channel, "to": targets[channel], **content}
    assert parse(message, CONTRACTS).reached == (targets[channel],)


def test_senders_get_the_allowed_recipients_and_the_redirection_that_their_channel_supports(
    otherwise: Templates,
) -> None:
    only = json.dumps(REACHABLE["only"], separators=(",", ":"))
    to_mail = {"RECIPIENTS_ONLY": only, "REDIRECT_TO": "testers@example.com"}
    for stack, function, known in (
        ("channels", "send-mail", to_mail),
        ("channels", "send-mail-bulk", to_mail),
        ("channels", "send-sms", {"RECIPIENTS_ONLY": only, "REDIRECT_TO": "+12025550199"}),
        ("fax", "send-fax", {"RECIPIENTS_ONLY": only}),
        ("webhook", "send-webhook", {}),
    ):
        variables = otherwise[stack].environment(f"mailroom-dev-{function}")
        assert {name: variables[name] for name in variables.keys() & to_mail.keys()} == known
        sender = environment.read(Sender, variables)
        assert sender.recipients_only == (REACHABLE["only"] if known else None)
        assert sender.redirect_to == known.get("REDIRECT_TO", "")
