"""Amazon SES v2: the link for opting out that a mail with a topic carries."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from mailroom.errors import Invalid
from mailroom.message.outcome import Misconfigured, NotReady, Retry, Sent
from mailroom.recipients.unsubscribe_links import Choice
from tests.support.unit.ses import Ses, adapter, linked
from tests.support.unit.shared import mail
from tests.support.unit.shelf import Shelf
from tests.support.unit.unsubscribing import TOPIC, URL, keys, tokens
from tests.support.unit.webhooks import DENIED, DOWN, THROTTLED, Secrets

VINCENT = "vincent@example.com"
SEVERAL: list[dict[str, Any]] = [
    {"to": [VINCENT, "theo@example.com"]},
    {"cc": "theo@example.com"},
    {"bcc": ["theo@example.com"]},
]


def headers(**attributes: Any) -> dict[str, str]:
    request = linked(Ses()).prepare(mail(**attributes))
    assert isinstance(request, dict)
    return {each["Name"]: each["Value"] for each in request["Content"]["Simple"]["Headers"]}


def choice(header: str) -> Choice:
    assert header.startswith(f"<{URL}/")
    assert header.endswith(">")
    return tokens().read(header.removeprefix(f"<{URL}/").removesuffix(">"))


@pytest.mark.parametrize("lane", ["normal", "bulk"])
def test_a_mail_with_a_topic_can_be_unsubscribed_from_with_one_click(lane: str) -> None:
    found = headers(topic=TOPIC, lane=lane)
    assert choice(found["List-Unsubscribe"]) == Choice(VINCENT, TOPIC)
    assert found["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


@pytest.mark.parametrize(
    "given",
    [
        {"to": "Vincent van Gogh <Vincent@Example.COM>"},
        {"to": None, "email": ["VINCENT@example.com"]},
        {"to": [VINCENT, "Vincent <VINCENT@example.com>"], "cc": VINCENT},
        {"to": [], "bcc": VINCENT},
    ],
)
def test_the_link_is_of_the_one_form_that_the_table_knows(given: dict[str, Any]) -> None:
    assert choice(headers(topic=TOPIC, **given)["List-Unsubscribe"]) == Choice(VINCENT, TOPIC)


def test_a_mail_without_a_topic_carries_none_and_asks_for_no_secret() -> None:
    secrets = keys()
    secrets.trouble = DENIED
    request = linked(Ses(), secrets).prepare(mail(lane="bulk"))
    assert isinstance(request, dict)
    assert [each["Name"] for each in request["Content"]["Simple"]["Headers"]] == ["X-Correlation-ID"]
    assert secrets.asked == []


@pytest.mark.parametrize("given", SEVERAL)
def test_a_mail_to_several_carries_none_for_it_would_be_everybodys(given: dict[str, Any]) -> None:
    assert headers(topic=TOPIC, **given).keys() == {"X-Correlation-ID"}


def test_those_who_are_left_of_several_get_their_own() -> None:
    message = mail(topic=TOPIC, to=["theo@example.com", VINCENT]).without({"theo@example.com"})
    request = linked(Ses()).prepare(message)
    assert isinstance(request, dict)
    found = {each["Name"]: each["Value"] for each in request["Content"]["Simple"]["Headers"]}
    assert choice(found["List-Unsubscribe"]) == Choice(VINCENT, TOPIC)


def test_twelve_headers_of_ones_own_and_ours_are_as_many_as_ses_takes() -> None:
    own = {f"X-{at}": "y" for at in range(12)}
    assert len(headers(topic=TOPIC, headers=own)) == 15


def test_the_secret_is_read_once_for_many_mails() -> None:
    secrets = keys()
    ses = linked(Ses(), secrets)
    for at in range(20):
        ses.prepare(mail(f"m-{at}", topic=TOPIC))
    assert secrets.asked == ["AWSCURRENT"]


def rendered(shelf: Shelf, source: str, **attributes: Any) -> str:
    shelf.put("a", subject="Hello", text=source)
    message = mail(subject=None, text=None, template="a", **attributes)
    request = linked(Ses(), root=shelf.root).prepare(message)
    assert isinstance(request, dict)
    return str(request["Content"]["Simple"]["Body"]["Text"]["Data"])


def test_the_template_gets_the_same_link(shelf: Shelf) -> None:
    found = rendered(shelf, "{{ unsubscribe_url }}", topic=TOPIC)
    assert choice(f"<{found}>") == Choice(VINCENT, TOPIC)


def test_an_items_own_attribute_of_that_name_gives_way(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello", text="{{ unsubscribe_url }}")
    message = mail(subject=None, text=None, template="a", topic=TOPIC)
    message.variables["unsubscribe_url"] = "https://elsewhere.example"
    request = linked(Ses(), root=shelf.root).prepare(message)
    assert isinstance(request, dict)
    assert choice(f"<{request['Content']['Simple']['Body']['Text']['Data']}>") == Choice(VINCENT, TOPIC)
    assert message.variables["unsubscribe_url"] == "https://elsewhere.example"


@pytest.mark.parametrize("given", [{"topic": None}, *({"topic": TOPIC, **each} for each in SEVERAL)])
def test_a_template_that_needs_a_link_where_there_is_none_is_told_when_there_is_one(
    shelf: Shelf, given: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as caught:
        rendered(shelf, "{{ unsubscribe_url }}", **given)
    assert str(caught.value) == (
        "unsubscribe_url: is given to a mail with a `topic` and one recipient, cc and bcc counted; make it "
        "such a mail, or let the template ask `{% if unsubscribe_url is defined %}`"
    )
    asking = "{% if unsubscribe_url is defined %}link{% else %}none{% endif %}"
    assert rendered(shelf, asking, **given) == "none"


def test_another_variable_that_is_missing_is_named_as_ever(shelf: Shelf) -> None:
    with pytest.raises(Invalid, match=r"^name: is missing; a/body\.txt uses it, so the item must have it$"):
        rendered(shelf, "{{ name }}", topic=TOPIC)


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        (DENIED, Misconfigured),
        (DOWN, Retry),
        (THROTTLED, Retry),
        (EndpointConnectionError(endpoint_url="https://secrets"), Retry),
        (NoCredentialsError(), Retry),
    ],
)
def test_without_the_secret_a_mail_with_a_topic_is_not_sent(trouble: Exception, outcome: type) -> None:
    secrets, client = keys(), Ses()
    secrets.trouble = trouble
    ses = linked(client, secrets)
    with pytest.raises(NotReady, match="the secret of the links for opting out cannot be read") as raised:
        ses.prepare(mail(topic=TOPIC))
    assert isinstance(raised.value.outcome, outcome)
    assert client.requests == []
    secrets.trouble = None
    assert isinstance(ses.submit(ses.prepare(mail(topic=TOPIC))), Sent)
    assert len(client.requests) == 1


@pytest.mark.parametrize("text", ["{}", "no json"])
def test_a_secret_without_a_key_is_a_fault_of_ours_and_no_mail_goes_without_its_link(text: str) -> None:
    client = Ses()
    ses = linked(client, Secrets(text))
    with pytest.raises(NotReady, match=r"^the secret of the links for opting out is not ") as raised:
        ses.prepare(mail(topic=TOPIC))
    assert isinstance(raised.value.outcome, Misconfigured)
    assert client.requests == []


def test_an_adapter_without_links_sends_no_mail_with_a_topic() -> None:
    with pytest.raises(TypeError):
        adapter(Ses()).prepare(mail(topic=TOPIC))


def test_a_mail_that_can_never_be_sent_is_refused_whether_or_not_it_has_a_topic(tmp_path: Path) -> None:
    for topic in (None, TOPIC):
        with pytest.raises(Invalid, match=r"^template: 'b' is unknown"):
            linked(Ses(), root=tmp_path).prepare(mail(subject=None, text=None, template="b", topic=topic))
