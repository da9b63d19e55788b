"""What Twilio's refusals say, and whose fault they are. The codes are of its error dictionary:
https://www.twilio.com/docs/api/errors."""

from collections.abc import Mapping
from http import HTTPStatus

from mailroom.discretion import discreet
from mailroom.http_answers import body_of, refusal, retry_after
from mailroom.http_once import Unclear
from mailroom.outcome import Outcome, Rejected, Retry

_LATER = {
    14107,  # the rate at which one number may be answered
    20429,  # too many requests: not processed
    21611,  # the sender's queue is full
    21730,  # maintenance
    30001,  # the queue overflows
    30008,  # unknown error
    30022,  # the campaign's rate
}
_THE_MESSAGES_OWN = {
    21211,  # To is no number
    21217,  # nor does it look like one
    21265,  # To is a short code
    21266,  # To is our own number
    21602,  # no body
    21604,  # no To
    21605,  # the body is too long
    21610,  # the recipient has unsubscribed
    21612,  # To cannot be reached from there
    21614,  # To is no mobile number
    21617,  # the body is over 1600 characters
    21619,  # no body
    21620,  # a media URL is not valid
    21623,  # too many media
    21635,  # To is a landline
    30003,  # the handset cannot be reached
    30004,  # the recipient or its carrier blocks
    30005,  # nobody has that number
    30006,  # a landline, or a carrier that cannot be reached
}
_OURS = {
    10001,  # the account is not active
    10002,  # a trial account
    20003,  # authentication
    20005,  # the account is not active
    20006,  # access denied
    20008,  # test credentials
    20404,  # no such account
    21212,  # From is no number
    21408,  # the account may not send to that region
    21601,  # From can do no SMS
    21603,  # no From
    21606,  # From is not the account's, or can do no SMS
    21607,  # From is none that a trial may use
    21608,  # a trial sends to verified numbers alone
    21609,  # StatusCallback is no URL
    21616,  # From is several accounts'
    21621,  # From can do no MMS
    21622,  # the account can do no MMS
    21624,  # ValidityPeriod
    21701,  # the Messaging Service does not exist
    21702,  # it is not the account's
    21703,  # it has no number that would do
    21704,  # it has no number at all
    21705,  # its SID is no SID
    21714,  # its pool is full
    21715,  # its number can do no SMS
    30002,  # the account is suspended
    30024,  # the sender is not set up for that country
    30032,  # the toll-free number is not verified
    30034,  # the number has no 10DLC registration
    30035,  # that is still under way
    30036,  # ValidityPeriod is over
    30045,  # ValidityPeriod
    90007,  # ValidityPeriod
}


def outcome_of(status: int, headers: Mapping[str, str], text: str) -> Outcome:
    """What an answer outside 2xx to a submit proves. Raises Unclear where it proves nothing."""
    code, reason = reason_of(status, text)
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        if code in _LATER:
            return Retry(reason, retry_after(headers))
        if code in _THE_MESSAGES_OWN:
            return Rejected(reason)
    return refusal(status, headers, reason, ours=code in _OURS)


def reason_of(status: int, text: str) -> tuple[int, str]:
    """Twilio's code (0: none) and a sentence for the ledger and the log.

    Its errors have `code` and `message`; those by RFC 9457, which newer services answer with, `detail`.
    """
    try:
        body = body_of(status, text)
    except Unclear:
        body = {}
    said = str(body.get("code") or "")
    code = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    words = str(body.get("message") or body.get("detail") or body.get("title") or "no reason given")
    return code, f"Twilio answered {status}{f' ({code})' if code else ''}: {discreet(words)}"
