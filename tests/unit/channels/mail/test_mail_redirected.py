"""A mail that is redirected from its recipients to another address."""

import pytest

from mailroom.channels.mail.contract import HEADER_VALUE, MAX_OWN_HEADERS, Mail
from mailroom.recipients.unsubscribe_links import Choice
from tests.support.unit.contract import read_mail
from tests.support.unit.ses import Ses, headers_of, linked
from tests.support.unit.unsubscribing import TOPIC, URL, tokens

ADA, EVE, TESTERS = "ada@example.com", "eve@example.com", "testers@example.org"


def redirected_headers(mail: Mail) -> dict[str, str]:
    return headers_of(linked(Ses()).prepare(mail.redirected(TESTERS)))


def test_a_redirected_mail_is_sent_to_one_address_and_lists_its_intended_recipients_in_a_header() -> None:
    mail = read_mail(to=None, email="Ada <ADA@Example.com>", cc=["eve@example.com"], bcc="x@bücher.example")
    request = linked(Ses()).prepare(mail.redirected(TESTERS))
    assert request["Destination"] == {"ToAddresses": [TESTERS]}
    assert headers_of(request)["X-Original-To"] == f"{ADA}, {EVE}, x@xn--bcher-kva.example"


def test_the_header_of_intended_recipients_has_addresses_without_display_names() -> None:
    mail = read_mail(to='"Eve, X-Evil: 1" <eve@example.com>')
    assert mail.redirected(TESTERS).headers == {"X-Original-To": EVE}


def test_the_header_of_intended_recipients_has_as_many_whole_addresses_as_fit() -> None:
    addresses = [f"{'x' * 60}{number}@{'y' * 60}.example" for number in range(50)]
    value = read_mail(to=addresses).redirected(TESTERS).headers["X-Original-To"]
    assert HEADER_VALUE.fullmatch(value)
    assert value == ", ".join(addresses[:7]) + " and 43 more"


def test_the_header_of_intended_recipients_replaces_a_producers_header_of_the_same_name() -> None:
    mail = read_mail(to=ADA, headers={"x-original-TO": "forged@example.com", "X-Team": "post"})
    assert mail.redirected(TESTERS).headers == {"X-Team": "post", "X-Original-To": ADA}


@pytest.mark.parametrize(("count", "fits"), [(MAX_OWN_HEADERS - 1, True), (MAX_OWN_HEADERS, False)])
def test_the_header_of_intended_recipients_is_omitted_from_a_mail_at_the_header_limit_of_ses(
    count: int, fits: bool
) -> None:
    mail = read_mail(to=ADA, topic=TOPIC, headers={f"X-{number}": "y" for number in range(count)})
    assert ("X-Original-To" in redirected_headers(mail)) == fits
    assert len(redirected_headers(mail)) <= 15


def test_the_unsubscribe_link_of_a_redirected_mail_is_for_the_address_that_receives_it() -> None:
    link = redirected_headers(read_mail(to=ADA, topic=TOPIC))["List-Unsubscribe"][1:-1]
    assert tokens().read(link.removeprefix(f"{URL}/")) == Choice(TESTERS, TOPIC)


def test_a_redirected_mail_for_several_recipients_has_no_unsubscribe_link() -> None:
    assert "List-Unsubscribe" not in redirected_headers(read_mail(to=[ADA, EVE], topic=TOPIC))
