"""Recipients that a restricted stage may reach."""

import pytest

from mailroom.recipients.choices import AllowedRecipients

ONLY = ("ada@example.com", "corp.example", "+1202555", "push:phones#token", "chat:42")


@pytest.mark.parametrize(
    ("channel", "recipient"),
    [
        ("mail", "ada@example.com"),
        ("mail", "anybody@corp.example"),
        ("sms", "+12025550123"),
        ("fax", "+1202555"),
        ("push", "phones#token"),
        ("chat", "42"),
        ("chat", "ada@example.com"),
        ("voice", "+12025550123"),
    ],
)
def test_a_recipient_is_allowed_by_address_domain_number_prefix_or_channel(
    channel: str, recipient: str
) -> None:
    assert AllowedRecipients(channel, ONLY, "").outside([recipient]) == {}


@pytest.mark.parametrize(
    ("channel", "recipient"),
    [
        ("mail", "eve@example.com"),
        ("mail", "ada@example.com.evil.example"),
        ("mail", "ada@sub.corp.example"),
        ("mail", "x@notcorp.example"),
        ("mail", "+12025550123@evil.example"),
        ("mail", "corp.example@evil.example"),
        ("mail", "phones#token@evil.example"),
        ("sms", "+12025540123"),
        ("sms", "12025550123"),
        ("push", "other#token"),
        ("push", "token@corp.example"),
        ("push", "+12025550123@phones"),
        ("push", "+1202555#token"),
        ("chat", "bob@corp.example"),
        ("chat", "phones#token"),
        ("chat", "421"),
    ],
)
def test_a_recipient_that_matches_no_entry_of_the_allowed_recipients_is_blocked(
    channel: str, recipient: str
) -> None:
    (blocked,) = AllowedRecipients(channel, ONLY, "").outside([recipient]).values()
    assert blocked.code == "not_allowed_here"
    assert blocked.sentence == "this stage sends only to recipients in its setting recipients.only"


@pytest.mark.parametrize("only", [(), ONLY])
def test_a_message_without_recipients_is_blocked_or_redirected_in_a_stage_that_restricts_recipients(
    only: tuple[str, ...],
) -> None:
    assert AllowedRecipients("chat", only, "").outside([])
    assert AllowedRecipients("chat", only, "bob").redirect([]) == "bob"


def test_a_message_with_several_recipients_is_redirected_if_one_of_them_is_not_allowed() -> None:
    allowed = AllowedRecipients("mail", ONLY, "testers@example.com")
    assert allowed.redirect(["ada@example.com", "eve@example.com"]) == "testers@example.com"
    assert allowed.redirect(["ada@example.com", "bob@corp.example"]) is None


def test_the_address_that_receives_redirected_messages_is_itself_allowed() -> None:
    allowed = AllowedRecipients("mail", (), "testers@example.com")
    assert allowed.redirect(["testers@example.com"]) is None
    assert allowed.outside(["testers@example.com"]) == {}


def test_a_stage_without_the_setting_redirect_to_does_not_redirect_messages() -> None:
    assert AllowedRecipients("mail", ONLY, "").redirect(["eve@example.com"]) is None
