"""Page of the documentation of the installed version, such as the page of an alarm."""

import re

from mailroom_ops.console.site import Answer, Request, Shown, Site, View
from mailroom_ops.setup.docs import name_of, pages
from mailroom_ops.shared.screen import Refused

START = "operate"
"""Page that is shown if the request does not name one."""
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_STAGE = re.compile(r"(?<=--stage )prod\b|(?<=mailroom-)prod(?=-)")
"""Name of the stage in the commands of the pages."""


class Docs(View, frozen=True):
    """Values of a page of the documentation."""

    blocks: list[str]
    """Headings, paragraphs, lists and code, in Markdown without links."""


def show(site: Site, request: Request) -> Answer:
    """Show a page, with the name of the stage in its commands. Raises Refused if the page does not exist."""
    file = pages().get(name_of(request["page"] or START))
    if file is None or file.suffix != ".md":
        raise Refused(f"The documentation has no page {request['page']!r:.60}.")
    text = _STAGE.sub(site.stage, _LINK.sub(r"\1", file.read_text()))
    heading, *blocks = text.strip().split("\n\n")
    return Shown(Docs(blocks), heading.replace("`", "").removeprefix("# "))
