"""The demo's judgement of its campaign: what must be so, and each way in which it could be otherwise."""

import base64
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from local.demo.checks.campaign import (
    CampaignCheck,
    CampaignObservation,
    check_campaign,
    has_link,
    is_of_campaign,
    link_of,
)

RUN = "2026-11-21T14:00Z"
EXPECTED = {f"weekly-followers#{RUN}#{n}": f"person-{n}@example.com" for n in range(5)}
LEAVER = f"weekly-followers#{RUN}#4"
FIRST = f"weekly-followers#{RUN}#0"
LINK = "http://127.0.0.1:1/api/unsubscribe/t"
Inbox = list[dict[str, Any]]
Ledger = dict[tuple[str, str], dict[str, Any]]


def mail(id_: str, to: str | None = None, **headers: str) -> dict[str, Any]:
    """An entry of the inbox."""
    reference = base64.urlsafe_b64encode(id_.encode()).decode().rstrip("=")
    both = {"List-Unsubscribe": f"<{LINK}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    said = {"X-Correlation-ID": reference, **both, **headers}
    return {"to": to or EXPECTED.get(id_, "x@example.com"), "content": {"headers": said}}


def right() -> tuple[Inbox, Ledger]:
    """All is as it must be; last week's mail and another campaign's lie there as well."""
    sent = [id_ for id_ in EXPECTED if id_ != LEAVER]
    inbox = [mail(id_) for id_ in (*sent, "weekly-followers#last-week#4", "newsletter-1")]
    ledger: Ledger = {(id_, "mail"): {"status": "delivered"} for id_ in sent}
    ledger[LEAVER, "mail"] = {"status": "suppressed", "error": {"code": "opted_out"}}
    ledger["newsletter-1", "mail"] = {"status": "suppressed"}
    return inbox, ledger


def checked(change: Callable[[Inbox, Ledger], object] = lambda *_: None, before: int = 2) -> CampaignCheck:
    inbox, ledger = right()
    change(inbox, ledger)
    return check_campaign(CampaignObservation(EXPECTED, LEAVER, before, 7.04), inbox, ledger, RUN)


def test_a_campaign_that_went_as_it_should_has_its_figures_and_no_failures() -> None:
    assert asdict(checked()) == {
        "people": 5,
        "before": 2,
        "sent": 4,
        "suppressed": 1,
        "sent_twice": 0,
        "lost": 0,
        "uninvited": 0,
        "with_link": 4,
        "seconds": 7.0,
        "failures": [],
    }


@pytest.mark.parametrize(
    ("change", "figure", "sentence"),
    [
        (
            lambda inbox, _: inbox.append(mail(FIRST)),
            "sent_twice",
            f"{FIRST} was sent 2 times instead of once.",
        ),
        (lambda inbox, _: inbox.pop(0), "lost", f"{FIRST} is lost: the ledger says delivered."),
        (lambda _, ledger: ledger.pop((FIRST, "mail")), "lost", f"{FIRST} is lost: the ledger says None."),
        (
            lambda inbox, _: inbox.append(mail(f"weekly-followers#{RUN}#9")),
            "uninvited",
            f"weekly-followers#{RUN}#9 was sent, and should not have been.",
        ),
        (
            lambda inbox, _: inbox.append(mail(LEAVER)),
            "uninvited",
            f"{LEAVER} was sent, and should not have been.",
        ),
    ],
    ids=["twice", "no mail", "no ledger item", "a stranger", "who left"],
)
def test_what_must_be_0_is_counted_and_named(
    change: Callable[[Inbox, Ledger], object], figure: str, sentence: str
) -> None:
    found = checked(change)
    assert asdict(found)[figure] == 1
    assert sentence in found.failures


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda inbox, _: inbox.__setitem__(0, mail(FIRST, "eve@example.com")), "went to eve@example.com"),
        (
            lambda inbox, _: inbox.__setitem__(0, mail(FIRST, **{"List-Unsubscribe": "x"})),
            "has no link for opting out",
        ),
        (lambda _, ledger: ledger.pop((LEAVER, "mail")), "opted out; the ledger says None."),
        (
            lambda _, ledger: ledger[LEAVER, "mail"].update(error={"code": "suppressed"}),
            "and not for opting out",
        ),
        (lambda _, ledger: ledger[FIRST, "mail"].update(status="suppressed"), "should not be suppressed"),
    ],
    ids=["another address", "no link", "not left out", "for another reason", "somebody else"],
)
def test_whatever_else_is_wrong_is_a_failure(
    change: Callable[[Inbox, Ledger], object], sentence: str
) -> None:
    assert any(sentence in failure for failure in checked(change).failures)


@pytest.mark.parametrize("before", [0, 5])
def test_a_run_that_was_not_killed_half_way_proves_nothing(before: int) -> None:
    assert checked(before=before).failures == [
        f"It was not killed half-way: {before} of 5 messages were there."
    ]


def test_a_link_needs_its_brackets_and_the_header_that_makes_it_one_click() -> None:
    assert link_of(mail(FIRST)) == LINK
    assert link_of(mail(FIRST, **{"List-Unsubscribe": LINK})) == ""
    assert has_link(mail(FIRST))
    assert not has_link(mail(FIRST, **{"List-Unsubscribe-Post": "No"}))


def test_every_run_s_messages_are_the_campaign_s_and_no_others() -> None:
    assert all(map(is_of_campaign, EXPECTED))
    assert is_of_campaign("weekly-followers#last-week#4")
    assert not is_of_campaign("weekly-1")
