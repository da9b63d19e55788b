"""The demo's faxes: 60 to 12 numbers, and one to no number. `local/providers/fax.py` has the numbers."""

from dataclasses import dataclass
from typing import Any, Literal

from local.demo.scenarios import CALLBACKS, Notice

SENT: Notice = ("sent", "Fax sent successfully")
BUSY, TWICE, SLOW, LOST, REFUSING, THROTTLED, BROKEN = (
    f"+12025550{ending}" for ending in (110, 112, 113, 114, 115, 116, 123)
)
GOOD = tuple(f"+13125550{ending}" for ending in (130, 131, 132))
UPSTREAM = tuple(f"+14155550{ending}" for ending in (130, 131))
"""Lines that only the upstream application faxes to: the order of their queue is known."""
NUMBERS = (BUSY, TWICE, SLOW, LOST, REFUSING, THROTTLED, BROKEN, *GOOD, *UPSTREAM)
EACH_GOOD, EACH_UPSTREAM = 12, 6
WRONG_GROUP = "the-invoices"
PDF = b"%PDF-1.7\n% one page, for the demo\n%%EOF\n"


@dataclass(frozen=True)
class FaxScenario:
    """One fax. `line` is its number in E.164 ("" if it has none). Its first `fails` attempts end as
    `failing`; `reason` is a word of the ledger's error if the fax is not delivered."""

    id: str
    line: str
    to: str = ""
    way: Literal["mailbox", "queue"] = "mailbox"
    group: str = ""
    fails: int = 0
    failing: str = "busy"
    delivered: bool = True
    reason: str = ""
    payload: bool = False
    answer: str = "ok"
    """How the receiver of its callbacks answers."""

    @property
    def key(self) -> tuple[str, str]:
        return self.id, "fax"

    @property
    def ordered(self) -> bool:
        """Whether the order of its line's queue is the order of writing."""
        return self.way == "queue" and not self.group

    def body(self, providers: str, bucket: str) -> dict[str, Any]:
        """What an upstream application writes to the fax queue."""
        body = {
            "fax_id": self.id,
            "to": self.to or self.line,
            "callback_url": f"{providers}/receiver/{self.answer}/{CALLBACKS}/{self.id}",
        }
        if self.payload:
            return body | {"payload_ref": f"s3://{bucket}/{self.id}.pdf"}
        return body | {"pdf_url": f"https://example.com/faxes/{self.id}.pdf"}

    def item(self, providers: str, bucket: str) -> dict[str, Any]:
        body = self.body(providers, bucket)
        return {"id": body.pop("fax_id"), "event_type": "fax", **body}

    def callbacks(self, most: int) -> list[Notice]:
        """The callbacks that must come, if a fax may have so many attempts."""
        attempts = [
            ("tmp_fail", f"Failed to deliver fax (attempt {nth} of {most}). Fax status: {self.failing}")
            for nth in range(1, min(self.fails, most - 1) + 1)
        ]
        if self.delivered:
            return [*attempts, SENT]
        if self.fails:
            last = f"Failed to deliver fax after {most} tries. Last attempt status: {self.failing}"
            return [*attempts, ("perm_fail", last)]
        return [*attempts, ("perm_fail", "Failed to deliver fax: ")]

    def calls(self, most: int) -> int:
        """How many times the provider must have accepted it."""
        return min(self.fails + self.delivered, most)


def faxes(most: int) -> list[FaxScenario]:
    """All of them, in the order in which they are put: those that take longest come first. A fax may have
    `most` attempts."""
    return [
        FaxScenario("fax-busy-for-ever", BUSY, fails=most, delivered=False, reason="busy"),
        FaxScenario("fax-slow", SLOW),
        FaxScenario("fax-lost-answer", LOST),
        *(FaxScenario(f"fax-busy-twice-{number}", TWICE, fails=2) for number in range(3)),
        *(FaxScenario(f"fax-broken-once-{number}", BROKEN, fails=1, failing="failed") for number in range(3)),
        *(FaxScenario(f"fax-throttled-{number}", THROTTLED) for number in range(2)),
        FaxScenario("fax-refused", REFUSING, delivered=False, reason="number"),
        FaxScenario("fax-to-nowhere", "", to="555-CALL-ME", delivered=False, reason="to: "),
        FaxScenario("fax-from-the-bucket", GOOD[0], payload=True),
        FaxScenario("fax-told-twice", GOOD[1], answer="flaky/1"),
        *(
            FaxScenario(f"fax-{number:02}", GOOD[number % len(GOOD)])
            for number in range(EACH_GOOD * len(GOOD) - 2)
        ),
        *(
            FaxScenario(f"fax-upstream-{number:02}", UPSTREAM[number % len(UPSTREAM)], way="queue")
            for number in range(EACH_UPSTREAM * len(UPSTREAM) - 2)
        ),
        FaxScenario("fax-upstream-by-hand", UPSTREAM[0], to="+1 (415) 555-0130", way="queue"),
        FaxScenario("fax-upstream-wrong-group", UPSTREAM[1], way="queue", group=WRONG_GROUP),
    ]
