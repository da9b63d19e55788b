"""Converts recipients that operators type to the forms in which the tables of a stage store them."""

import re
from typing import TYPE_CHECKING

from mailroom.errors import can_be_key
from mailroom.message.address import bare, forms_of, to_e164
from mailroom_ops.shared.deployed_stage import function_variables, name
from mailroom_ops.shared.refusals import Refused

if TYPE_CHECKING:
    import boto3

_NATIONAL = re.compile(r"[\d\s().\-/]+")
"""Pattern of a telephone number without a country code."""


def forms_at(session: "boto3.Session", stage: str, typed: str) -> tuple[str, ...]:
    """Return the forms of a recipient, the canonical form first: see `forms_of`. The stage's default region
    is read from AWS only for a telephone number without a country code. Raises NotDeployed, and Refused if
    the text cannot be a recipient."""
    if not can_be_key(typed):
        raise Refused(f"{typed!r:.80} is not a recipient; use a mail address, a number or an ARN.")
    region = ""
    if _NATIONAL.fullmatch(typed):
        variables = function_variables(session.client("lambda"), name(stage, "dispatch"))
        region = variables.get("DEFAULT_REGION", "")
    return forms_of(typed, region)


def canonical_at(session: "boto3.Session", stage: str, typed: str, channel: str = "") -> str:
    """Return a recipient in the form with which recipients of messages are compared. Raises Refused if the
    text is not a recipient of the channel or, without a channel, of mail, SMS or push."""
    form = forms_at(session, stage, typed)[0]
    kind = channel or ("mail" if "@" in form else "push" if form.startswith("arn:") else "sms")
    try:
        return {"mail": bare, "sms": to_e164}.get(kind, str)(form)
    except ValueError as fault:
        anybody = "is not a recipient; use a mail address, a number such as +16175551234, or an ARN."
        raise Refused(f"{form!r:.80} {fault if channel else anybody}") from None
