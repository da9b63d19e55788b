"""What Twilio's refusals say, and whose fault they are. The codes are of its error dictionary:
https://www.twilio.com/docs/api/errors."""

from collections.abc import Mapping
from http import HTTPStatus

from mailroom.http.https import Unclear
from mailroom.http.provider import body_of, refusal, retry_after
from mailroom.message.outcome import Outcome, Rejected, Retry
from mailroom.redaction import discreet

_LATER = {
    14107,  # the rate at which one number may be answered
    20429,  # too many requests: not processed
    21611,  # the sender's queue is full
    21730,  # maintenance
    30001,  # the queue overflows
    30008,  # unknown error
    30022,  # the campaign's rate
}
_LANDLINE = {
    21614,  # To is no mobile number
    21635,  # To is a landline
}
_THE_MESSAGES_OWN = {
    *_LANDLINE,
    21211,  # To is no number
    21217,  # nor does it look like one
    21265,  # To is a short code
    21266,  # To is our own number
    21268,  # To is a premium rate or an information service
    21602,  # no body
    21604,  # no To
    21605,  # the body is too long
    21610,  # the recipient has unsubscribed
    21612,  # To cannot be reached from there
    21617,  # the body is over 1600 characters
    21618,  # the body cannot be sent
    21619,  # no body, and no media
    21620,  # a media URL is not valid
    21623,  # too many media
    30003,  # the handset cannot be reached
    30004,  # the recipient or its carrier blocks
    30005,  # nobody has that number
    30006,  # a landline, or a carrier that cannot be reached
}


def outcome_of(status: int, headers: Mapping[str, str], text: str) -> Outcome:
    """What an answer outside 2xx to a submit proves. Raises Unclear where it proves nothing.

    A refusal is taken for ours (sender, service, account, registration, address of callbacks) unless its code
    blames the message: ours are many, new ones come, and a message that fails for one is lost in silence.
    """
    code, reason = reason_of(status, text)
    if 400 <= status < 500 and status != HTTPStatus.REQUEST_TIMEOUT:
        if code in _LATER:
            return Retry(reason, retry_after(headers))
        if code in _THE_MESSAGES_OWN:
            return Rejected(reason, gone=code in _LANDLINE)
    return refusal(status, headers, reason, ours=True)


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
