"""What messages are made of: templates, and the attributes of items."""

from typing import Literal

from mailroom_stacks.settings.sections import Section


class Templates(Section):
    """Templates beside those that a deployment brings."""

    publish: bool = False
    """Whether `mailroom template put` may publish versions of templates, without a deployment."""


class Items(Section):
    """What producers put."""

    unknown: Literal["allow", "refuse"] = "allow"
    """What becomes of an attribute that nothing uses: `mailroom status` names it, or its message fails."""
