"""Every page of the console, with and without its query, on an empty stage and on a full one: an answer, or a
refusal that leads on."""

import re
from html import unescape
from pathlib import Path

import pytest

from mailroom_ops.console.server import PAGES
from tests.support.ops.campaign import RUN
from tests.support.ops.console import Browser, Reply
from tests.support.ops.whole import ADA, begin_jobs, whole_stage

WHOLE = {"id": "whole", "channel": "mail"}
QUERIES: dict[str, list[dict[str, str]]] = {
    "/": [{"live": "off"}],
    "/lanes": [],
    "/docs": [{"page": "dlq-not-empty"}, {"page": "nothing"}, {"page": "stage-settings.schema.json"}],
    "/messages": [
        {"q": ADA},
        {"q": "whole"},
        {"status": "bounced"},
        {"campaign": f"weekly#{RUN}"},
        {"q": "nobody"},
    ],
    "/message": [
        *({"id": id_} for id_ in ("whole", "several", "failed", "dead", "both", "after", "waits", "ready")),
        {"id": f"weekly#{RUN}#ada", "channel": "mail"},
        {"id": "nobody"},
    ],
    "/failures": [
        {"since": "7d"},
        {"since": "7d", "status": "bounced", "more": "1"},
        {"since": "never"},
        {"since": "7d", "csv": "1"},
        {"twice": "yes"},
    ],
    "/selected": [{"list": ADA}],
    "/selected/act": [{"job": "gone"}, {"act": "resend", "m": '["mail", "m"]'}],
    "/dead-letters": [{"queue": "mail"}],
    "/dead-letters/redrive": [
        {"queue": "mail"},
        {"queue": "mail", "run": "1"},
        {"queue": f"erase {ADA}", "run": "1"},
    ],
    "/campaigns": [{"campaign": "weekly"}, {"campaign": "nothing"}],
    "/campaigns/start": [{"campaign": "weekly"}, {"campaign": "weekly", "look": "1"}],
    "/campaigns/mail": [{"campaign": "weekly", "id": f"weekly#{RUN}#ada"}],
    "/campaigns/change": [
        *({"campaign": "weekly", "run": RUN, "do": do} for do in ("stop", "pause", "resume", "dance"))
    ],
    "/deeds": [{"text": "stop ada"}, {"cursor": "0"}],
    "/templates": [{"name": "weekly"}, {"name": "short"}],
    "/templates/mail": [{"name": "weekly"}],
    "/message/mail": [WHOLE],
    "/message/receipt": [{"id": "letter", "channel": "fax"}, WHOLE],
    "/message/resend": [WHOLE, {**WHOLE, "force": "1"}],
    "/message/settle": [WHOLE, {"id": "dead", "channel": "mail"}],
    "/message/cancel": [WHOLE, {"id": "waits", "channel": "mail"}],
    "/people": [{"recipient": ADA}, {"recipient": "somebody"}, {"recipient": "(617) 555-1234"}],
    "/people/change": [
        {"recipient": ADA, "do": "lift", "channel": "mail"},
        {"recipient": ADA, "do": "dance"},
    ],
    "/people/erase": [{"recipient": ADA}, {"recipient": ADA, "run": "1"}],
    "/send": [{"channel": "sms"}, {"channel": "fax"}, {"channel": "telegram"}],
    "/send/mail": [{"document": "gone"}],
    "/inbox": [{"channel": channel} for channel in ("mail", "sms", "push", "fax", "webhook")],
    "/inbox/mail": [{"id": "p-1"}],
    "/inbox/mail/html": [{"id": "p-1"}],
    "/inbox/message": [{"provider_id": "p-1"}],
}
"""Queries of each page."""
NO_KEYS = ("", "x" * 2_049)
"""Values that no table can have as a key."""


def leads_on(reply: Reply) -> bool:
    """Return whether a page is an answer, or has a form that asks for what it lacks."""
    return reply.status in (200, 303) or (reply.status < 500 and '<form class="row"' in reply.text)


def fault_of_page(browser: Browser, path: str, query: dict[str, str]) -> str:
    """Return a sentence about a fault, or about a refusal that is a dead end."""
    try:
        reply = browser.get(path, **query)
    except Exception as error:  # noqa: BLE001 - the server raises it after its page
        return f"{path} {query}: {error!r}"
    links = re.findall(r'<p><a href="([^"]+)">', reply.text)[-1:]
    refused = reply.status < 500 and any(leads_on(browser.get(unescape(link))) for link in links)
    return "" if leads_on(reply) or refused else f"{path} {query}: {reply.status}, leads to {links}"


@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
def test_every_page_of_the_console_responds_or_refuses_with_a_next_step(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert QUERIES.keys() == {page.path for page in PAGES}
    with whole_stage(tmp_path, monkeypatch) as (stage, browser):
        if full:
            stage.fill()
            stage.close_the_day()
        begin_jobs(browser)
        asked = [(path, query) for path, queries in QUERIES.items() for query in ({}, *queries)]
        assert "\n".join(filter(None, (fault_of_page(browser, *page) for page in asked))) == ""


def test_a_value_that_cannot_be_a_key_does_not_cause_a_server_error_on_any_page_of_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with whole_stage(tmp_path, monkeypatch) as (stage, browser):
        stage.fill()
        begin_jobs(browser)
        pages = [(path, query) for path, queries in QUERIES.items() for query in queries]
        changed = [(path, {**query, name: key}) for path, query in pages for name in query for key in NO_KEYS]
        statuses = {f"{path} {query}": browser.get(path, **query).status for path, query in changed}
    assert {page: status for page, status in statuses.items() if status >= 500} == {}
