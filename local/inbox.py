"""`make inbox`: what the providers' simulators accepted."""

import json
import urllib.request
from typing import Any

from rich.console import Console
from rich.table import Table

from local.aws import Endpoints


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
    for heading in ("received", "channel", "to", "subject"):
        view.add_column(heading, overflow="fold", no_wrap=heading != "subject")
    for each in accepted[-last:]:
        view.add_row(
            each["received_at"], each["channel"], each["to"], str(each["content"].get("subject") or "")
        )
    return view


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
