"""The client with boto3 as the only installed package, as after an installation without extras."""

import ast
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.docs_pages import Page

pytestmark = pytest.mark.process

LIBRARY = ROOT / "lambdas"
BOTO3 = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
"""boto3 and the packages that boto3 requires."""

OTHERS = ("msgspec", "aws_lambda_powertools", "pydantic", "aws_cdk", "minijinja", "phonenumbers", "psycopg")


EXAMPLES = {
    "outbox": next(
        block.text.partition("SECRET =")[0]
        for block in Page("docs/how-to/send-in-a-transaction.md").blocks("python")
        if "relay" in block.text
    ),
    "test": "import mailroom_ops.testing",
}
"""Imports of users of an extra."""


def packages(extra: str) -> set[str]:
    """Return the names of the packages that an extra and the package itself require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {"boto3"}
    for requirement in project["optional-dependencies"][extra]:
        inner = re.fullmatch(r"mailroom-cdk\[(\w+)\]", requirement)
        names |= packages(inner[1]) if inner else {re.split("[>=]", requirement)[0]}
    return names


def run_alone(script: str, library: Path = LIBRARY) -> str:
    """Run a script without the other packages, and return its output."""
    blocked = f"import sys; sys.modules.update(dict.fromkeys({OTHERS!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", blocked + textwrap.dedent(script)],
        env={"PYTHONPATH": str(library), "AWS_DEFAULT_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_client_refuses_an_invalid_name_time_or_string_even_if_only_boto3_is_installed() -> None:
    output = run_alone("""
        from datetime import datetime
        from mailroom.client import Mailroom
        for wrong in ({'v': {1: 2}}, {'send_at': 'noon'}, {'expires_at': datetime(2026, 1, 1)}, {'topic': 7}):
            item = {'id': 'a', 'event_type': 'mail', 'to': 'x', 'subject': 'S', 'text': 'T', **wrong}
            print(Mailroom('test').send(item).error)
    """)
    assert output.splitlines() == [
        "v: has the name 1, which is not a string",
        "send_at: 'noon' is not an ISO 8601 time; use one like 2026-11-21T09:00:00Z",
        "expires_at: expected a string, got datetime",
        "topic: expected a string, got int",
    ]


def test_the_extra_check_installs_every_package_that_the_client_needs_to_check_an_address() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    packages = {re.split("[>=]", each)[0].replace("numberslite", "numbers") for each in extras["check"]}
    output = run_alone(f"""
        installed = {{*sys.stdlib_module_names, *{BOTO3!r}, *{packages!r}, "mailroom"}}

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] not in installed and not name.startswith("_sysconfigdata"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Missing())
        for name in {packages!r}:
            sys.modules.pop(name, None)
        from mailroom.client import Mailroom
        for item in ({{"event_type": "mail", "to": "ada@"}}, {{"event_type": "sms", "to": "+1617555123"}}):
            print(Mailroom("test").send({{"id": "a", "subject": "S", "text": "T", **item}}).error)
    """)
    assert [line.partition(":")[0] for line in output.splitlines()] == ["to", "to"]


@pytest.mark.parametrize(("extra", "script"), EXAMPLES.items())
def test_an_extra_installs_every_package_that_its_modules_import(extra: str, script: str) -> None:
    output = run_alone(f"""
        import sys
        from importlib.metadata import PackageNotFoundError, packages_distributions, requires
        from packaging.requirements import Requirement
        brought, waiting = set(), [(name, "") for name in {sorted(packages(extra))!r}]
        while waiting:
            name, extra = waiting.pop()
            if name in brought:
                continue
            brought.add(name)
            try:
                needs = [Requirement(each) for each in requires(name) or ()]
            except PackageNotFoundError:
                continue
            waiting += [(each.name.lower(), "") for each in needs
                        if each.marker is None or each.marker.evaluate({{"extra": ""}})]
        brought = {{name.replace("_", "-") for name in brought}}
        owners = packages_distributions()

        class Missing:
            def find_spec(self, name, path=None, target=None):
                top = name.partition(".")[0]
                owner = {{each.lower().replace("_", "-") for each in owners.get(top, ())}}
                if owner and not owner & brought and not top.startswith("mailroom"):
                    raise ModuleNotFoundError(name)

        for name in [name for name in sys.modules if name.partition(".")[0] in {OTHERS!r}]:
            del sys.modules[name]
        for name in [*sys.modules]:
            if name.partition(".")[0] in owners and name.partition(".")[0] not in sys.stdlib_module_names:
                del sys.modules[name]
        sys.meta_path.insert(0, Missing())
        sys.path[:0] = {[str(ROOT), str(ROOT / "stacks")]!r}
        exec({script!r})
        print("imported")
    """)
    assert output == "imported"


def test_the_command_line_without_its_optional_packages_names_the_extra_to_install() -> None:
    output = run_alone("""
        import sys
        sys.modules["typer"] = None
        from mailroom_ops.__main__ import main
        try:
            main()
        except SystemExit as ended:
            print(ended)
    """)
    assert "install mailroom-cdk[deploy]" in output


def test_the_import_of_a_module_that_needs_more_than_boto3_fails_if_only_boto3_is_installed() -> None:
    script = """
        try:
            import mailroom.message.message
        except ImportError as error:
            print(type(error).__name__)
    """
    assert run_alone(script) == "ModuleNotFoundError"


def imported(name: str, names: set[str]) -> set[str]:
    """Add to `names` a module of the library, its packages, and the modules that it imports at run time."""
    names.add(name)
    if "." in name:
        imported(name.rpartition(".")[0], names)
    tree = ast.parse(file_of(name).read_text())
    for dependency in sorted({*names_in(tree)} - names):
        imported(dependency, names)
    return names


def names_in(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.startswith("mailroom"))
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("mailroom"):
                yield module
                inner = (f"{module}.{alias.name}" for alias in names)
                yield from (name for name in inner if file_of(name).exists())
            case _:
                yield from names_in(child)


def file_of(name: str) -> Path:
    path = LIBRARY / name.replace(".", "/")
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")


def test_the_only_required_package_of_the_wheel_is_boto3() -> None:
    (requirement,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert requirement.startswith("boto3>=")


def test_the_client_imports_only_boto3_and_the_standard_library_directly_or_indirectly(
    tmp_path: Path,
) -> None:
    names = sorted(imported("mailroom.client", set()))
    for file in map(file_of, names):
        copy = tmp_path / file.relative_to(LIBRARY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    script = f"""
        import importlib, sys
        installed = {{*sys.stdlib_module_names, *{BOTO3!r}, "mailroom"}}

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] not in installed:
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Missing())
        for name in {names!r}:
            importlib.import_module(name)
        print(len(sys.modules["mailroom"].__path__), sys.modules["mailroom"].__file__)
    """
    assert run_alone(script, tmp_path).split() == ["1", str(tmp_path / "mailroom/__init__.py")]
