"""A try in doubt and its account: evidence that proves that no message was sent."""

from collections.abc import Callable, Container
from typing import Any

import pytest

from mailroom.aws.dynamo_values import size_of
from mailroom.channels.mail.contract import Mail
from mailroom.clock import iso
from mailroom.dead_letters.cause import Subject, cause_of
from mailroom.dead_letters.queue import DeadLetter
from mailroom.delivery.adapter import ProviderAdapter
from mailroom.errors import Invalid
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.status_reader import of_ledger
from mailroom.message.outcome import (
    Evidence,
    Misconfigured,
    NotFound,
    Outcome,
    Rejected,
    Retry,
    Sent,
    Unknowable,
)
from mailroom.recipients.choices import Suppression, Suppressions
from mailroom_ops.messages.advice import advice, commands
from mailroom_ops.repair.resender import judge
from tests.support.unit.post import Make, Post
from tests.support.unit.shared import (
    KEY,
    LEASE,
    LEDGER,
    NOW_MS,
    SUPPRESSIONS,
    Aws,
    FakeClock,
    crash,
    image,
    item,
)


class Account:
    """Account at a provider, with the ids of the messages that it has."""

    provider = "p"

    def __init__(self, name: str, has: list[str], error: Any = None) -> None:
        self.account, self.has, self.error = name, has, error

    def submit(self, request: Any) -> Outcome:
        if request == "refused":  # a refusal of another message, in another thread
            return Misconfigured("401")
        self.has.append(request.id)
        if isinstance(self.error, Exception):
            raise self.error
        return Sent("p-1")


class Accounts(ProviderAdapter[Account, Mail]):
    """Adapter whose secret names the next account each time that it is read."""

    contract = Mail

    def __init__(self, *accounts: Account) -> None:
        remaining = list(accounts)
        super().__init__("p", "the secret", lambda: remaining.pop(0) if len(remaining) > 1 else remaining[0])
        self.after_look_up: Callable[[], None] = lambda: None

    def prepare(self, message: Mail) -> Mail:
        self.after_look_up()
        return message

    def find(self, api: Account, message: Mail, since: int, other_ids: Container[str]) -> Evidence:
        self.after_look_up()
        return Sent("p-0") if message.id in api.has else NotFound()


def deliver(adapter: Accounts, aws: Aws, clock: FakeClock) -> None:
    Post(aws, clock, adapter, on_unknown="hold").handle(item())  # type: ignore[arg-type] # an adapter of its own
    clock.advance(LEASE + 1)


def test_a_message_is_submitted_at_the_account_of_its_claim_even_if_the_secret_has_changed(
    aws: Aws, clock: FakeClock
) -> None:
    """Another thread's submit is refused (401), so the next session is one of account 2. The response is
    lost, and the next worker has account 1."""
    first, second = Account("1", [], OSError("no answer")), Account("2", [])
    adapter = Accounts(first, second)
    adapter.after_look_up = lambda: assert_refused(adapter)
    deliver(adapter, aws, clock)
    assert (first.has, second.has) == (["m-1"], [])
    deliver(Accounts(first), aws, clock)
    assert (first.has, aws.item()["status"]) == (["m-1"], "sent")


def assert_refused(adapter: Accounts) -> None:
    adapter.open().submit("refused")
    assert adapter.open().account == "p/2"


def test_a_look_up_proves_that_a_message_was_not_sent_only_for_the_account_that_it_searched(
    aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    """Account 2 has the message, the look-up asks account 1, and then the secret names account 2."""
    first, second = Account("1", []), Account("2", ["m-1"])
    crash(ledger, clock, account="p/2")
    adapter = Accounts(first, second)
    adapter.after_look_up = lambda: assert_refused(adapter)
    deliver(adapter, aws, clock)
    adapter.after_look_up = lambda: None
    deliver(adapter, aws, clock)
    assert first.has + second.has == ["m-1"], "sent twice"


def test_a_message_whose_earlier_claim_does_not_name_an_account_is_submitted_without_a_look_up(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    """A look-up could find another program's fax to that number, or its text with the same words."""
    crash(ledger, clock, account=None)
    worker = make_post(evidence=Sent("of-another-program"), on_unknown="hold")
    worker.adapter.account = "this/account"
    worker.handle(item())
    assert (worker.submitted, worker.adapter.looked_up, aws.item()["provider_id"]) == (["m-1"], [], "p-1")


def refuse_mail(_: Mail) -> None:
    raise Invalid("template", "is there no more")


@pytest.mark.parametrize("how", ["invalid", "rejected", "opted out", "expired", "suppressed"])
def test_a_message_that_may_have_been_sent_fails_as_outcome_unknown_even_if_later_rejected_or_expired(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws, how: str
) -> None:
    crash(ledger, clock)
    choices = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
    if how == "suppressed":
        choices.mark(Suppression("vincent@example.com", "mail", "complaint", NOW_MS, "complaint"))
    answer = Rejected("no", opted_out=how == "opted out")
    prepare = refuse_mail if how == "invalid" else None
    worker = make_post(
        answer, prepare=prepare, evidence=Unknowable(), on_unknown="resend", suppressions=choices
    )
    worker.handle(item(expires_at=iso(clock() - 1)) if how == "expired" else item())
    stored = aws.item()
    assert (stored["status"], stored["error"]["code"]) == ("failed", "outcome_unknown")
    assert judge(stored, force=False).twice, "it is resent without a word"


def test_cause_and_advice_of_a_dead_letter_report_an_earlier_try_that_may_have_sent_the_message(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    crash(ledger, clock)  # the worker dies after the provider accepted the message
    make_post(Retry("throttled"), evidence=Unknowable(), on_unknown="resend").handle(item())
    letter = DeadLetter("mail-dlq", "r-1", "receipt", "{}", 3, 0, "")
    assert cause_of(letter, Subject("message", KEY), aws.item()).code == "outcome_unknown"
    stored = of_ledger(aws.item())
    sentence = " ".join(advice(stored, commands(stored, "dev"), clock(), None))
    assert sentence.startswith("An earlier try, whose outcome is unknown, may have sent it.")


def test_the_ledger_item_of_a_message_released_many_times_with_an_unknown_outcome_does_not_grow(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    account = "twilio/AC0123456789abcdef0123456789abcdef"
    crash(ledger, clock, account="twilio/ACfedcba9876543210fedcba9876543210")
    worker = make_post(Retry("20429"), evidence=NotFound(), on_unknown="resend")
    worker.adapter.account = account
    sizes = {}
    for receive in range(1, 46):
        worker.handle(item(), receives=receive)
        clock.advance(450)
        if receive in (1, 45):
            raw: Any = aws.dynamodb.get_item(TableName=LEDGER, Key=image(id="m-1", event_type="mail"))["Item"]
            sizes[receive] = size_of(raw)
    assert sizes[45] == sizes[1], sizes


def test_a_look_up_proves_a_message_unsent_without_a_search_of_an_account_that_refused_it(
    make_post: Make, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    """The try at A is in doubt, and B refused its try. If the message is not found at A, it was never
    sent."""
    crash(ledger, clock, account="p/A")
    second = make_post(Retry("throttled"), evidence=NotFound(), on_unknown="resend")
    second.adapter.account = "p/B"
    mail = item(expires_at=iso(clock.now + 1))
    second.handle(mail)
    clock.advance(2)
    third = make_post(evidence=NotFound(), on_unknown="resend")
    third.adapter.account = "p/A"
    third.handle(mail)
    assert aws.item()["error"]["code"] == "expired"
