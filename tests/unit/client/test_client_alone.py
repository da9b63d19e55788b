"""The client where nothing is installed but boto3, as the wheel without its extras brings it."""

import ast
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = pytest.mark.process

LIBRARY = ROOT / "lambdas"
BOTO3 = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six")
"""boto3, and what it requires."""

OTHERS = ("msgspec", "aws_lambda_powertools", "pydantic", "aws_cdk", "jinja2", "phonenumbers", "psycopg")


def run(script: str) -> str:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({OTHERS!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", blocked + textwrap.dedent(script)],
        env={"PYTHONPATH": "lambdas", "AWS_DEFAULT_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_client_needs_boto3_and_nothing_else() -> None:
    assert run("from mailroom.client import Mailroom; print(Mailroom('test').stage)") == "test"


def test_an_item_is_judged_there_too() -> None:
    said = run("""
        from mailroom.client import Mailroom
        print(Mailroom('test').send({'id': 'a', 'event_type': 'mail', 'v': {1: 2}}).error)
    """)
    assert said == "v: has the name 1, which is no string"


def test_a_command_says_which_extra_it_needs() -> None:
    said = run("""
        import sys
        sys.modules["typer"] = None
        from mailroom_ops.__main__ import main
        try:
            main()
        except SystemExit as ended:
            print(ended)
    """)
    assert "install mailroom-cdk[deploy]" in said


def test_the_blocked_packages_are_really_blocked() -> None:
    script = """
        try:
            import mailroom.message.message
        except ImportError as error:
            print(type(error).__name__)
    """
    assert run(script) == "ModuleNotFoundError"


def imported(name: str, found: set[str]) -> set[str]:
    """A module of the library, its packages, and all that it imports at run time."""
    found.add(name)
    if "." in name:
        imported(name.rpartition(".")[0], found)
    tree = ast.parse(file_of(name).read_text())
    for each in sorted({*names_in(tree)} - found):
        imported(each, found)
    return found


def names_in(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.startswith("mailroom"))
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("mailroom"):
                yield module
                inner = (f"{module}.{each.name}" for each in names)
                yield from (each for each in inner if file_of(each).exists())
            case _:
                yield from names_in(child)


def file_of(name: str) -> Path:
    place = LIBRARY / name.replace(".", "/")
    package = place / "__init__.py"
    return package if package.exists() else place.with_suffix(".py")


def test_the_wheel_asks_for_boto3_alone_unless_an_extra_is_named() -> None:
    (wanted,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert wanted.startswith("boto3>=")


def test_each_module_that_the_client_imports_is_there_where_boto3_alone_is_installed(tmp_path: Path) -> None:
    needed = sorted(file_of(each).relative_to(LIBRARY) for each in imported("mailroom.client", set()))
    for each in needed:
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(LIBRARY / each, tmp_path / each)
    names = [".".join(each.with_suffix("").parts) for each in needed]
    script = f"""
        import importlib, sys
        installed = {{*sys.stdlib_module_names, *{BOTO3!r}, "mailroom"}}

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] not in installed:
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Missing())
        for name in {names!r}:
            importlib.import_module(name.removesuffix(".__init__"))
        print(len(sys.modules["mailroom"].__path__), sys.modules["mailroom"].__file__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", str(tmp_path / "mailroom/__init__.py")]
