"""The demo's faxes: 60 to 12 numbers, and one to no number. mailroom_local/providers/fax.py has them."""

from collections.abc import Iterator
from functools import partial

from lab.harness.expected import CALLBACKS, Expected, Notice

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


def faxes(most: int, providers: str, bucket: str) -> Iterator[Expected]:
    """All of them, in the order in which they are put: those that take longest come first. A fax may have
    `most` attempts. `providers` is the simulators' URL; documents by reference lie in `bucket`."""
    one = partial(fax, providers=providers, most=most)
    yield one("fax-busy-for-ever", BUSY, fails=most, reason="busy")
    yield one("fax-slow", SLOW)
    yield one("fax-lost-answer", LOST)
    yield from (one(f"fax-busy-twice-{number}", TWICE, fails=2) for number in range(3))
    yield from (one(f"fax-broken-once-{number}", BROKEN, fails=1, failing="failed") for number in range(3))
    yield from (one(f"fax-throttled-{number}", THROTTLED) for number in range(2))
    yield one("fax-refused", REFUSING, reason="number")
    yield one("fax-to-nowhere", "", to="555-CALL-ME", reason="to: ")
    yield one("fax-from-the-bucket", GOOD[0], bucket=bucket)
    yield one("fax-told-twice", GOOD[1], answer="flaky/1")
    for number in range(EACH_GOOD * len(GOOD) - 2):
        yield one(f"fax-{number:02}", GOOD[number % len(GOOD)])
    for number in range(EACH_UPSTREAM * len(UPSTREAM) - 2):
        line = UPSTREAM[number % len(UPSTREAM)]
        yield one(f"fax-upstream-{number:02}", line, group=line)
    yield one("fax-upstream-by-hand", UPSTREAM[0], to="+1 (415) 555-0130", group=UPSTREAM[0])
    yield one("fax-upstream-wrong-group", UPSTREAM[1], group=WRONG_GROUP)


def fax(
    id_: str,
    line: str,
    *,
    providers: str,
    most: int = 1,
    to: str = "",
    group: str = "",
    fails: int = 0,
    failing: str = "busy",
    reason: str = "",
    bucket: str = "",
    answer: str = "ok",
) -> Expected:
    """One fax to the number `line`, written as `to`. Its first `fails` attempts of `most` end as
    `failing`; `reason` is a word of the ledger's error if the fax is not delivered. The document lies in
    `bucket`, or on the web; `answer` is how the receiver of the callbacks answers."""
    stored, on_the_web = f"s3://{bucket}/{id_}.pdf", f"https://example.com/faxes/{id_}.pdf"
    return Expected(
        {
            "id": id_,
            "event_type": "fax",
            "to": to or line,
            "callback_url": f"{providers}/receiver/{answer}/{CALLBACKS}/{id_}",
            **({"payload_ref": stored} if bucket else {"pdf_url": on_the_web}),
        },
        reason=reason,
        callbacks=_callbacks(fails, failing, reason, most),
        failing=fails,
        arrives_at=line,
        group=group,
    )


def _callbacks(fails: int, failing: str, reason: str, most: int) -> list[Notice]:
    attempts = [
        ("tmp_fail", f"Failed to deliver fax (attempt {nth} of {most}). Fax status: {failing}")
        for nth in range(1, min(fails, most - 1) + 1)
    ]
    if not reason:
        return [*attempts, SENT]
    if fails:
        last = f"Failed to deliver fax after {most} tries. Last attempt status: {failing}"
        return [*attempts, ("perm_fail", last)]
    return [("perm_fail", "Failed to deliver fax: ")]
