"""The link for opting out in a mail with a topic, sent by Amazon SES v2."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from mailroom.errors import Invalid
from mailroom.message.outcome import Misconfigured, NotReady, Retry, Sent
from mailroom.recipients.unsubscribe_links import Choice, Tokens
from mailroom_stacks.paths import LAMBDAS
from tests.support.unit.ses import Ses, headers_of, linked, ses_mail
from tests.support.unit.shared import mail
from tests.support.unit.shelf import Shelf
from tests.support.unit.unsubscribing import TOPIC, URL, secrets_with_key, tokens
from tests.support.unit.webhooks import DENIED, DOWN, THROTTLED, Secrets

VINCENT = "vincent@example.com"
SEVERAL: list[dict[str, Any]] = [
    {"to": [VINCENT, "theo@example.com"]},
    {"cc": "theo@example.com"},
    {"bcc": ["theo@example.com"]},
]


def unsubscribe_headers(**attributes: Any) -> dict[str, str]:
    return headers_of(linked(Ses()).prepare(mail(**attributes)))


def choice(url: str) -> Choice:
    assert url.startswith(f"{URL}/")
    return tokens().read(url.removeprefix(f"{URL}/"))


def choice_in(request_headers: dict[str, str]) -> Choice:
    header = request_headers["List-Unsubscribe"]
    assert (header[0], header[-1]) == ("<", ">")
    return choice(header[1:-1])


@pytest.mark.parametrize("lane", ["normal", "bulk"])
def test_a_mail_with_a_topic_has_a_one_click_unsubscribe_link(lane: str) -> None:
    request_headers = unsubscribe_headers(topic=TOPIC, lane=lane)
    assert choice_in(request_headers) == Choice(VINCENT, TOPIC)
    assert request_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


@pytest.mark.parametrize(
    "recipients",
    [
        {"to": "Vincent van Gogh <Vincent@Example.COM>"},
        {"to": None, "email": ["VINCENT@example.com"]},
        {"to": [VINCENT, "Vincent <VINCENT@example.com>"], "cc": VINCENT},
        {"to": [], "bcc": VINCENT},
    ],
)
def test_the_unsubscribe_link_contains_the_normalised_address(recipients: dict[str, Any]) -> None:
    assert choice_in(unsubscribe_headers(topic=TOPIC, **recipients)) == Choice(VINCENT, TOPIC)


def test_a_mail_without_a_topic_gets_no_unsubscribe_link_and_needs_no_secret() -> None:
    secrets = secrets_with_key()
    secrets.trouble = DENIED
    assert headers_of(linked(Ses(), secrets).prepare(mail(lane="bulk"))).keys() == {"X-Correlation-ID"}
    assert secrets.asked == []


@pytest.mark.parametrize("recipients", SEVERAL)
def test_a_mail_to_several_recipients_gets_no_unsubscribe_link(recipients: dict[str, Any]) -> None:
    assert unsubscribe_headers(topic=TOPIC, **recipients).keys() == {"X-Correlation-ID"}


def test_if_all_but_one_recipient_are_suppressed_the_mail_gets_an_unsubscribe_link() -> None:
    message = mail(topic=TOPIC, to=["theo@example.com", VINCENT]).without({"theo@example.com"})
    assert choice_in(headers_of(linked(Ses()).prepare(message))) == Choice(VINCENT, TOPIC)


def test_twelve_producer_headers_and_the_unsubscribe_headers_reach_the_header_limit_of_ses() -> None:
    assert len(unsubscribe_headers(topic=TOPIC, headers={f"X-{number}": "y" for number in range(12)})) == 15


def test_the_secret_of_unsubscribe_links_is_read_once_for_many_mails() -> None:
    secrets = secrets_with_key()
    ses = linked(Ses(), secrets)
    for number in range(20):
        ses.prepare(mail(f"m-{number}", topic=TOPIC))
    assert secrets.asked == ["AWSCURRENT"]


def rendered(shelf: Shelf, source: str, **attributes: Any) -> str:
    shelf.put("a", subject="Hello", text=source)
    message = mail(subject=None, text=None, template="a", **attributes)
    return text_of(linked(Ses(), root=shelf.root).prepare(message))


def text_of(request: dict[str, Any]) -> str:
    return str(request["Content"]["Simple"]["Body"]["Text"]["Data"])


def test_a_template_gets_the_unsubscribe_link_of_the_mails_recipient_and_topic(shelf: Shelf) -> None:
    assert choice(rendered(shelf, "{{ unsubscribe_url }}", topic=TOPIC)) == Choice(VINCENT, TOPIC)


def test_the_unsubscribe_link_replaces_an_item_attribute_of_the_same_name(shelf: Shelf) -> None:
    shelf.put("a", subject="Hello", text="{{ unsubscribe_url }}")
    message = mail(subject=None, text=None, template="a", topic=TOPIC)
    message.variables["unsubscribe_url"] = "https://elsewhere.example"
    request = linked(Ses(), root=shelf.root).prepare(message)
    assert choice(text_of(request)) == Choice(VINCENT, TOPIC)
    assert message.variables["unsubscribe_url"] == "https://elsewhere.example"


@pytest.mark.parametrize(
    "attributes", [{"topic": None}, *({"topic": TOPIC, **recipients} for recipients in SEVERAL)]
)
def test_if_a_template_needs_a_missing_unsubscribe_link_the_error_lists_the_conditions_for_a_link(
    shelf: Shelf, attributes: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as caught:
        rendered(shelf, "{{ unsubscribe_url }}", **attributes)
    assert str(caught.value) == (
        "unsubscribe_url: is only set in a mail with a `topic` and one recipient in to, cc and bcc together; "
        "use such a mail, or let the template test `{% if unsubscribe_url is defined %}`"
    )
    conditional = "{% if unsubscribe_url is defined %}link{% else %}none{% endif %}"
    assert rendered(shelf, conditional, **attributes) == "none"


def test_in_a_mail_with_a_topic_the_error_about_a_missing_variable_names_the_variable(
    shelf: Shelf,
) -> None:
    with pytest.raises(
        Invalid, match=r"^name: is missing; a/body\.txt:1 uses it, so the message must have it$"
    ):
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
def test_a_mail_with_a_topic_is_not_sent_until_the_secret_of_its_link_can_be_read(
    trouble: Exception, outcome: type
) -> None:
    secrets, client = secrets_with_key(), Ses()
    secrets.trouble = trouble
    ses = linked(client, secrets)
    with pytest.raises(NotReady, match="the secret of the opt-out links cannot be read") as caught:
        ses.prepare(mail(topic=TOPIC))
    assert isinstance(caught.value.outcome, outcome)
    assert client.requests == []
    secrets.trouble = None
    assert isinstance(ses.submit(ses.prepare(mail(topic=TOPIC))), Sent)
    assert len(client.requests) == 1


@pytest.mark.parametrize("text", ["{}", "no json"])
def test_a_mail_with_a_topic_is_not_sent_if_the_secret_of_its_link_is_invalid(text: str) -> None:
    client = Ses()
    ses = linked(client, Secrets(text))
    with pytest.raises(NotReady, match=r"^the secret of the opt-out links is not ") as caught:
        ses.prepare(mail(topic=TOPIC))
    assert isinstance(caught.value.outcome, Misconfigured)
    assert client.requests == []


def test_an_adapter_without_unsubscribe_settings_raises_an_error_for_a_mail_with_a_topic() -> None:
    with pytest.raises(TypeError):
        ses_mail(Ses()).prepare(mail(topic=TOPIC))


def test_an_unknown_template_is_refused_in_mails_with_and_without_a_topic(tmp_path: Path) -> None:
    for topic in (None, TOPIC):
        with pytest.raises(Invalid, match=r"^template: 'b' is unknown"):
            linked(Ses(), root=tmp_path).prepare(mail(subject=None, text=None, template="b", topic=topic))


# the link to the page of preferences


def page_of(url: str) -> str:
    return tokens().open(url.removeprefix(f"{URL}/"))


@pytest.mark.parametrize("topic", [None, TOPIC])
def test_a_template_gets_the_link_to_the_recipients_preferences_page_with_or_without_a_topic(
    shelf: Shelf, topic: str | None
) -> None:
    assert page_of(rendered(shelf, "{{ preferences_url }}", topic=topic)) == VINCENT


def test_a_template_may_test_whether_a_mail_has_a_link_to_the_preferences_page(shelf: Shelf) -> None:
    source = "{% if preferences_url is defined %}{{ preferences_url }}{% else %}none{% endif %}"
    assert page_of(rendered(shelf, source)) == VINCENT
    for recipients in SEVERAL:
        assert rendered(shelf, source, topic=TOPIC, **recipients) == "none"


@pytest.mark.parametrize("recipients", SEVERAL)
def test_if_a_template_needs_a_missing_link_to_the_preferences_page_the_error_lists_the_conditions(
    shelf: Shelf, recipients: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as caught:
        rendered(shelf, "{{ preferences_url }}", topic=TOPIC, **recipients)
    assert str(caught.value) == (
        "preferences_url: is only set in a mail with one recipient in to, cc and bcc together; use such a "
        "mail, or let the template test `{% if preferences_url is defined %}`"
    )


def test_a_mail_has_the_link_to_the_preferences_page_even_if_only_a_layout_uses_it(shelf: Shelf) -> None:
    shelf.put("_layout", text="{% block main %}{% endblock %}{{ preferences_url }}")
    assert page_of(rendered(shelf, "{% extends '_layout/body.txt' %}")) == VINCENT


def test_a_token_is_not_encrypted_for_a_mail_whose_template_does_not_link_to_the_preferences_page(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokens, "seal", lambda *_: pytest.fail("a token was encrypted"))
    rendered(shelf, "{{ unsubscribe_url }}", topic=TOPIC)
    secrets = secrets_with_key()
    secrets.trouble = DENIED
    linked(Ses(), secrets).prepare(mail())
    linked(Ses(), secrets, root=shelf.root).prepare(mail(subject="Hello", text="{{ preferences_url }}"))
    assert secrets.asked == []


@pytest.mark.process
def test_the_ses_sender_is_imported_without_the_encryption_library() -> None:
    script = "import sys, mailroom.providers.ses.sender; print('nacl' in sys.modules)"
    environment = {"PYTHONPATH": str(LAMBDAS), "POWERTOOLS_METRICS_NAMESPACE": "Mailroom"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "False", done.stderr


def test_a_mail_with_a_link_to_the_preferences_page_is_retried_if_the_secret_cannot_be_read(
    shelf: Shelf,
) -> None:
    shelf.put("a", subject="Hello", text="{{ preferences_url }}")
    secrets = secrets_with_key()
    secrets.trouble = THROTTLED
    message = mail(subject=None, text=None, template="a")
    with pytest.raises(NotReady) as caught:
        linked(Ses(), secrets, root=shelf.root).prepare(message)
    assert isinstance(caught.value.outcome, Retry)
