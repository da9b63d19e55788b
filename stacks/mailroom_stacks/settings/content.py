"""Settings of templates, and of the attributes of items."""

from typing import Literal

from mailroom_stacks.settings.sections import Section


class Templates(Section):
    """Settings of templates that are published without a deployment."""

    publish: bool = False
    """Whether `mailroom template put` may publish versions of templates without a deployment."""


class Items(Section):
    """Settings of the items that producers put into the mailbox."""

    unknown: Literal["allow", "refuse"] = "allow"
    """Treatment of attributes that Mailroom does not use: with allow, `mailroom messages show` lists them;
    with refuse, the message fails."""
