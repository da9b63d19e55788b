"""A function's settings: read whole, or refused with the name of the variable at fault."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.inspect import is_struct_type

from mailroom import environment
from mailroom.environment import (
    DispatchSettings,
    LineSettings,
    ReleaseSettings,
    SesSender,
    read,
    variables_of,
)
from tests.support import ROOT

COMMON = {"LEDGER_TABLE": "ledger", "LEDGER_TTL_SECONDS": "7776000", "PAYLOAD_BUCKET": "payloads"}
ROUTES = {"mail": {"normal": "https://queue/mail", "bulk": "https://queue/mail-bulk"}}
DISPATCH = {
    **COMMON,
    "ROUTES": json.dumps(ROUTES),
    "DELAYED_ROUTES": "{}",
    "CALLBACK_SCHEMES": '["https"]',
    "CALLBACK_PORTS": "[443]",
}
SEND_MAIL = {
    **COMMON,
    "CHANNEL": "mail",
    "QUEUE_URL": "https://queue/mail",
    "LEASE_SECONDS": "120",
    "PACE_SECONDS": "0.35",
    "ON_UNKNOWN": "resend",
    "RESEND_DELAYS": "[0, 1800, 7200]",
    "BACKOFF_SECONDS": "5",
    "BACKOFF_CAP_SECONDS": "900",
    "MISCONFIGURED_SECONDS": "30",
    "SUBMIT_SECONDS": "10",
    "RECORD_SECONDS": "5",
    "SUPPRESSIONS_TABLE": "suppressions",
    "PREFERENCES_TABLE": "preferences",
    "UNSUBSCRIBE_URL": "https://api.mailroom.example/unsubscribe",
    "UNSUBSCRIBE_SECRET_ARN": "mailroom-test-unsubscribe",
    "MAIL_SENDERS": '["Mailroom <post@mailroom.example>", "news@mailroom.example"]',
    "CONFIGURATION_SET": "mailroom-test",
    "MAX_ATTACHMENT_BYTES": "7000000",
}


def set_variables(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_the_settings_of_a_mail_sender_are_read_from_its_environment_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_variables(monkeypatch, **SEND_MAIL)
    found = read(SesSender)
    assert (found.ledger_table, found.ledger_ttl_seconds, found.pace_seconds) == ("ledger", 7776000, 0.35)
    assert found.mail_senders == ["Mailroom <post@mailroom.example>", "news@mailroom.example"]
    assert (found.max_attachment_bytes, found.templates) == (7_000_000, "templates/mail")


def test_the_routes_of_the_dispatch_function_are_read_from_json(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, **DISPATCH)
    assert read(DispatchSettings).routes == ROUTES


def test_the_settings_of_lines_are_read_from_json_by_the_release_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = {"mail": {"per_second": 2.5, "per_day": [["2026-11-21", 1000]], "reserve": 0.1}}
    tables = {f"{name.upper()}_TABLE": name for name in ("mailbox", "contents", "budgets", "runs")}
    set_variables(monkeypatch, **DISPATCH, **tables, LINES=json.dumps(lines), LEASE_SECONDS="120")
    assert read(ReleaseSettings).lines == {"mail": LineSettings(2.5, [("2026-11-21", 1000)], 0.1)}


def test_a_function_reads_the_variables_that_a_stack_writes() -> None:
    filled = read(SesSender, SEND_MAIL)
    variables = variables_of(filled)
    assert variables.keys() == SEND_MAIL.keys()
    assert read(SesSender, variables) == filled


@pytest.mark.parametrize("name", SEND_MAIL)
def test_the_error_about_a_missing_environment_variable_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    set_variables(monkeypatch, **SEND_MAIL)
    monkeypatch.delenv(name)
    with pytest.raises(msgspec.ValidationError, match=f"`{name}`"):
        read(SesSender)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE_SECONDS", "soon"),
        ("LEASE_SECONDS", ""),
        ("PACE_SECONDS", "-1"),
        ("MAX_ATTACHMENT_BYTES", "7.5"),
        ("MAIL_SENDERS", "post@mailroom.example"),
        ("MAIL_SENDERS", "[5]"),
        ("MAIL_SENDERS", '["post@mailroom.example"'),
        ("MAIL_SENDERS", ""),
        ("ON_UNKNOWN", "Hold"),
    ],
)
def test_the_error_about_an_invalid_environment_variable_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    set_variables(monkeypatch, **{**SEND_MAIL, name: value})
    with pytest.raises(msgspec.ValidationError, match=name):
        read(SesSender)


@pytest.mark.parametrize("routes", ["{", "[]", '{"mail": "https://queue/mail"}', "https://queue/mail"])
def test_the_error_about_invalid_routes_names_their_environment_variable(
    monkeypatch: pytest.MonkeyPatch, routes: str
) -> None:
    set_variables(monkeypatch, **{**DISPATCH, "ROUTES": routes})
    with pytest.raises(msgspec.ValidationError, match="ROUTES"):
        read(DispatchSettings)


def test_the_environment_variables_that_functions_require_are_those_listed_for_the_last_release() -> None:
    """Lambda takes a function's code and its variables in two calls, so new code runs for a moment with the
    variables of the last release. The file lists the variables that functions require, and that release:
    after it, only variables that it sets may be added. Before the first release, `release` is null, and every
    variable may be added."""
    known = json.loads((Path(__file__).parent / "required_variables.json").read_text())
    dated = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \S+$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert known["release"] == next(iter(dated), None), "released: its variables may lose their defaults now"
    structs = {name: each for name, each in vars(environment).items() if is_struct_type(each)}
    required = {
        name: {each.encode_name for each in msgspec.structs.fields(struct) if each.required}
        for name, struct in structs.items()
        if struct is not msgspec.Struct
    }
    assert {name: {*names} for name, names in known["variables"].items()} == required
