"""The bill of materials names what functions ship, and no licence that nobody has accepted."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component

from stacks import sbom
from stacks.constructs.bundle import Bundle, Target
from stacks.paths import LAMBDAS

LAMBDA = Target("aarch64-manylinux_2_28")
HANDLERS = sorted(file.stem for file in LAMBDAS.glob("*.py"))


@pytest.fixture(scope="module")
def bom() -> Bom:
    """Of all functions."""
    return sbom.bill_of_materials(HANDLERS, LAMBDA)


@pytest.fixture(scope="module")
def written(bom: Bom) -> dict[str, Any]:
    """The same, as a scanner reads it."""
    content: dict[str, Any] = json.loads(sbom.written(bom))
    return content


def packages(written: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Its packages by name."""
    return {each["name"]: each for each in written["components"] if each["type"] == "library"}


def test_every_function_is_there_and_hangs_on_what_its_bundle_has(written: dict[str, Any]) -> None:
    depends = {each["ref"]: each.get("dependsOn", []) for each in written["dependencies"]}
    assert depends["mailroom"] == HANDLERS
    for handler in HANDLERS:
        described = Bundle(handler, LAMBDA).packages().glob("*.dist-info")
        names = {each.name.partition("-")[0].lower().replace("_", "-") for each in described}
        assert {each.removeprefix("pkg:pypi/").partition("@")[0] for each in depends[handler]} == names


def test_what_a_bundle_leaves_out_is_not_named(written: dict[str, Any]) -> None:
    locked = (LAMBDAS / "requirements" / "send_sms.txt").read_text()
    left_out = {"aiohttp", "attrs", "pyjwt", "yarl"}
    assert all(f"\n{name}==" in f"\n{locked}" for name in left_out)
    assert not left_out & packages(written).keys()


def test_a_package_has_its_version_its_licence_and_the_hashes_of_its_lock(written: dict[str, Any]) -> None:
    for name, package in packages(written).items():
        assert package["purl"] == f"pkg:pypi/{name}@{package['version']}"
        assert package["licenses"]
        (files,) = package["externalReferences"]
        locks = [file.read_text() for file in (LAMBDAS / "requirements").glob("*.txt")]
        lock = next(text for text in locks if f"\n{name}=={package['version']} " in text)
        own = lock.partition(f"\n{name}==")[2].partition("    # via")[0]
        assert own.count("--hash=sha256:") == len(files["hashes"]) > 0
        assert all(f"sha256:{each['content']}" in own for each in files["hashes"])


def test_what_is_compiled_into_a_package_is_named_below_it(written: dict[str, Any]) -> None:
    parts = {
        name: [each["name"] for each in of.get("components", [])] for name, of in packages(written).items()
    }
    assert "cyrus-sasl-lib" in parts["psycopg-binary"]
    assert "psycopg-binary" not in parts["psycopg-binary"]


def test_nothing_is_shipped_under_a_licence_that_nobody_has_accepted(bom: Bom) -> None:
    assert [*sbom.refused(bom)] == []


def test_no_conclusion_about_a_licence_is_left_over(written: dict[str, Any]) -> None:
    assert sbom.CONCLUDED.keys() <= packages(written).keys()


@pytest.mark.parametrize(
    ("licence", "accepted"),
    [
        ("MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only WITH GCC-exception-3.1", False),
        ("BSD License", False),
        ("MIT AND", False),
    ],
)
def test_of_alternatives_one_has_to_be_accepted_and_of_what_holds_together_all(
    licence: str, accepted: bool
) -> None:
    assert sbom.is_accepted(licence) is accepted


def test_a_licence_that_is_not_accepted_ends_the_command_and_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sbom, "ACCEPTED", sbom.ACCEPTED - {"MPL-2.0", "PSF-2.0"})
    sbom.is_accepted.cache_clear()
    with pytest.raises(SystemExit) as ended:
        sbom.main(["--output", str(tmp_path / "new" / "sbom.json")])
    sbom.is_accepted.cache_clear()
    *faults, remedy = str(ended.value).splitlines()
    assert len(faults) == 2
    assert faults[0].startswith("certifi: certifi ")
    assert faults[0].endswith(" has the licence 'MPL-2.0'.")
    assert faults[1].startswith("typing-extensions: ")
    assert "stacks/sbom.py" in remedy
    lines = {line.partition(" ")[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert lines["certifi"][1:] == ["MPL-2.0", "send_fax,", "send_sms"]
    assert lines["msgspec"][2:] == ["all", str(len(HANDLERS)), "functions"]
    assert json.loads((tmp_path / "new" / "sbom.json").read_text())["bomFormat"] == "CycloneDX"


def test_a_package_that_names_no_licence_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nameless-1.dist-info").mkdir()
    (tmp_path / "nameless-1.dist-info" / "METADATA").write_text("Name: nameless\nVersion: 1\n")
    (tmp_path / "lock.txt").write_text(f"nameless==1 \\\n    --hash=sha256:{'0' * 64}\n")
    bundle = SimpleNamespace(packages=lambda: tmp_path, requirements=tmp_path / "lock.txt")
    monkeypatch.setattr(sbom, "Bundle", lambda *_: bundle)
    refused = sbom.refused(sbom.bill_of_materials(["collect"], LAMBDA))
    assert [*refused] == ["nameless: nameless 1 has the licence 'not named'."]


def test_what_is_against_the_schema_is_not_written() -> None:
    wrong = HashType(alg=HashAlgorithm.SHA_256, content="not a digest")
    with pytest.raises(ValueError, match="against CycloneDX's schema"):
        sbom.written(Bom(components=[Component(name="six", version="1", hashes=[wrong])]))
