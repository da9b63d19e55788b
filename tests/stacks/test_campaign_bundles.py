"""Files in the bundles of collect and compose besides their code."""

import json
from pathlib import Path

import pytest

from mailroom_stacks.campaigns import DEFINITIONS, extras
from mailroom_stacks.constructs.bundle import Bundle
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign
from mailroom_stacks.settings.load import load
from tests.stacks.test_bundles import LAMBDA
from tests.support.stacks.campaign_folders import MODULE, changes_for, enabled, put_campaign
from tests.support.stacks.refusals import STAGES

PEM = "campaigns/authority.pem"


def fingerprint(campaigns: tuple[EnabledCampaign, ...], databases: tuple[str, ...] = ()) -> str:
    settings = load(
        {"dev": {**STAGES["dev"], "databases": changes_for()["databases"]}},
        "dev",
    )
    return Bundle("collect", LAMBDA, extras=extras(settings, campaigns, databases)).fingerprint()


@pytest.mark.parametrize(
    "changed", ["campaigns/weekly/campaign.toml", "campaigns/weekly/campaign.py", "campaigns/weekly/more.py"]
)
def test_the_hash_of_a_bundle_changes_with_each_file_of_its_campaigns(tmp_path: Path, changed: str) -> None:
    folder = put_campaign(tmp_path, module=MODULE)
    before = fingerprint(enabled(folder, "weekly"))
    assert fingerprint(enabled(folder, "weekly")) == before
    if changed.endswith("toml"):
        put_campaign(tmp_path, module=MODULE, page_size=7)
    else:
        with (tmp_path / changed).open("a") as file:
            file.write("# another line\n")
    assert fingerprint(enabled(folder, "weekly")) != before


def test_the_hash_of_a_bundle_changes_with_one_letter_of_a_campaigns_code(tmp_path: Path) -> None:
    before = fingerprint(enabled(put_campaign(tmp_path, module="A = 1\n"), "weekly"))
    assert fingerprint(enabled(put_campaign(tmp_path, module="B = 1\n"), "weekly")) != before


def test_the_hash_of_a_bundle_ignores_a_campaign_that_is_not_enabled(tmp_path: Path) -> None:
    folder = put_campaign(tmp_path, module=MODULE)
    before = fingerprint(enabled(folder, "weekly"))
    put_campaign(tmp_path, "other", module=MODULE)
    assert fingerprint(enabled(folder, "weekly")) == before


def test_a_bundle_contains_the_code_of_enabled_campaigns_and_their_definitions(tmp_path: Path) -> None:
    folder = put_campaign(tmp_path, module=MODULE)
    put_campaign(tmp_path, "other", module=MODULE)
    (folder / "weekly" / "parts").mkdir()
    (folder / "weekly" / "parts" / "query.py").write_text("SQL = ''\n")
    (folder / "weekly" / "notes.md").write_text("not for AWS")
    settings = load(STAGES, "dev")
    given = extras(settings, enabled(folder, "weekly"), ())
    output = tmp_path / "bundle"
    Bundle("collect", LAMBDA, extras=given).build(output)
    files = {
        file.relative_to(output).as_posix() for file in (output / "campaigns").rglob("*") if file.is_file()
    }
    assert files == {"campaigns/weekly/campaign.py", "campaigns/weekly/parts/query.py"}
    assert json.loads((output / DEFINITIONS).read_text()).keys() == {"weekly"}
    assert (output / "collect.py").exists()


def test_the_certificates_of_a_database_are_bundled_with_the_functions_that_use_it(tmp_path: Path) -> None:
    folder = put_campaign(tmp_path)
    (tmp_path / PEM).write_text("-----BEGIN CERTIFICATE-----")
    databases = changes_for()["databases"]
    databases["app"]["ca_file"] = PEM
    settings = load({"dev": {**STAGES["dev"], "databases": databases}}, "dev")
    campaigns = enabled(folder, "weekly", databases=databases)
    assert extras(settings, campaigns, ("app",))[PEM] == b"-----BEGIN CERTIFICATE-----"
    assert PEM not in extras(settings, campaigns, ("shop",))


def test_a_bundle_contains_a_module_of_the_library_only_if_a_campaigns_code_imports_it(
    tmp_path: Path,
) -> None:
    used = "mailroom/unsubscribe/page.py"
    for at, code in enumerate((MODULE, f"{MODULE}\nfrom mailroom.unsubscribe import page\n")):
        campaigns = enabled(put_campaign(tmp_path / str(at), module=code), "weekly")
        output = tmp_path / f"bundle-{at}"
        Bundle("collect", LAMBDA, extras=extras(load(STAGES, "dev"), campaigns, ())).build(output)
        assert (output / used).is_file() == bool(at)
