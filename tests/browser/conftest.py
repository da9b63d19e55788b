"""A stage, its console, and a real Chromium. `make browser` installs what this needs. Otherwise pytest
reports that the tests of this folder were not run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGE_PYTHON = os.environ.get("STAGE_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
CHROMIUM = os.environ.get("MAILROOM_CHROMIUM")
"""Path of a Chromium of the machine, or None for the one that Playwright has installed."""
MILLISECONDS = 60_000
"""Time for a page and for what it waits for. Playwright's default, 5 s, is too short on a busy machine."""


class Stage:
    """The local stage, in a process of its own, and the URLs of its consoles."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'lambdas'}", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(
            [STAGE_PYTHON, "-m", "tests.browser.console_stage"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        answer = self._answer()
        self.url: str = answer["url"]
        self.team: str = answer["team"]
        self.console = self.url.partition("/?")[0]
        self.receiver = f"{answer['providers']}/receiver"

    def put(self, **item: Any) -> None:
        """Put an item into the mailbox."""
        self._ask({"put": item})

    def bury(self, queue: str, body: object) -> None:
        """Put a message into a dead-letter queue."""
        self._ask({"dead": {"queue": queue, "body": body}})

    def list_at_ses(self, address: str) -> None:
        """Let SES bounce mails to an address: it is put onto the account's own suppression list."""
        self._ask({"listed": address})

    def mailroom(self, *words: str) -> str:
        """Run a command of an operator, and return its text without line breaks."""
        answer = self._ask({"mailroom": words})
        assert answer["code"] == 0, f"mailroom {' '.join(words)}: {answer['text']}"
        return " ".join(answer["text"].split())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, command: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the stage ended; see .local/browser-stage/*.log"
        return dict(json.loads(line))


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    stage = Stage()
    try:
        yield stage
    finally:
        stage.close()


@contextmanager
def launched() -> Iterator[Any]:
    """A Chromium."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=MILLISECONDS)
    # Chromium's sandbox does not work for root, such as in a container.
    options = ["--no-sandbox"] if sys.platform == "linux" and os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@contextmanager
def admitted(stage: Stage, chromium: Any, **options: Any) -> Iterator[Any]:
    """A page of a browser that was let in."""
    context = chromium.new_context(base_url=f"{stage.console}/", **options)
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.goto(stage.url)
    page.wait_for_url(f"{stage.console}/")
    yield page
    context.close()


@contextmanager
def signed_in(stage: Stage, chromium: Any, name: str, to: str = "/", **options: Any) -> Iterator[Any]:
    """A page of the console behind the sign-in, opened by a person at a path."""
    context = chromium.new_context(base_url=stage.team, **options)
    page = context.new_page()
    page.goto(to)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name=name).click()
    page.wait_for_url(f"{stage.team}/**")
    yield page
    context.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(stage: Stage, chromium: Any) -> Iterator[Any]:
    with admitted(stage, chromium) as page:
        yield page
