"""The installed wheel's stage on this machine: messages of all channels, a channel and a campaign of the
team's own, a changed setting, and an update to another wheel."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import pytest

from mailroom_local.aws import fetch
from tests.support.pipeline.shared import until
from tests.support.release.installed import Environment, build, copy_sources, install, link_caches
from tests.support.stacks.page_blocks import blocks, channel_rows

CAMPAIGN = """
channel = "mail"
topic = "news"
template = "welcome"
concurrency = 2

[audience]
kind = "module"
"""
AUDIENCE = """
from mailroom.campaigns import Found, Page, Recipient

PEOPLE = ("ada", "bob")


def recipients(page: Page) -> Found:
    return Found([Recipient(name, columns(name)) for name in PEOPLE], cursor=None)


def columns(name: str) -> dict[str, str]:
    return {"to": f"{name}@example.com", "first_name": name, "link": "https://example.com"}
"""
SETS = ("--set", "first_name=Ada", "--set", "link=https://example.com")
SENT = {
    "mail": ("--to", "ada@example.com", "--template", "welcome", *SETS),
    "sms": ("--to", "+16175551234", "--text", "Hello"),
    "push": ("--to", "arn:aws:sns:us-east-1:000000000000:mailroom-local-news", "--set", "body=Hello"),
    "fax": ("--to", "+12025550112", "--set", "pdf_url=https://example.com/letter.pdf"),
    "telegram": ("--to", "1", "--text", "Hello"),
}
"""Messages for each channel that has an inbox."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def team(installed: Environment) -> Path:
    """The new folder, with a campaign of its own."""
    team = installed.team
    (team / "campaigns" / "hello").mkdir()
    (team / "campaigns" / "hello" / "campaign.toml").write_text(CAMPAIGN)
    (team / "campaigns" / "hello" / "campaign.py").write_text(AUDIENCE)
    settings = json.loads((team / "cdk.json").read_text())
    local = settings["context"]["mailroom"]["local"]
    local["channels"]["mail"] |= {
        "base_url": "providers",
        "lanes": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}},
    }
    local["mail"]["provider"] = "resend"
    local["campaigns"] = {"enabled": ["hello"]}
    (team / "cdk.json").write_text(json.dumps(settings))
    link_caches(team)
    return team


@pytest.fixture(scope="module")
def stage_variables(installed: Environment, team: Path) -> Iterator[dict[str, str]]:
    """The variables of a shell that has read .local/env, of a running stage. Resend sends its mails; those of
    all other stages of these tests go by SES."""
    installed.answer("mailroom", "up", cwd=team)
    lines = (team / ".local" / "env").read_text().splitlines()
    yield dict(line.removeprefix("export ").split("=", 1) for line in lines if "PATH" not in line)
    installed.answer("mailroom", "down", cwd=team)


class Console:
    """Console, opened with the URL that `mailroom up` printed at the end of its output."""

    def __init__(self, up: str) -> None:
        self.url = up.split()[-1]
        self.port = urlsplit(self.url).port
        self._opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))
        assert self._opener.open(self.url).status == 200

    def status(self, path: str) -> int:
        """Return the status of the response to a request for a page."""
        try:
            with self._opener.open(self.url.partition("?")[0] + path) as response:
                status: int = response.status
                return status
        except HTTPError as error:
            return error.code


def test_a_channel_added_to_a_running_stage_works_after_mailroom_up_and_earlier_messages_are_kept(
    installed: Environment, team: Path, stage_variables: dict[str, str]
) -> None:
    first = Console(installed.answer("mailroom", "up"))
    for channel in ("mail", "sms", "fax"):
        command = ("mailroom", "send", channel, "--id", f"before-{channel}", *SENT[channel], "--wait")
        installed.answer(*command, "--stage", "local", variables=stage_variables)
    before = fetch(stage_variables["MAILROOM_INBOX"])
    for path, text in blocks():
        (team / path).parent.mkdir(exist_ok=True)
        (team / path).write_text(text)
    set_setting(team, "channels", "telegram", value=channel_rows()["local"]["telegram"])
    console = Console(installed.answer("mailroom", "up"))
    assert console.port == first.port
    pages = ("inbox", *(f"send?channel={channel}" for channel in (*SENT, "webhook")))
    assert {path: console.status(path) for path in pages} == dict.fromkeys(pages, 200)
    command = ("mailroom", "send", "telegram", "--to", "1", "--text", "New", "--stage", "local", "--wait")
    assert "sent" in installed.answer(*command, variables=stage_variables)
    *earlier, telegram = fetch(stage_variables["MAILROOM_INBOX"])
    assert (earlier, telegram["content"]) == (before, {"text": "New"})
    assert "with the current settings and code" in installed.answer("mailroom", "up")


def test_a_message_of_each_channel_arrives_including_the_teams_own_channel(
    installed: Environment, team: Path, stage_variables: dict[str, str]
) -> None:
    for channel, words in SENT.items():
        command = ("mailroom", "send", channel, "--id", f"a-{channel}", *words, "--wait")
        installed.answer(*command, "--stage", "local", cwd=team, variables=stage_variables)
    hook = {
        "id": "a-hook",
        "event_type": "webhook",
        "url": f"{stage_variables['MAILROOM_PROVIDERS']}/receiver/ok",
    }
    (team / "hook.json").write_text(json.dumps({**hook, "payload": {"order": 42}}))
    said = installed.answer(
        *("mailroom", "send", "--file", "hook.json", "--wait", "--stage", "local"),
        cwd=team,
        variables=stage_variables,
    )
    assert "sent" in said
    inbox = installed.answer("mailroom", "inbox", cwd=team)
    assert all(re.search(rf"\b{channel}\b", inbox) for channel in SENT)


def test_a_stage_with_the_mail_provider_resend_passes_its_rehearsal(
    installed: Environment, team: Path, stage_variables: dict[str, str]
) -> None:
    asked = ("mailroom", "rehearse", "--stage", "local", "--json")
    report = json.loads(installed.answer(*asked, cwd=team, variables=stage_variables))
    assert report["ok"], report
    said = installed.answer(
        "mailroom", "messages", "show", "a-mail", "--stage", "local", cwd=team, variables=stage_variables
    )
    assert "provider  resend " in said


def test_a_campaign_that_the_team_wrote_reaches_the_people_of_its_audience(
    installed: Environment, team: Path, stage_variables: dict[str, str]
) -> None:
    start = ("mailroom", "campaign", "start", "hello", "--run", "one", "--new", "--yes", "--stage", "local")
    installed.answer(*start, cwd=team, variables=stage_variables)
    until(
        lambda: {"ada@example.com", "bob@example.com"} <= reached(stage_variables),
        30,
        lambda: f"{reached(stage_variables)}",
    )


def reached(stage: dict[str, str]) -> set[str]:
    """Return the recipients of mails with the campaign's subject."""
    welcomes = (each for each in fetch(stage["MAILROOM_INBOX"]) if each["channel"] == "mail")
    return {each["to"] for each in welcomes if each["content"]["subject"] in ("Welcome, ada", "Welcome, bob")}


def set_setting(team: Path, *path: str, value: Any) -> None:
    """Set a setting of the stage `local` in the folder's cdk.json; None removes it."""
    file = team / "cdk.json"
    settings = json.loads(file.read_text())
    section = settings["context"]["mailroom"]["local"]
    for name in path[:-1]:
        section = section[name]
    if value is None:
        del section[path[-1]]
    else:
        section[path[-1]] = value
    file.write_text(json.dumps(settings))


def test_mailroom_up_deploys_a_changed_setting_over_a_running_stage_unless_it_removes_a_queue(
    installed: Environment, team: Path, stage_variables: dict[str, str]
) -> None:
    before = (team / "cdk.json").read_text()
    assert "with the current settings and code" in installed.answer("mailroom", "up")
    set_setting(team, "channels", "telegram", value=None)
    refused = installed.run("mailroom", "up")
    assert refused.returncode == 1
    assert "queue" in refused.stderr
    assert "Nothing was changed." in refused.stderr
    (team / "cdk.json").write_text(before)
    set_setting(team, "channels", "mail", "memory_mb", value=300)
    assert "The messages are preserved." in installed.answer("mailroom", "up")
    said = installed.answer(
        "mailroom", "messages", "show", "a-mail", "--stage", "local", variables=stage_variables
    )
    assert "provider  resend " in said


PUT = """
from mailroom.client import Mailroom
mail = {"event_type": "mail", "subject": "Kept", "text": "Kept."}
items = (mail | {"id": f"kept-{n}", "to": f"kept-{n}@example.com"} for n in range(200))
print(Mailroom("local").send_many(items).accepted)
"""


def test_each_of_200_messages_is_sent_once_during_an_update_to_another_wheel(
    installed: Environment, team: Path, stage_variables: dict[str, str], tmp_path: Path
) -> None:
    copy_sources(tmp_path, "9.9.9")
    for changed in ("lambdas/send_mail_resend.py", "mailroom_local/providers/resend_mail.py"):
        with (tmp_path / changed).open("a") as module:
            module.write("# Another release.\n")
    with (tmp_path / "mailroom_ops/setup/project/README.md").open("a") as page:
        page.write("Another release.\n")
    wheel = build(tmp_path, tmp_path / "dist")
    assert installed.answer("python", "-c", PUT, variables=stage_variables) == "200\n"
    updated = installed.answer("mailroom", "update", str(wheel))
    assert updated.splitlines()[:2] == ["Changed: README.md", "Changed: requirements.txt"]
    assert (team / "README.md").read_text().endswith("Another release.\n")
    installed.install()
    assert installed.answer("mailroom", "--version") == "mailroom 9.9.9\n"
    before = processes(team)
    assert "The messages are preserved." in installed.answer("mailroom", "up")
    until(lambda: len(kept(stage_variables)) == 200, 60, lambda: f"{len(kept(stage_variables))} arrived")
    assert {*Counter(kept(stage_variables)).values()} == {1}
    assert {name for name, pid in processes(team).items() if pid == before[name]} == {"ministack", "postgres"}


def processes(team: Path) -> dict[str, int]:
    """Return the ids of the stage's processes."""
    state = json.loads((team / ".local" / "state.json").read_text())
    return {name: process["pid"] for name, process in state["processes"].items()}


def kept(stage: dict[str, str]) -> list[str]:
    """Return the recipients of the mails that were put before the update."""
    return [each["to"] for each in fetch(stage["MAILROOM_INBOX"]) if each["to"].startswith("kept-")]
