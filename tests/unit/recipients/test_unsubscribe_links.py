"""Links for opting out: only the stage's key signs them, and any other link is refused."""

import base64
import hashlib
import json
import random
import re
import string
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer

from mailroom.aws.secret import CachedSecret
from mailroom.channels.mail.contract import UNSUBSCRIBE, check_headers
from mailroom.errors import InvalidSecret, Malformed
from mailroom.message.message import MAX_TOPIC
from mailroom.recipients.unsubscribe_links import MAX_TOKEN, RENEW_SECONDS, Choice, Links, Tokens
from tests.support.unit.shared import FakeClock
from tests.support.unit.unsubscribing import (
    ADA,
    KEY,
    NEWER,
    TOPIC,
    URL,
    kept,
    links,
    page_token,
    secrets_with_key,
    token,
    tokens,
)
from tests.support.unit.webhooks import ARN, DENIED, DOWN, Secrets

_random = random.Random(8058)
LONGEST = (
    "".join(_random.choices(string.ascii_lowercase, k=64))
    + "@"
    + ".".join("".join(_random.choices(string.ascii_lowercase, k=length)) for length in (63, 63, 58, 2))
)
"""An address of 254 characters, the limit, with 64 before the @. Random letters cannot be compressed."""
LONG_TOPIC = "".join(chr(_random.randrange(0x20000, 0x2A6DF)) for _ in range(MAX_TOPIC))
"""A topic of characters that take four bytes each."""


def is_refused(text: str, reader: Tokens | None = None) -> bool:
    with pytest.raises(Malformed, match=r"^not a token of Mailroom$"):
        (reader or tokens()).read(text)
    return True


def test_the_token_of_an_unsubscribe_link_decodes_to_the_recipient_and_topic() -> None:
    url = links().url(ADA, TOPIC)
    assert re.fullmatch(re.escape(URL) + r"/[A-Za-z0-9_.-]+", url)
    assert tokens().read(url.removeprefix(f"{URL}/")) == Choice(ADA, TOPIC)


def test_unsubscribe_links_in_mails_that_were_sent_before_an_update_are_valid() -> None:
    # A recorded link. The way of signing, HMAC of SHA-256 with this salt, may never change.
    sent = "WyJhZGFAZXhhbXBsZS5jb20iLCJmb2xsb3dlcnMiXQ.KBcPonDLX92Ev7IiG40KJQnpYPRliNx-yto5w2KtLwQ"
    assert tokens().read(sent) == Choice(ADA, TOPIC)
    assert token() == sent


@given(
    st.emails(),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=MAX_TOPIC),
)
def test_every_address_and_topic_can_be_signed_as_a_token_and_decoded(recipient: str, topic: str) -> None:
    signed = Tokens(kept(secrets_with_key())).sign(Choice(recipient, topic))
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", signed)
    assert tokens().read(signed) == Choice(recipient, topic)


def test_a_token_whose_address_or_topic_was_replaced_is_refused() -> None:
    _, _, signature = token().rpartition(".")
    for choice in (["eve@example.com", TOPIC], [ADA, "news"], [ADA, ""], [ADA]):
        payload = base64.urlsafe_b64encode(json.dumps(choice, separators=(",", ":")).encode()).rstrip(b"=")
        assert is_refused(f"{payload.decode()}.{signature}")


def test_a_token_with_the_signature_of_another_token_is_refused() -> None:
    ada, eve = token().rpartition("."), token("eve@example.com").rpartition(".")
    assert is_refused(f"{ada[0]}.{eve[2]}")
    assert is_refused(f"{eve[0]}.{ada[2]}")


@pytest.mark.parametrize("position", range(0, 83, 3))
def test_a_token_with_one_changed_character_is_refused(position: int) -> None:
    good = token()
    for letter in "A_z.":
        changed = good[:position] + letter + good[position + 1 :]
        assert changed == good or is_refused(changed)


def test_a_token_with_another_last_character_of_equal_base64_value_is_refused() -> None:
    good = token()
    letters = [letter for letter in string.ascii_letters + string.digits + "-_" if letter != good[-1]]
    assert all(is_refused(good[:-1] + letter) for letter in letters)


@pytest.mark.parametrize("length", [0, 1, 10, 38, 39, 40, 60, 80])
def test_a_truncated_unsubscribe_token_is_refused(length: int) -> None:
    assert is_refused(token()[:length])


@given(st.text(string.ascii_letters + string.digits + "-_.", max_size=200) | st.text(max_size=50))
def test_a_guessed_unsubscribe_token_is_refused(guess: str) -> None:
    assert is_refused(guess)


def test_a_token_signed_with_another_key_is_refused() -> None:
    assert is_refused(token(), tokens(NEWER))


@pytest.mark.parametrize(
    ("salt", "signing"),
    [
        (b"itsdangerous", {"key_derivation": "hmac", "digest_method": hashlib.sha256}),
        (b"mailroom.other", {"key_derivation": "hmac", "digest_method": hashlib.sha256}),
        (
            b"mailroom.unsubscribe",
            {"key_derivation": "django-concat", "digest_method": hashlib.sha256},
        ),
        (b"mailroom.unsubscribe", {"key_derivation": "hmac", "digest_method": hashlib.sha1}),
        (b"mailroom.unsubscribe", {"key_derivation": "none", "digest_method": hashlib.sha256}),
    ],
)
def test_a_token_that_the_same_key_signed_for_another_purpose_is_refused(
    salt: bytes, signing: dict[str, Any]
) -> None:
    serializer = URLSafeSerializer(KEY, salt=salt, signer_kwargs=signing)
    assert is_refused(serializer.dumps([ADA, TOPIC]))


@pytest.mark.parametrize(
    "content",
    [[ADA], [ADA, TOPIC, "x"], {"recipient": ADA}, [1, 2], [ADA, None], ["", TOPIC], [ADA, ""], "x"],
)
def test_a_signed_token_without_a_recipient_and_a_topic_is_refused(content: object) -> None:
    signing = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    signed = URLSafeSerializer(KEY, salt=b"mailroom.unsubscribe", signer_kwargs=signing).dumps(content)
    with pytest.raises(Malformed, match=r"^the signed content is not a recipient and a topic$"):
        tokens().read(signed)


def test_new_links_are_signed_with_the_new_key_and_links_of_previous_keys_are_valid() -> None:
    reader = Tokens(kept(secrets_with_key(NEWER, "an older key of the stage", KEY)))
    assert reader.read(token()) == Choice(ADA, TOPIC)
    new = reader.sign(Choice(ADA, TOPIC))
    assert new != token()
    assert tokens(NEWER).read(new) == Choice(ADA, TOPIC)
    assert is_refused(new)


def test_a_removed_signing_key_is_no_longer_accepted_after_the_secret_is_read_again(clock: FakeClock) -> None:
    client = secrets_with_key()
    reader = Tokens(kept(client, clock))
    assert reader.read(token()) == Choice(ADA, TOPIC)
    client.rotate(json.dumps({"key": NEWER}), clock.now)
    clock.advance(300)
    assert is_refused(token(), reader)


def cached(client: Secrets, clock: FakeClock, seconds: float = 60) -> CachedSecret:
    return CachedSecret(client, ARN, clock, seconds)  # type: ignore[arg-type]


def test_a_link_signed_with_a_new_key_is_valid_even_if_the_cached_secret_lacks_that_key(
    clock: FakeClock,
) -> None:
    client = secrets_with_key()
    warm = Tokens(cached(client, clock))
    assert warm.read(token()) == Choice(ADA, TOPIC)
    client.rotate(json.dumps({"key": NEWER, "previous": [KEY]}), clock.now)
    clock.advance(RENEW_SECONDS)
    new = tokens(NEWER).sign(Choice(ADA, "news"))
    assert warm.read(new) == Choice(ADA, "news")
    assert (warm.read(new), warm.read(token())) == (Choice(ADA, "news"), Choice(ADA, TOPIC))
    assert len(client.asked) == 2


def test_forged_tokens_cause_a_read_of_the_secret_only_every_few_seconds(clock: FakeClock) -> None:
    client = secrets_with_key()
    warm = Tokens(cached(client, clock, 1000))
    for second in range(4 * RENEW_SECONDS):
        for forged in (token()[:-2], "x", tokens(NEWER).sign(Choice(ADA, TOPIC))):
            assert is_refused(forged, warm)
        assert len(client.asked) == 1 + second // RENEW_SECONDS
        clock.advance(1)


@pytest.mark.parametrize("trouble", [DENIED, DOWN, NoCredentialsError()])
def test_cached_signing_keys_are_used_while_the_secret_cannot_be_read_again(
    clock: FakeClock, trouble: Exception
) -> None:
    client = secrets_with_key()
    warm = Tokens(cached(client, clock))
    warm.read(token())
    client.trouble = trouble
    clock.advance(RENEW_SECONDS)
    for _ in range(20):
        assert is_refused(tokens(NEWER).sign(Choice(ADA, TOPIC)), warm)
        assert warm.read(token()) == Choice(ADA, TOPIC)
    assert len(client.asked) == 2


def test_checking_a_token_tries_only_once_to_read_a_secret_that_cannot_be_read(clock: FakeClock) -> None:
    client = secrets_with_key()
    client.trouble = DENIED
    with pytest.raises(type(DENIED)):
        Tokens(cached(client, clock)).read("x")
    assert len(client.asked) == 1


def test_a_signed_token_without_recipient_and_topic_does_not_cause_a_read_of_the_secret(
    clock: FakeClock,
) -> None:
    client = secrets_with_key()
    warm = Tokens(cached(client, clock))
    warm.read(token())
    clock.advance(RENEW_SECONDS)
    signing = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    ours = URLSafeSerializer(KEY, salt=b"mailroom.unsubscribe", signer_kwargs=signing)
    for signed in (ours.dumps([ADA]), ours.make_signer(ours.salt).sign(b"no-json").decode()):
        with pytest.raises(Malformed):
            warm.read(signed)
    assert len(client.asked) == 1


class NeverRead(Secrets):
    """A secret whose read fails the test."""

    def get_secret_value(self, **_: Any) -> dict[str, Any]:
        raise AssertionError("the secret was read")


@pytest.mark.parametrize("text", ["a" * (MAX_TOKEN + 1), "a" * 10_000_000, "ä.b", "\ud800", "a\u2028"])
def test_a_token_that_is_too_long_or_not_ascii_is_refused_without_reading_the_secret(text: str) -> None:
    assert is_refused(text, Tokens(kept(NeverRead())))


@pytest.mark.parametrize("topic", [LONG_TOPIC, "x" * MAX_TOPIC, '"' * MAX_TOPIC])
def test_a_link_for_the_longest_address_and_topic_fits_a_mail_header(topic: str) -> None:
    assert len(LONGEST) == 254
    url = "https://" + "a" * 167 + "/b"
    link = links(url=url).url(LONGEST, topic)
    check_headers({UNSUBSCRIBE: f"<{link}>"})
    assert tokens().read(link.removeprefix(f"{url}/")) == Choice(LONGEST, topic)


def test_an_unsubscribe_base_url_that_is_too_long_for_a_mail_header_is_refused_at_start() -> None:
    with pytest.raises(ValueError, match=r"^the URL for opting out has 178 characters; use a shorter one$"):
        links(url="https://" + "a" * 170)
    links(url="https://" + "a" * 169)


def test_a_slash_at_the_end_of_the_unsubscribe_base_url_is_ignored() -> None:
    assert links(url=f"{URL}/").url(ADA, TOPIC) == links().url(ADA, TOPIC)


@pytest.mark.parametrize(
    "text",
    [
        *("", "no json", "[]", "{}", '{"key": ""}', '{"key": "short"}', '{"key": 5}'),
        json.dumps({"previous": [KEY]}),
        json.dumps({"key": KEY, "previous": KEY}),
        json.dumps({"key": KEY, "previous": [""]}),
        pytest.param('{"private": ' + "[" * 100_000, id="nested too deeply"),
    ],
)
def test_a_secret_without_a_valid_signing_key_is_refused_without_quoting_the_secret(text: str) -> None:
    secret = kept(Secrets(text))
    for use in (lambda: Links(secret, URL).url(ADA, TOPIC), lambda: Tokens(secret).read(token())):
        with pytest.raises(InvalidSecret, match=r'is not \{"key": "<random>"') as caught:
            use()
        assert KEY not in str(caught.value)


def test_signing_or_reading_a_link_raises_the_aws_error_if_the_secret_cannot_be_read() -> None:
    client = secrets_with_key()
    client.trouble = DENIED
    for use in (Links(kept(client), URL).url, lambda *_: Tokens(kept(client)).read(token())):
        with pytest.raises(type(DENIED)):
            use(ADA, TOPIC)


# links to pages


def not_opened(text: str, reader: Tokens | None = None) -> bool:
    with pytest.raises(Malformed, match=r"^not a token of Mailroom$"):
        (reader or tokens()).open(text)
    return True


@given(st.emails())
def test_every_address_can_be_encrypted_as_a_token_and_decrypted(recipient: str) -> None:
    sealed = page_token(recipient)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", sealed)
    assert tokens().open(sealed) == recipient


def test_links_to_the_preferences_page_in_mails_from_before_an_update_are_valid() -> None:
    # A recorded link. The encryption, XSalsa20-Poly1305 with keys derived by this salt, may never change.
    sent = "pPyIs7gI4wpZYLUdISYkeRuOm96O_0ufCmVSlkQ85UL9CQ5ugDfBaZ_469IQlxIYxzEDMRQq1A"
    assert tokens().open(sent) == ADA
    assert page_token() == sent


def test_the_decoded_token_of_a_preferences_page_does_not_contain_the_address() -> None:
    raw = base64.urlsafe_b64decode(page_token() + "==")
    assert b"ada" not in raw
    assert b"example" not in raw


def test_tokens_of_unsubscribe_links_and_of_preferences_pages_cannot_replace_each_other() -> None:
    assert not_opened(token())
    assert is_refused(page_token())


@pytest.mark.parametrize("position", range(0, len(page_token()), 5))
def test_a_token_of_a_preferences_page_with_one_changed_character_is_refused(position: int) -> None:
    sealed = page_token()
    other = "A" if sealed[position] != "A" else "B"
    assert not_opened(sealed[:position] + other + sealed[position + 1 :])


def test_a_token_of_a_preferences_page_in_another_base64_spelling_is_refused() -> None:
    sealed = page_token()
    same = [
        sealed[:-1] + last
        for last in string.ascii_letters + string.digits + "-_"
        if base64.urlsafe_b64decode(f"{sealed[:-1]}{last}==") == base64.urlsafe_b64decode(f"{sealed}==")
    ]
    assert len(same) > 1
    for spelling in {*same} - {sealed}:
        assert not_opened(spelling)
    assert not_opened(f"{sealed}=")
    assert not_opened(f"{sealed}AAA")


@given(st.text(string.ascii_letters + string.digits + "-_", max_size=900) | st.text(max_size=50))
def test_a_guessed_token_of_a_preferences_page_is_refused(guess: str) -> None:
    assert not_opened(guess)


def test_a_token_joined_from_parts_of_two_tokens_of_preferences_pages_is_refused() -> None:
    ada, eve = page_token(), page_token("eve@example.com")
    for cut in (16, 32, 48, 54):
        assert not_opened(ada[:cut] + eve[cut:])


def test_a_token_of_a_preferences_page_of_another_stage_is_refused() -> None:
    assert not_opened(page_token(), tokens(NEWER))


def test_new_links_to_preferences_pages_use_the_new_key_and_links_of_previous_keys_are_valid() -> None:
    reader = tokens(NEWER, "an older key of the stage", KEY)
    assert reader.open(page_token()) == ADA
    assert tokens(NEWER).open(reader.seal(ADA)) == ADA
    assert not_opened(reader.seal(ADA))


def test_a_link_to_a_preferences_page_with_a_new_key_is_valid_if_the_cached_secret_lacks_that_key(
    clock: FakeClock,
) -> None:
    client = secrets_with_key()
    reader = Tokens(cached(client, clock))
    assert reader.open(page_token()) == ADA
    client.rotate(json.dumps({"key": NEWER, "previous": [KEY]}), clock.now)
    clock.advance(RENEW_SECONDS)
    assert reader.open(tokens(NEWER).seal(ADA)) == ADA


def test_a_link_to_a_preferences_page_for_an_earlier_time_is_encrypted_with_the_key_of_that_time(
    clock: FakeClock,
) -> None:
    client = secrets_with_key()
    url = Links(cached(client, clock), URL).page_url(ADA)
    before = clock.now
    clock.advance(100)
    client.rotate(json.dumps({"key": NEWER, "previous": [KEY]}), clock.now)
    clock.advance(100)
    assert (
        Links(cached(client, clock), URL).page_url(ADA, before)
        == url
        != Links(cached(client, clock), URL).page_url(ADA)
    )


def test_the_token_of_a_preferences_page_for_the_longest_address_has_an_accepted_length() -> None:
    assert len(page_token(LONGEST)) <= MAX_TOKEN
    assert tokens().open(page_token(LONGEST)) == LONGEST
