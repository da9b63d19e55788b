"""The demo's text messages. `mailroom_local/providers/sms.py` says what a number does."""

from collections.abc import Mapping
from typing import Any

from lab.harness.expected import Expected

GOOD = 14
LANDLINE = "+12025550132"
NO_MOBILE = "+12025550141"
UNSUBSCRIBED = "+12025550142"
UNICODE = "Привет! Это сообщение написано кириллицей и потому занимает больше места, чем латиница."
"""A text in UCS-2, which has room for 70 characters in one segment."""
GSM, UCS2 = "GSM-7", "UCS-2"


def texts() -> list[Expected]:
    """All of them; those that take longest come first: after a lost answer a claim has to run out."""
    return [
        _sms("lost-answer-looked-up", "+12025550157", ends="sent"),
        _sms("lost-answer", "+12025550154"),
        _sms("error-after-acceptance", "+12025550153"),
        _sms("server-error", "+12025550152"),
        _sms("unreachable", "+12025550130", ends="undelivered", facts={"error_code": "30003"}),
        _sms("unknown-handset", "+12025550131", ends="undelivered", facts={"error_code": "30005"}),
        _sms("landline", LANDLINE, ends="undelivered", facts={"error_code": "30006"}),
        _sms("failed", "+12025550133", ends="undelivered", facts={"error_code": "30008"}),
        _sms("carrier-says-nothing", "+12025550134", ends="sent"),
        _sms("throttled", "+12025550151"),
        _sms("slow", "+12025550155"),
        _sms("invalid", "+12025550140", reason="21211"),
        _sms("no-mobile", NO_MOBILE, reason="21614"),
        _sms("unsubscribed", UNSUBSCRIBED, reason="21610", ends="suppressed"),
        _sms("to-nobody", "555-CALL-ME", reason="to: "),
        _sms("too-long", "+12025550160", text="ж" * 700, reason="text: "),
        _sms("by-hand", "(202) 555-0161"),
        _sms("unicode", "+12025550162", text=UNICODE, facts={"segments": 2, "encoding": UCS2}),
        _sms("long", "+12025550163", text="A long line. " * 20, facts={"segments": 2, "encoding": GSM}),
        _sms(
            "template", "+12025550164", text=None, template="default", first_name="Ada", last_name="Lovelace"
        ),
        _sms("media", "+12025550165", media_urls=["https://example.com/map.png"]),
        *(
            _sms(f"{n:02}", f"+131255501{70 + n}", facts={"segments": 1, "encoding": GSM})
            for n in range(GOOD)
        ),
    ]


def suppressed() -> dict[str, str]:
    """The numbers that must be on the suppression list in the end, and why."""
    return {LANDLINE: "bounce", NO_MOBILE: "gone", UNSUBSCRIBED: "stop"}


def again() -> Expected:
    """A second message to the landline, to be put when the first has come back."""
    return _sms("again", LANDLINE, reason="bounced", ends="suppressed")


def _sms(
    name: str,
    to: str,
    *,
    reason: str = "",
    ends: str = "",
    facts: Mapping[str, object] | None = None,
    **attributes: Any,
) -> Expected:
    item = {"id": f"sms-{name}", "event_type": "sms", "to": to, "text": f"Hello from {name}.", **attributes}
    given = {key: value for key, value in item.items() if value is not None}
    return Expected(given, reason, ends, facts or {})
