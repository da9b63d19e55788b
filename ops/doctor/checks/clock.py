"""Whether this machine's clock is right: AWS takes no request that was signed minutes ago, and neither do
those who check a webhook's signature."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import requests

from ops.doctor.look import CONNECT_SECONDS, READ_SECONDS, Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

GOOD_SECONDS, MOST_SECONDS = 60, 300
"""Five minutes are what SigV4 and the Standard Webhooks convention allow."""
_FIX = "Let the machine keep its time by NTP, such as `timedatectl set-ntp true`."


def own(look: Look) -> Iterator[Verdict]:
    """Held against the Date of an answer of AWS, which needs no signature."""
    before = look.clock()
    try:
        answer = requests.get(
            look.endpoint, timeout=(CONNECT_SECONDS, READ_SECONDS), allow_redirects=False, stream=True
        )
    except requests.RequestException as trouble:
        yield skipped(f"AWS could not be asked for the time: {type(trouble).__name__}.")
        return
    after = look.clock()
    with answer:
        date = answer.headers.get("Date")
    if not date:
        yield skipped("The answer of AWS has no date.")
        return
    # A Date is cut to whole seconds; it was written somewhere between the two looks at the clock.
    yield verdict_of((before + after) / 2 - parsedate_to_datetime(date).timestamp() - 0.5)


def verdict_of(ahead: float) -> Verdict:
    """What a clock that is so many seconds ahead means; under 0 it is behind."""
    off, way = abs(ahead), "ahead" if ahead > 0 else "behind"
    if off <= GOOD_SECONDS:
        return ok(f"This machine's clock is right, to {max(1, round(off))} s.")
    if off <= MOST_SECONDS:
        return warning(f"This machine's clock is {off:.0f} s {way}.", _FIX)
    return failed(f"This machine's clock is {off:.0f} s {way}: AWS takes no request of it.", _FIX)
