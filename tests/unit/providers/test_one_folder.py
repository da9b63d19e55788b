"""A provider is one folder: a descriptor, and code that does not import another provider."""

import re
import subprocess
import sys
from pkgutil import resolve_name

import pytest
from msgspec import structs

from mailroom.message.outcome import Row
from mailroom.providers import MODULES, provider
from mailroom_stacks.constructs.bundle import library_files
from tests.support import ROOT

LOADED = """
import sys
from mailroom.providers import provider
__import__(provider(sys.argv[1]).client.partition(":")[0])
print(*sorted(name for name in sys.modules if name.startswith("mailroom.providers.")))
"""


def path_of_module(module: str) -> str:
    """Return the path of a package or module in a bundle."""
    return module.replace(".", "/") + "/"


@pytest.mark.parametrize("name", MODULES)
def test_the_code_of_a_provider_does_not_import_another_provider(name: str) -> None:
    package = resolve_name(MODULES[name])
    modules = [file.stem for file in (ROOT / "lambdas" / path_of_module(MODULES[name])).glob("*.py")]
    files = library_files([f"import {package.__name__}.{module}".encode() for module in modules])
    others = tuple(path_of_module(module) for other, module in MODULES.items() if other != name)
    assert [path for path in files if path.startswith(others)] == []


@pytest.mark.process
@pytest.mark.parametrize("name", [name for name in MODULES if provider(name).client])
def test_the_client_module_of_a_provider_imports_the_code_of_that_provider_only(name: str) -> None:
    command = [sys.executable, "-c", LOADED, name]
    done = subprocess.run(command, cwd=ROOT / "lambdas", capture_output=True, text=True, check=True)
    loaded = {*done.stdout.split()}
    assert loaded & {*MODULES.values()} == {MODULES[name]}


@pytest.mark.parametrize("name", MODULES)
def test_the_functions_that_the_descriptor_of_a_provider_names_can_be_called(name: str) -> None:
    row = provider(name)
    texts = [*structs.asdict(row).values(), *row.events.values(), *row.checks.values()]
    places = [text for text in texts if isinstance(text, str) and re.fullmatch(r"[a-z_.]+:\w+", text)]
    assert [place for place in places if not callable(resolve_name(place))] == []


@pytest.mark.parametrize("name", MODULES)
def test_a_provider_has_a_day_limit_exactly_if_a_refusal_in_its_tables_is_due_to_that_limit(
    name: str,
) -> None:
    modules = [file.stem for file in (ROOT / "lambdas" / path_of_module(MODULES[name])).glob("*.py")]
    tables = [
        table
        for module in modules
        for value in vars(resolve_name(f"{MODULES[name]}.{module}")).values()
        if isinstance(value, dict)
        for table in value.values()
        if isinstance(table, Row)
    ]
    assert provider(name).day_limit == any(row.fault == "day" for row in tables)
