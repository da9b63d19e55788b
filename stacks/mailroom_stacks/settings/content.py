"""Settings of the contents of messages: templates, and the attributes of items."""

from typing import Literal

from mailroom_stacks.settings.sections import Section


class Templates(Section):
    """Templates beside those of a deployment."""

    publish: bool = False
    """Whether `mailroom template put` may publish versions of templates, without a deployment."""


class Items(Section):
    """Items of producers."""

    unknown: Literal["allow", "refuse"] = "allow"
    """Treatment of an attribute that Mailroom does not use: `mailroom status` names it, or its message
    fails."""
