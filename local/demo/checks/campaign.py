"""What became of a campaign that was killed and started again: pure, so that it can be tested."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from local.demo.checks.accepted import Entry, of_mail

CAMPAIGN = "weekly-followers"
PREFIX = f"{CAMPAIGN}#"
"""How the id of each of its messages begins, and of no other's."""
HEADER, POST_HEADER = "List-Unsubscribe", "List-Unsubscribe-Post"
ONE_CLICK = "List-Unsubscribe=One-Click"
ENDED = ("sent", "delivered")


@dataclass(frozen=True)
class Told:
    """What the demo saw of the run. `expected` are the addresses of all who should get its mail by the
    message's id, `leaver` the id of the one of them who opted out before it was composed, and `before` how
    many messages were in the mailbox when the run was killed."""

    expected: Mapping[str, str]
    leaver: str
    before: int
    seconds: float


@dataclass(frozen=True)
class CampaignVerdict:
    """`people` have news, one of whom opts out; `sent` counts mails that the provider accepted, each to one
    of the others. `sent_twice`, `lost` and `uninvited` must be 0."""

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

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def ours(id_: str) -> bool:
    """Whether a message is the campaign's, of whatever run."""
    return id_.startswith(PREFIX)


def judge_campaign(
    told: Told, inbox: Sequence[Entry], ledger: Mapping[tuple[str, str], Mapping[str, Any]], run: str
) -> CampaignVerdict:
    """Compare; of `inbox` and `ledger` the run's alone is looked at."""
    mails: dict[str, list[Entry]] = {}
    for each in inbox:
        if (id_ := of_mail(each)).startswith(f"{PREFIX}{run}#"):
            mails.setdefault(id_, []).append(each)
    rows = {id_: row for (id_, _), row in ledger.items() if id_.startswith(f"{PREFIX}{run}#")}
    wanted = told.expected.keys() - {told.leaver}
    twice = [id_ for id_, each in mails.items() if len(each) > 1]
    lost = [id_ for id_ in wanted if id_ not in mails or rows.get(id_, {}).get("status") not in ENDED]
    uninvited = sorted(mails.keys() - wanted)
    unlinked = [id_ for id_, each in mails.items() if not all(map(has_link, each))]
    return CampaignVerdict(
        people=len(told.expected),
        before=told.before,
        sent=len(mails.keys() & wanted),
        suppressed=sum(row.get("status") == "suppressed" for row in rows.values()),
        sent_twice=len(twice),
        lost=len(lost),
        uninvited=len(uninvited),
        with_link=len(mails) - len(unlinked),
        seconds=round(told.seconds, 1),
        failures=[
            *_killed(told),
            *(f"{id_} was sent {len(mails[id_])} times instead of once." for id_ in twice),
            *(f"{id_} is lost: the ledger says {rows.get(id_, {}).get('status')}." for id_ in sorted(lost)),
            *(f"{id_} was sent, though nobody wanted it." for id_ in uninvited),
            *(f"{id_} has no link for opting out." for id_ in unlinked),
            *_misdirected(told, mails),
            *_left(told, rows),
        ],
    )


def has_link(mail: Entry) -> bool:
    """Whether a mail can be opted out of with one click (RFC 8058)."""
    headers = mail["content"]["headers"]
    return link_of(mail) != "" and headers.get(POST_HEADER) == ONE_CLICK


def link_of(mail: Entry) -> str:
    """Where a mail can be opted out of; "" where nowhere."""
    value = str(mail["content"]["headers"].get(HEADER, ""))
    return value[1:-1] if value.startswith("<http") and value.endswith(">") else ""


def _killed(told: Told) -> list[str]:
    if 0 < told.before < len(told.expected):
        return []
    return [f"It was not killed half-way: {told.before} of {len(told.expected)} messages were there."]


def _misdirected(told: Told, mails: Mapping[str, Sequence[Entry]]) -> list[str]:
    return [
        f"{id_} went to {each['to']} instead of {told.expected[id_]}."
        for id_, sent in mails.items()
        for each in sent
        if id_ in told.expected and each["to"] != told.expected[id_]
    ]


def _left(told: Told, rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The one who opted out is the only one suppressed, and for that reason."""
    wrong = [
        f"{id_} should not be suppressed."
        for id_, row in rows.items()
        if row.get("status") == "suppressed" and id_ != told.leaver
    ]
    row = rows.get(told.leaver, {})
    if row.get("status") != "suppressed":
        wrong.append(f"{told.leaver} opted out; the ledger says {row.get('status')}.")
    elif (row.get("error") or {}).get("code") != "opted_out":
        wrong.append(f"{told.leaver} is suppressed for {row.get('error')}, and not for opting out.")
    return wrong
