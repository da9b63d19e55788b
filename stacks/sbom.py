"""Writes the bill of materials (SBOM, as CycloneDX) of what functions ship, prints its packages, and refuses
licences that nobody has accepted: python -m stacks.sbom"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.contrib.this.builders import this_component
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import ExpressionError, get_spdx_licensing
from packageurl import PackageURL

from stacks.constructs.bundle import Bundle, Target
from stacks.paths import LAMBDAS, ROOT
from stacks.settings.deploy import Deployment

ACCEPTED = {
    # They ask for their notice, which each bundle has in its *.dist-info folders.
    *("Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT-0"),
    *("PSF-2.0", "Unicode-3.0", "Unicode-DFS-2016", "Zlib"),
    # Who changes a file of theirs and passes it on has to publish the change. Bundles have the files as they
    # were published, and each can be exchanged: certifi's MPL, psycopg's LGPL.
    *("MPL-2.0", "LGPL-3.0-only"),
}
"""SPDX's identifiers of what may be shipped. No licence that extends to the code which uses a package."""
CONCLUDED = {
    "aws-lambda-powertools": "MIT-0",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "sms-toolkit": "Apache-2.0",
}
"""Licences by the text that a package ships, where its metadata names another licence, or not which of
BSD's."""

IDENTIFYING = {"type", "bom-ref", "name", "version", "purl", "hashes", "licenses"}
"""What is taken of a part's description; some of the rest is of older versions of CycloneDX."""


def bill_of_materials(handlers: Iterable[str], target: Target) -> Bom:
    """The functions of `handlers`, each with the packages in its bundle. Installs what was not installed yet;
    raises RuntimeError as bundles do."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    app = _application("mailroom", project["version"], project["license"])
    bom = Bom()
    bom.metadata.component = app
    bom.metadata.tools.components.add(this_component())
    packages: dict[str, Component] = {}
    for handler in handlers:
        function = _application(handler, project["version"], project["license"])
        bom.components.add(function)
        bom.register_dependency(app, [function])
        for package in _packages(Bundle(handler, target)):
            known = packages.setdefault(str(package.bom_ref), package)
            bom.components.add(known)
            bom.register_dependency(function, [known])
    return bom


def _application(name: str, version: str, licence: str) -> Component:
    return Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=name,
        licenses=[LicenseFactory().make_from_string(licence)],
    )


def _packages(bundle: Bundle) -> Iterator[Component]:
    """What is in the bundle: less than its lock has, for some is left out."""
    locked = {
        line.partition("==")[0]: re.findall(r"--hash=sha256:(\w+)", line)
        for line in bundle.requirements.read_text().replace("\\\n", "").splitlines()
    }
    for each in distributions(path=[str(bundle.packages())]):
        url = PackageURL("pypi", None, each.name, each.version)
        # Which of the files it was depends on the platform.
        files = ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(url.to_string()),
            comment="any of the files that are locked",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashed) for hashed in locked[url.name]],
        )
        said = each.metadata.json
        licence = CONCLUDED.get(url.name) or said.get("license_expression") or said.get("license")
        yield Component(
            name=url.name,
            version=each.version,
            purl=url,
            bom_ref=url.to_string(),
            licenses=[LicenseFactory().make_from_string(str(licence or "not named"))],
            external_references=[files],
            components=_parts(each, url.name),
        )


def _parts(package: Distribution, name: str) -> Iterator[Component]:
    """What was compiled into a package, as far as it brings a bill of its own (PEP 770)."""
    for file in package.files or ():
        if ".dist-info/sboms/" in str(file):
            for part in json.loads(file.read_text())["components"]:
                if PackageURL("pypi", None, part["name"]).name != name:
                    known = {key: value for key, value in part.items() if key in IDENTIFYING}
                    yield Component.from_json(known)  # type: ignore[attr-defined]


def written(bom: Bom) -> str:
    """`bom` as JSON. Raises ValueError where that is against CycloneDX's schema."""
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"the bill of materials is against CycloneDX's schema: {error}")
    return text


def licence_of(component: Component) -> str:
    """A component's licence as SPDX writes it, or in the package's words; "" for none."""
    return " AND ".join(
        each.value if isinstance(each, LicenseExpression) else str(each.id or each.name)
        for each in component.licenses
    )


def refused(bom: Bom) -> Iterator[str]:
    """A sentence for each licence that is not accepted. What is compiled into a package may name none."""
    for package in bom.components:
        for each in (package, *package.components):
            licence = licence_of(each)
            if licence and not is_accepted(licence):
                yield f"{package.name}: {each.name} {each.version} has the licence {licence!r}."


@cache
def is_accepted(licence: str) -> bool:
    """Whether who follows this SPDX expression needs only accepted ones: one of those joined by OR."""
    spdx = get_spdx_licensing()
    try:
        parsed = spdx.parse(licence)
    except ExpressionError:
        return False
    values = {each: spdx.TRUE if str(each) in ACCEPTED else spdx.FALSE for each in parsed.symbols}
    return bool(parsed.subs(values, simplify=True) == spdx.TRUE)


def table(bom: Bom) -> Iterator[str]:
    """A line for each package: name, version, licence, and the functions that ship it."""
    shipping = {str(each.ref): [str(one.ref) for one in each.dependencies] for each in bom.dependencies}
    functions = [each.name for each in bom.components if each.type is ComponentType.APPLICATION]
    for each in bom.components:
        if each.type is ComponentType.LIBRARY:
            by = [name for name in functions if str(each.bom_ref) in shipping[name]]
            names = f"all {len(by)} functions" if by == functions else ", ".join(by)
            yield f"{each.name:<22} {each.version!s:<12} {licence_of(each):<14} {names}"


def main(arguments: list[str] | None = None) -> None:
    """Write the bill and print its table; a licence that is not accepted ends it with status 1."""
    parser = argparse.ArgumentParser(prog="python -m stacks.sbom", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    output: Path = parser.parse_args(arguments).output
    handlers = sorted(file.stem for file in (LAMBDAS / "requirements").glob("*.txt"))
    bom = bill_of_materials(handlers, Target(Deployment().bundle_platform))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(written(bom))
    sys.stdout.writelines(f"{line}\n" for line in table(bom))
    if faults := [*refused(bom)]:
        sys.exit("\n".join([*faults, "Replace the package, or accept the licence in stacks/sbom.py."]))


if __name__ == "__main__":
    main()
