"""The commands that README, tutorials and pages on deploying and own channels print are run literally.

Commands that need AWS run against the emulator. NOT_RUN names each command that does not run here, with the
reason; a command that is neither run nor named there fails a test.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from mailroom_local import processes
from mailroom_local.aws import Endpoints, LocalSession, patient
from mailroom_local.stage import emulator
from mailroom_local.stage.workspace import Workspace
from tests.support import ROOT
from tests.support.docs_pages import Page
from tests.support.printed import PIP_BY_UV, Command, clone, commands_of, programs, run_in_shell, variables_of
from tests.support.release.installed import build, copy_sources, link_caches
from tests.support.stacks.page_blocks import blocks, channel_rows

README = "README.md"
MESSAGE, STAGE = "docs/tutorial/first-message.md", "docs/tutorial/first-stage.md"
DEPLOYING, CI = "docs/how-to/deploy-update-go-back.md", "docs/how-to/deploy-from-ci.md"
CHANNEL = "docs/how-to/add-a-channel.md"
PAGES = (README, MESSAGE, STAGE, DEPLOYING, CI, CHANNEL)

ID = re.compile(r"[0-9a-f]{6,}[0-9a-f-]*")
"""A provider's id of a message."""
NESTED = "a test within a test; CI runs it by itself"
FUNCTIONS = (
    "needs running functions: the bundles of a stage on AWS are for AWS's processors and Python. "
    "tests/pipeline and tests/update run these commands on the local stage"
)
DESTRUCTIVE = "changes resources of a stage with a fault, or a stage that is taken apart; needs one on AWS"
PLACEHOLDER = "has a placeholder, which the reader replaces"
FIRST_MAIL = 'mailroom send mail --id first-1 --to ada@example.com --subject Hello --text "It works."'
REGION_TYPE = "--type RESOURCE --type-name AWS::SES::ConfigurationSet --query TypeName"
REGION = "the emulator has one region"
NOT_RUN: dict[str, str] = {
    "make demo": NESTED,
    "make test": NESTED,
    "mailroom rehearse --stage dev": FUNCTIONS,
    "mailroom rehearse --stage dev --json > rehearsal.json": FUNCTIONS,
    f"{FIRST_MAIL} --wait --stage dev": FUNCTIONS,
    "mailroom messages show first-1 --stage dev": FUNCTIONS,
    "mailroom console --stage dev": "serves until Ctrl-C; tests/browser and tests/ops open its pages",
    "export AWS_REGION=eu-central-1": REGION,
    f"aws cloudformation describe-type {REGION_TYPE}": "the emulator does not list the types of a region",
    "git revert COMMIT": PLACEHOLDER,
    "mailroom diff --stage prod": "follows `git revert`",
    "mailroom deploy --stage prod": "follows `git revert`",
    **dict.fromkeys(
        (
            command.name
            for command in commands_of(DEPLOYING)
            if command.section in ("### Taking parts out", "## Stopping at once", "## Restoring a table")
        ),
        DESTRUCTIVE,
    ),
    **dict.fromkeys(
        (command.name for command in commands_of(CI) if command.name != "mailroom policy --stage prod"),
        "needs IAM's roles and policies, which the emulator does not enforce, and a CI system",
    ),
}
"""Commands that do not run here, by their text, with the reason."""


class Shell(NamedTuple):
    """Sections of a page whose commands a reader types in one shell."""

    page: str
    sections: tuple[str, ...]
    folder: str = "mailroom"
    """Folder in which the shell begins: `mailroom` and `cdk` are fresh clones."""
    on_aws: bool = False
    """Whether the shell has credentials of AWS, here of an empty account of the emulator."""
    before: str = ":"
    """Command that the prose of the page tells to run first."""
    after: str = ":"
    """Command that ends what the others have started."""
    programs: tuple[str, ...] = ()
    """Programs that the page needs besides Python, make and git."""
    real_pip: bool = False
    """Whether pip itself installs packages, in two minutes, and not uv from its cache."""


ACTIVATE = ". .venv/bin/activate"
OVERVIEW = "# Deploy, update, go back"
SHELLS = (
    Shell(README, ("## Try it",), after="make down", programs=("aws",)),
    Shell(README, ("## Deploy it",), on_aws=True),
    Shell(
        MESSAGE,
        (
            "## Make a folder",
            "## Start the local stage",
            "## Send a mail",
            "## Edit a template",
            "## Receive a callback",
        ),
        after="mailroom down",
    ),
    Shell(STAGE, ("## Deploy", "## The rehearsal", "### The report"), "shop", on_aws=True, before=ACTIVATE),
    Shell(DEPLOYING, (OVERVIEW,), "release"),
    Shell(
        DEPLOYING,
        ("## With the CDK alone",),
        "cdk",
        on_aws=True,
        programs=("node", "npm"),
        real_pip=True,
    ),
    Shell(
        DEPLOYING,
        ("## The first deployment", "## Updating", "## Rolling back"),
        "release/mail",
        on_aws=True,
        programs=("aws",),
    ),
    Shell(CI, ("# Deploy from CI", "## What a deployment may do"), before=ACTIVATE),
    Shell(CHANNEL, ("## Its test",), "shop", before=ACTIVATE, after="mailroom down"),
)
"""Return all shells, in the order in which a reader opens them. Later ones use the folders that earlier ones
made."""


def commands_that_run(shell: Shell) -> list[Command]:
    """Return the commands of a shell that run."""
    in_shell = (command for command in commands_of(shell.page) if command.section in shell.sections)
    return [command for command in in_shell if command.name not in NOT_RUN]


def test_each_command_that_a_page_prints_is_run_by_a_test_or_listed_in_not_run() -> None:
    printed = [command for page in PAGES for command in commands_of(page)]
    typed = {command for shell in SHELLS for command in commands_that_run(shell)}
    for command in printed:
        assert (command in typed) != (command.name in NOT_RUN), command
    assert NOT_RUN.keys() <= {command.name for command in printed}, (
        "NOT_RUN has a command that no page prints"
    )


def test_the_page_about_deploying_installs_the_locked_version_of_the_cdks_command_line() -> None:
    pins = json.loads((ROOT / "mailroom_ops" / "deploying" / "package.json").read_text())["dependencies"]
    installing = [each.name for each in commands_of(DEPLOYING) if each.name.startswith("npm install")]
    assert installing == [f"npm install --global aws-cdk@{pins['aws-cdk']}"]


@pytest.fixture(scope="module")
def printed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with two fresh clones and the files of a release."""
    place = tmp_path_factory.mktemp("printed")
    for name in ("mailroom", "cdk"):
        link_caches(clone(place / name))
    release = place / "release"
    copy_sources(place / "tagged", "0.3.0")
    wheel = build(place / "tagged", release)
    sums = subprocess.run(["sha256sum", wheel.name], cwd=release, capture_output=True, text=True, check=True)
    (release / "SHA256SUMS").write_text(sums.stdout)
    return place


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return variables_of(tmp_path_factory.mktemp("home"))


@contextmanager
def empty_account(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the variables of an empty account of the emulator."""
    (port,) = processes.free_ports(1)
    url = f"http://127.0.0.1:{port}"
    process = emulator.start(Workspace(folder), port, Endpoints(url, providers=url))
    try:
        yield Endpoints(url, url).variables() | {"CDK_HOME": str(folder / "cdk")}
    finally:
        process.stop()


def prepare(shell: Shell, place: Path) -> None:
    """Do what the page tells beside its commands."""
    folder = place / shell.folder
    if not (folder / ".local").exists() and (folder / "cdk.json").exists():
        link_caches(folder)
    if "## Updating" in shell.sections:
        next_release(place, folder / "mailroom_cdk-0.4.0-py3-none-any.whl")
    if shell.page == CHANNEL:
        for path, text in blocks():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        settings = json.loads((folder / "cdk.json").read_text())
        for stage, channels in channel_rows().items():
            settings["context"]["mailroom"][stage]["channels"] |= channels
        (folder / "cdk.json").write_text(json.dumps(settings))


def next_release(place: Path, wheel: Path) -> None:
    """Build the wheel that the page updates to."""
    sources = place / "next"
    copy_sources(sources, "0.4.0")
    shutil.copyfile(build(sources, place / "dist"), wheel)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: f"{shell.page}, {shell.sections[0]}")
def test_the_commands_that_a_page_prints_succeed_in_their_order(
    shell: Shell, printed_folder: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    folder = printed_folder / shell.folder
    assert folder.is_dir(), f"the shells before this one make {folder.name}: run the whole file"
    prepare(shell, printed_folder)
    of_shell = variables | {"PATH": f"{programs(variables, *shell.programs)}{os.pathsep}{variables['PATH']}"}
    preamble = shell.before if shell.real_pip else f"{PIP_BY_UV}\n{shell.before}"
    if not shell.on_aws:
        output = run_in_shell(commands_that_run(shell), folder, of_shell, preamble, shell.after)
        assert [line for line in outputs_of(shell.page) if not re.search(line, output)] == []
        return
    with empty_account(tmp_path) as of_account:
        run_in_shell(commands_that_run(shell), folder, of_shell | of_account, preamble, shell.after)
        stacks = stack_statuses(of_account["AWS_ENDPOINT_URL"])
    assert stacks.keys() >= {f"mailroom-dev-{part}" for part in ("mailbox", "channels", "monitoring")}
    assert {*stacks.values()} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def outputs_of(page: str) -> list[str]:
    """Return patterns of the lines that a page prints as output, in its blocks without a language. Ids differ
    in each run."""
    lines = (line for block in Page(page).blocks("") for line in block.text.splitlines())
    return [
        r"\s+".join("\\S+" if ID.fullmatch(word) else re.escape(word) for word in line.split())
        for line in lines
    ]


def stack_statuses(url: str) -> dict[str, str]:
    """Return the status of each stack in an account of the emulator."""
    client = LocalSession().client("cloudformation", endpoint_url=url, config=patient())
    return {stack["StackName"]: stack["StackStatus"] for stack in client.describe_stacks()["Stacks"]}
