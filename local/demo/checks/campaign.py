"""Check a campaign that was killed and started again: the inbox and the ledger against its people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from local.demo.checks.messages import Ledger, id_of_mail
from local.demo.client import Item

CAMPAIGN = "weekly-followers"
PREFIX = f"{CAMPAIGN}#"
"""How the ids of its messages begin."""
HEADER, POST_HEADER = "List-Unsubscribe", "List-Unsubscribe-Post"
ONE_CLICK = "List-Unsubscribe=One-Click"
ENDED = ("sent", "delivered")


@dataclass(frozen=True)
class CampaignObservation:
    """What the demo saw of the run. `expected` are the addresses of all recipients by the message's id,
    `leaver` is the id of the recipient who opted out before the message was composed, and `before` how many
    messages were in the mailbox when the run was killed."""

    expected: Mapping[str, str]
    leaver: str
    before: int
    seconds: float


@dataclass(frozen=True)
class CampaignCheck:
    """`people` have news, and one of them opts out; `sent` counts recipients whose mail was accepted.
    `sent_twice`, `lost` and `uninvited` must be 0."""

    people: int
    before: int
    sent: int
    suppressed: int
    sent_twice: int
    lost: int
    uninvited: int
    with_link: int
    seconds: float
    failures: list[str] = field(default_factory=list)


def is_of_campaign(id_: str) -> bool:
    """Whether a message is the campaign's, of any run."""
    return id_.startswith(PREFIX)


def check_campaign(
    seen: CampaignObservation, inbox: Sequence[Item], ledger: Ledger, run: str
) -> CampaignCheck:
    """Compare the run's part of `inbox` and `ledger`."""
    mails: dict[str, list[Item]] = {}
    for each in inbox:
        if (id_ := id_of_mail(each)).startswith(f"{PREFIX}{run}#"):
            mails.setdefault(id_, []).append(each)
    rows = {id_: row for (id_, _), row in ledger.items() if id_.startswith(f"{PREFIX}{run}#")}
    wanted = seen.expected.keys() - {seen.leaver}
    twice = [id_ for id_, each in mails.items() if len(each) > 1]
    lost = [id_ for id_ in wanted if id_ not in mails or rows.get(id_, {}).get("status") not in ENDED]
    uninvited = sorted(mails.keys() - wanted)
    unlinked = [id_ for id_, each in mails.items() if not all(map(has_link, each))]
    return CampaignCheck(
        people=len(seen.expected),
        before=seen.before,
        sent=len(mails.keys() & wanted),
        suppressed=sum(row.get("status") == "suppressed" for row in rows.values()),
        sent_twice=len(twice),
        lost=len(lost),
        uninvited=len(uninvited),
        with_link=len(mails) - len(unlinked),
        seconds=round(seen.seconds, 1),
        failures=[
            *_killed(seen),
            *(f"{id_} was sent {len(mails[id_])} times instead of once." for id_ in twice),
            *(f"{id_} is lost: the ledger says {rows.get(id_, {}).get('status')}." for id_ in sorted(lost)),
            *(f"{id_} was sent, and should not have been." for id_ in uninvited),
            *(f"{id_} has no link for opting out." for id_ in unlinked),
            *_misdirected(seen, mails),
            *_left(seen, rows),
        ],
    )


def has_link(mail: Item) -> bool:
    """Whether a mail can be opted out of with one click (RFC 8058)."""
    headers = mail["content"]["headers"]
    return link_of(mail) != "" and headers.get(POST_HEADER) == ONE_CLICK


def link_of(mail: Item) -> str:
    """The link for opting out of a mail; "" without one."""
    value = str(mail["content"]["headers"].get(HEADER, ""))
    return value[1:-1] if value.startswith("<http") and value.endswith(">") else ""


def _killed(seen: CampaignObservation) -> list[str]:
    if 0 < seen.before < len(seen.expected):
        return []
    return [f"It was not killed half-way: {seen.before} of {len(seen.expected)} messages were there."]


def _misdirected(seen: CampaignObservation, mails: Mapping[str, Sequence[Item]]) -> list[str]:
    return [
        f"{id_} went to {each['to']} instead of {seen.expected[id_]}."
        for id_, sent in mails.items()
        for each in sent
        if id_ in seen.expected and each["to"] != seen.expected[id_]
    ]


def _left(seen: CampaignObservation, rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Only the recipient who opted out is suppressed, and for that reason."""
    wrong = [
        f"{id_} should not be suppressed."
        for id_, row in rows.items()
        if row.get("status") == "suppressed" and id_ != seen.leaver
    ]
    row = rows.get(seen.leaver, {})
    if row.get("status") != "suppressed":
        wrong.append(f"{seen.leaver} opted out; the ledger says {row.get('status')}.")
    elif (row.get("error") or {}).get("code") != "opted_out":
        wrong.append(f"{seen.leaver} is suppressed for {row.get('error')}, and not for opting out.")
    return wrong
