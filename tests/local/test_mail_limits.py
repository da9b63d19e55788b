"""Limits of mails: the contract refuses the mails that the simulator of SES refuses, and no others."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.errors import Invalid
from mailroom.message.message import parse
from mailroom_local.providers.ses import refusal_of
from tests.support.unit.ses import Ses, ses_mail

NAMES = st.builds(lambda size: "X-" + "T" * size, st.integers(0, 128))
VALUES = st.builds(lambda letter, size: letter * size, st.sampled_from("x ~ü\t"), st.integers(0, 1000))
TOGETHER = st.integers(990, 1000)
"""Numbers of characters of a name and its value together, near the limit."""
WORDS = st.text(st.sampled_from('aZ ü山,".='), max_size=150)


def error_of_contract(**changes: Any) -> str:
    """Return the error of the contract, or an empty text."""
    item = {"id": "m-1", "event_type": "mail", "to": "a@example.com", "subject": "Hello", "text": "Hi"}
    try:
        mail = parse({**item, **changes}, CONTRACTS)
    except Invalid as fault:
        return str(fault)
    assert isinstance(mail, Mail)
    assert refusal_of(ses_mail(Ses()).prepare(mail)) is None
    return ""


@given(NAMES, VALUES | TOGETHER)
def test_the_contract_refuses_exactly_the_headers_that_the_simulator_of_ses_refuses(
    name: str, value: str | int
) -> None:
    value = "x" * (value - len(name)) if isinstance(value, int) else value
    simple = {"Headers": [{"Name": name, "Value": value}]}
    request = {"Destination": {"ToAddresses": ["a@example.com"]}, "Content": {"Simple": simple}}
    assert (error_of_contract(headers={name: value}) == "") == (refusal_of(request) is None)


@given(WORDS, st.sampled_from(["to", "cc", "bcc", "reply_to"]))
def test_the_simulator_of_ses_accepts_each_address_that_the_contract_accepts(name: str, field: str) -> None:
    quoted = re.sub(r'(["\\])', r"\\\1", name)
    fault = error_of_contract(**{field: f'"{quoted}" <{"l" * 40}@bücher.example>'})
    assert fault == "" or fault.endswith("characters with its encoded name; use at most 320")


def test_the_simulator_refuses_an_address_and_a_header_that_are_too_long_in_the_words_of_ses() -> None:
    mail: dict[str, Any] = {"Destination": {"ToAddresses": ["a@example.com"]}, "Content": {"Simple": {}}}
    long = f"{'N' * 303} <ada@example.com>"
    words = f"Address length is more than 320 characters long: '{long}'."
    for changes in (
        {"Destination": {"CcAddresses": [long]}},
        {"ReplyToAddresses": [long]},
        {"FromEmailAddress": long},
    ):
        assert refusal_of({**mail, **changes}) == (400, "BadRequestException", words)
    simple = {"Headers": [{"Name": "References", "Value": "x" * 987}]}
    assert refusal_of({**mail, "Content": {"Simple": simple}}) == (
        400,
        "BadRequestException",
        "Header too long: 'References'.",
    )


def test_the_simulator_of_ses_names_the_field_of_a_value_outside_the_limits_of_the_api_model() -> None:
    part = {"FileName": "a.pdf", "RawContent": "YQ==", "ContentId": "x" * 79}
    mail = {
        "Destination": {"ToAddresses": ["a@example.com"]},
        "Content": {"Simple": {"Attachments": [part]}},
    }
    refusal = refusal_of(mail)
    assert refusal is not None
    assert refusal[2] == (
        "1 validation error detected: Value at 'Content.Simple.Attachments.ContentId' failed to satisfy "
        "constraint: {'min': 1, 'max': 78}"
    )
