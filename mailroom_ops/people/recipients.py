"""Typed recipients, in the forms that the tables of a stage have."""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.message.address import forms_of
from mailroom_ops.stage import function_settings, name

if TYPE_CHECKING:
    import boto3

_NATIONAL = re.compile(r"[\d\s().\-/]+")
"""A number without its country."""


class _Dispatch(Struct, frozen=True, rename="upper"):
    """Variable of `dispatch` with the region in which numbers without their country are dialled."""

    default_region: str = ""


def forms_at(session: "boto3.Session", stage: str, typed: str) -> tuple[str, ...]:
    """Return the forms of a recipient, the canonical form first: see `forms_of`. Only a number without its
    country asks AWS for the region of the stage. Raises NotDeployed."""
    region = ""
    if _NATIONAL.fullmatch(typed):
        functions = session.client("lambda")
        region = function_settings(functions, name(stage, "dispatch"), _Dispatch).default_region
    return forms_of(typed, region)
