"""`make inbox`: what the providers' simulators accepted."""

import json
import urllib.request
from typing import Any

from rich.console import Console
from rich.table import Table

from local.aws import Endpoints

BEGINNING = 60
"""Characters of a text that are shown."""


def fetch(url: str) -> list[dict[str, Any]]:
    """The list that lies there: accepted messages, faxes, or webhooks received; newest last."""
    return list(_loaded(url))


def fetch_object(url: str) -> dict[str, Any]:
    """The object that lies there, such as the count of events."""
    return dict(_loaded(url))


def _loaded(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as reply:
        return json.load(reply)


def table(accepted: list[dict[str, Any]], last: int) -> Table:
    """The last so many messages; their content is in the JSON."""
    view = Table(title=f"{len(accepted)} accepted; the last {min(last, len(accepted))}", title_justify="left")
    for heading in ("received", "channel"):
        view.add_column(heading, no_wrap=True)
    for heading in ("to", "content"):
        view.add_column(heading, overflow="fold")
    for each in accepted[-last:]:
        moment = each["received_at"].replace("T", " ").partition(".")[0]
        view.add_row(moment, each["channel"], each["to"], _words(each["content"]))
    return view


def _words(content: dict[str, Any]) -> str:
    """A mail's subject, or how another message begins."""
    found = next((content[name] for name in ("subject", "text", "body") if content.get(name)), "")
    return found if len(found) <= BEGINNING else f"{found[: BEGINNING - 1]}…"


def show(endpoints: Endpoints, as_json: bool, last: int) -> None:
    """Print the inbox, for people or for programs."""
    accepted = fetch(endpoints.inbox)
    if as_json:
        print(json.dumps(accepted, indent=2))
        return
    if accepted:
        Console().print(table(accepted, last))
    else:
        print("Nothing was sent yet.")
    if received := fetch(endpoints.received):
        print(f"{len(received)} webhooks received: {endpoints.received}")
