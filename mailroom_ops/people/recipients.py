"""Typed recipients, in the forms that the tables of a stage have."""

import re
from typing import TYPE_CHECKING

from mailroom.message.address import bare, forms_of, to_e164
from mailroom_ops.shared.deployed_stage import function_variables, name
from mailroom_ops.shared.screen import Refused

if TYPE_CHECKING:
    import boto3

_NATIONAL = re.compile(r"[\d\s().\-/]+")
"""Pattern of a number without its country."""


def forms_at(session: "boto3.Session", stage: str, typed: str) -> tuple[str, ...]:
    """Return the forms of a recipient, the canonical form first: see `forms_of`. Only a number without its
    country asks AWS for the region of the stage. Raises NotDeployed."""
    region = ""
    if _NATIONAL.fullmatch(typed):
        variables = function_variables(session.client("lambda"), name(stage, "dispatch"))
        region = variables.get("DEFAULT_REGION", "")
    return forms_of(typed, region)


def canonical_at(session: "boto3.Session", stage: str, typed: str, channel: str = "") -> str:
    """Return a recipient in the form that messages are compared with. Raises Refused for a text that is not a
    recipient of the channel; without a channel, of mails, texts and pushes."""
    form = forms_at(session, stage, typed)[0]
    kind = channel or ("mail" if "@" in form else "push" if form.startswith("arn:") else "sms")
    try:
        return {"mail": bare, "sms": to_e164}.get(kind, str)(form)
    except ValueError as fault:
        anybody = "is not a recipient; use a mail address, a number such as +16175551234, or an ARN."
        raise Refused(f"{form!r:.80} {fault if channel else anybody}") from None
