"""A mail that goes to somebody in its recipients' place."""

from typing import Any

import pytest

from mailroom.channels.mail.contract import HEADER_VALUE, MAX_OWN_HEADERS, Mail
from mailroom.recipients.unsubscribe_links import Choice
from tests.support.unit.contract import read
from tests.support.unit.ses import Ses, linked
from tests.support.unit.unsubscribing import TOPIC, URL, tokens

ADA, EVE, TESTERS = "ada@example.com", "eve@example.com", "testers@example.org"


def request(mail: Mail) -> dict[str, Any]:
    prepared = linked(Ses()).prepare(mail)
    assert isinstance(prepared, dict)
    return prepared


def headers(mail: Mail) -> dict[str, str]:
    return {each["Name"]: each["Value"] for each in request(mail)["Content"]["Simple"]["Headers"]}


def test_it_goes_to_one_address_and_names_all_that_it_was_for_in_their_one_form() -> None:
    mail = read(to=None, email="Ada <ADA@Example.com>", cc=["eve@example.com"], bcc="x@bücher.example")
    sent = request(mail.redirected(TESTERS))
    assert sent["Destination"] == {"ToAddresses": [TESTERS]}
    assert headers(mail.redirected(TESTERS))["X-Original-To"] == (f"{ADA}, {EVE}, x@xn--bcher-kva.example")


def test_nobodys_name_gets_into_the_header() -> None:
    mail = read(to='"Eve, X-Evil: 1" <eve@example.com>')
    assert mail.redirected(TESTERS).headers == {"X-Original-To": EVE}


def test_the_header_holds_as_many_whole_addresses_as_it_has_room_for() -> None:
    several = [f"{'x' * 60}{at}@{'y' * 60}.example" for at in range(50)]
    value = read(to=several).redirected(TESTERS).headers["X-Original-To"]
    assert HEADER_VALUE.fullmatch(value)
    shown, _, more = value.partition(" and ")
    assert shown.split(", ") == several[:7]
    assert more == "43 more"


def test_a_producers_own_header_of_that_name_gives_way() -> None:
    mail = read(to=ADA, headers={"x-original-TO": "forged@example.com", "X-Team": "post"})
    assert mail.redirected(TESTERS).headers == {"X-Team": "post", "X-Original-To": ADA}


@pytest.mark.parametrize(("own", "there"), [(MAX_OWN_HEADERS - 1, True), (MAX_OWN_HEADERS, False)])
def test_with_as_many_headers_as_ses_takes_it_goes_without_that_one(own: int, there: bool) -> None:
    mail = read(to=ADA, topic=TOPIC, headers={f"X-{at}": "y" for at in range(own)})
    found = headers(mail.redirected(TESTERS))
    assert ("X-Original-To" in found) == there
    assert len(found) <= 15


def test_its_link_opts_out_who_got_it_and_nobody_else() -> None:
    link = headers(read(to=ADA, topic=TOPIC).redirected(TESTERS))["List-Unsubscribe"][1:-1]
    assert tokens().read(link.removeprefix(f"{URL}/")) == Choice(TESTERS, TOPIC)


def test_a_mail_to_several_has_no_link_redirected_either() -> None:
    assert "List-Unsubscribe" not in headers(read(to=[ADA, EVE], topic=TOPIC).redirected(TESTERS))
