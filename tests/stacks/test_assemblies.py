"""Synthesized apps are used again for the same sources and settings, and for no others."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from mailroom_stacks.app import cache as assemblies
from mailroom_stacks.app.cache import NO_BUNDLES, assembly
from mailroom_stacks.settings.sentences import SettingsError
from tests.support import ROOT

FILES = {
    "app.py": "",
    "cdk.json": '{"databases": {"app": {"ca_file": "certificates/app.pem"}}}',
    "certificates/app.pem": "",
    "requirements.txt": "uv==1",
    "requirements-dev.txt": "aws-cdk-lib==2",
    "lambdas/mailroom/ledger/ledger.py": "",
    "lambdas/requirements/send_mail.txt": "",
    "stacks/mailroom_stacks/api.py": "",
    "templates/mail/body.txt": "",
    "campaigns/weekly/campaign.toml": "",
    "docs/explanation/design.md": "",
}
KEPT_IN = ".local/assemblies"
DEV = {"stage": "dev", "mailroom": {"dev": {"sms": None, "fax": None}}}


class Synth:
    """In place of the real one: writes a line, and counts."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, context: Mapping[str, object], output: str, campaigns: Path) -> None:
        self.times += 1
        Path(output).mkdir()
        Path(output, "manifest.json").write_text("{}")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository, last edited before this process began."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(assemblies, "PROJECT", tmp_path)
    monkeypatch.setattr(assemblies, "CDK_JSON", tmp_path / "cdk.json")
    monkeypatch.setattr(assemblies, "STACKS", tmp_path / "stacks" / "mailroom_stacks")
    monkeypatch.setattr(assemblies, "LAMBDAS", tmp_path / "lambdas")
    monkeypatch.setattr(assemblies, "LIBRARY", tmp_path / "lambdas")
    monkeypatch.setattr(assemblies, "ASSEMBLIES", tmp_path / KEPT_IN)
    monkeypatch.setattr(assemblies, "_STARTED", time.time() + 3_600)
    return tmp_path


def assembly_of_tree(tree: Path, synth: Synth, context: Mapping[str, object] = DEV) -> Path:
    """The assembly of `context`, with the tree's campaigns."""
    return assembly(context, tree / "campaigns", synth)


def test_a_second_synth_of_the_same_sources_uses_the_assembly_of_the_first(tree: Path) -> None:
    synth = Synth()
    first = assembly_of_tree(tree, synth)
    assert (first / "manifest.json").exists()
    assert assembly_of_tree(tree, synth) == first
    assert synth.times == 1


@pytest.mark.parametrize("changed", sorted(FILES.keys() - {"docs/explanation/design.md"}))
def test_a_change_of_a_source_a_lock_file_or_a_campaign_makes_another_assembly(
    tree: Path, changed: str
) -> None:
    synth = Synth()
    first = assembly_of_tree(tree, synth)
    with (tree / changed).open("a") as file:
        file.write("\n")
    assert assembly_of_tree(tree, synth) != first
    assert synth.times == 2


@pytest.mark.parametrize(
    "added", ["stacks/mailroom_stacks/new.py", "lambdas/send_fax.py", "campaigns/weekly/campaign.py"]
)
def test_a_synth_with_a_new_source_file_makes_another_assembly(tree: Path, added: str) -> None:
    first = assembly_of_tree(tree, Synth())
    (tree / added).write_text("")
    assert assembly_of_tree(tree, Synth()) != first


@pytest.mark.parametrize(
    "unrelated", ["docs/explanation/design.md", "stacks/mailroom_stacks/__pycache__/api.pyc"]
)
def test_a_change_of_an_unrelated_file_makes_no_new_assembly(tree: Path, unrelated: str) -> None:
    first = assembly_of_tree(tree, Synth())
    (tree / unrelated).parent.mkdir(exist_ok=True)
    (tree / unrelated).write_text("other")
    assert assembly_of_tree(tree, Synth()) == first


@pytest.mark.parametrize(
    "other",
    [
        {**DEV, "stage": "prod"},
        {**DEV, **NO_BUNDLES},
        {**DEV, "mailroom": {"dev": {"sms": None, "fax": {}}}},
        {**DEV, "mailroom": {"dev": {"fax": None, "sms": None}}},
    ],
    ids=["stage", "bundles", "setting", "order"],
)
def test_a_synth_with_changed_settings_makes_another_assembly(
    tree: Path, other: Mapping[str, object]
) -> None:
    assert assembly_of_tree(tree, Synth(), other) != assembly_of_tree(tree, Synth())


def test_a_changed_cdk_context_or_tool_version_makes_another_assembly(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = assembly_of_tree(tree, Synth())
    with monkeypatch.context() as patch:
        patch.setenv("CDK_CONTEXT_JSON", '{"stage": "prod"}')
        assert assembly_of_tree(tree, Synth()) != plain
    monkeypatch.setattr(assemblies, "version", lambda name: f"2.0 of {name}")
    assert assembly_of_tree(tree, Synth()) != plain


def test_a_process_does_not_share_an_assembly_if_sources_changed_since_it_began(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may have imported the modules before."""
    others = assembly_of_tree(tree, Synth())
    monkeypatch.setattr(assemblies, "_STARTED", 0.0)
    assert assembly_of_tree(tree, Synth()) != others


def test_an_assembly_that_synth_refuses_is_not_stored(tree: Path) -> None:
    def refuse(context: Mapping[str, object], output: str, campaigns: Path) -> None:
        Path(output).mkdir()
        raise SettingsError("no")

    for _ in range(2):
        with pytest.raises(SettingsError):
            assembly(DEV, tree / "campaigns", refuse)
    assert not [each for each in (tree / KEPT_IN).iterdir() if each.is_dir()]


def test_a_new_assembly_replaces_the_least_recently_used_one_if_the_store_is_full(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemblies, "KEPT", 2)
    oldest, used, _ = (assembly_of_tree(tree, Synth(), {"stage": name}) for name in ("dev", "prod", "local"))
    assert not oldest.exists()
    assembly_of_tree(tree, Synth(), {"stage": "prod"})
    assembly_of_tree(tree, Synth(), {"stage": "other"})
    assert used.exists()


def test_assemblies_with_bundles_have_a_limit_of_their_own_in_the_store(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bundled(context: Mapping[str, object], output: str, campaigns: Path) -> None:
        Path(output, "asset.123").mkdir(parents=True)

    monkeypatch.setattr(assemblies, "KEPT_BUNDLED", 1)
    plain = assembly_of_tree(tree, Synth())
    first, second = (assembly({"stage": name}, tree / "campaigns", bundled) for name in ("dev", "prod"))
    assert [each.exists() for each in (plain, first, second)] == [True, False, True]


ANOTHER = """
import sys
from pathlib import Path
from mailroom_stacks.app import cache as assemblies

def synthesize(context, output, campaigns):
    print("synthesizing", flush=True)
    sys.stdin.readline()
    Path(output).mkdir()

assemblies.ASSEMBLIES = Path(sys.argv[1])
print("asking", flush=True)
print(assemblies.assembly({"stage": "dev"}, synthesize=synthesize), flush=True)
"""


def test_a_process_waits_for_the_assembly_that_another_one_synthesizes(tmp_path: Path) -> None:
    def process() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", ANOTHER, str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def said(by: "subprocess.Popen[str]") -> str:
        assert by.stdout
        return by.stdout.readline().strip()

    with process() as first:
        assert [said(first), said(first)] == ["asking", "synthesizing"]
        with process() as second:
            assert said(second) == "asking"
            made_by_first, _ = first.communicate("\n")
            made_by_second, _ = second.communicate("\n")
    assert made_by_second == made_by_first
