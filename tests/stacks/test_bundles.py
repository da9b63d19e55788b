"""A function's zip folder holds what its handler imports, for the platform that it runs on."""

import ast
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import grimp
import pytest

from mailroom.providers import MODULES, client_modules, reader_modules
from mailroom_stacks.console import page_files
from mailroom_stacks.constructs import bundle
from mailroom_stacks.constructs.bundle import Bundle, Target, library_files
from mailroom_stacks.paths import LAMBDAS, TEMPLATES

COMMON = {"aws_lambda_powertools", "jmespath", "mailroom", "msgspec", "typing_extensions.py"}
TEMPLATED = {"minijinja", "templates"}
RECIPIENTS = {"idna", "phonenumbers"}
ZONES = {"tzdata"}
HTTP = {"certifi", "charset_normalizer", "idna", "requests", "urllib3"}
DATABASE = {"psycopg", "psycopg_binary", "psycopg_binary.libs"}
SEALED = {"nacl", "_cffi_backend"}
"""Packages that encrypt links to pages of preferences. The second is a compiled module."""
CONSOLE = {
    *("anyio", "cryptography", "itsdangerous", "jinja2", "jwt", "markupsafe", "starlette", "console.py"),
    *("mailroom_ops", "mailroom_stacks", "_cffi_backend"),
}
HANDLERS = {
    "console": COMMON | ZONES | RECIPIENTS | TEMPLATED | CONSOLE,
    "collect": COMMON | DATABASE | {"collect.py", "campaigns.json"},
    "compose": COMMON | DATABASE | ZONES | {"compose.py", "campaigns.json"} | RECIPIENTS,
    "messages_api": COMMON
    | ZONES
    | RECIPIENTS
    | TEMPLATED
    | {"messages_api.py", "itsdangerous", "topics.json"},
    "unsubscribe": COMMON | SEALED | {"unsubscribe.py", "idna", "itsdangerous"},
    "dispatch": COMMON | ZONES | {"dispatch.py"} | RECIPIENTS,
    "dead_letters": COMMON | ZONES | {"dead_letters.py"},
    "release": COMMON | ZONES | {"release.py"} | RECIPIENTS,
    "feedback": COMMON | {"feedback.py"} | RECIPIENTS,
    "index_messages": COMMON | {"index_messages.py", "idna"},
    "outcomes": COMMON | ZONES | {"outcomes.py"},
    "resend_mail_events": COMMON | {"resend_mail_events.py", "standardwebhooks"},
    "retry_fax": COMMON | {"retry_fax.py", "phonenumbers"},
    "send_fax": COMMON | HTTP | {"send_fax.py", "phonenumbers", "twilio"},
    "send_mail": COMMON | TEMPLATED | ZONES | SEALED | {"send_mail.py", "idna", "itsdangerous"},
    "send_mail_resend": COMMON | TEMPLATED | ZONES | SEALED | {"send_mail_resend.py", "idna", "itsdangerous"},
    "send_push": COMMON | ZONES | {"send_push.py"},
    "send_sms": COMMON | HTTP | TEMPLATED | ZONES | {"send_sms.py", "phonenumbers", "twilio"},
    "send_webhook": COMMON | {"send_webhook.py", "standardwebhooks"},
    "twilio_callbacks": COMMON | {"twilio_callbacks.py", "twilio"},
}
EXTRAS = {
    "console": page_files(),
    "messages_api": {"topics.json": b"{}"},
    **{handler: {"campaigns.json": b"{}"} for handler in ("collect", "compose")},
}
"""Files that the stack adds: the definitions of its campaigns, the titles of its topics, and the files of
pages."""
MODULES_OF = {
    "console": MODULES.values(),
    "send_sms": client_modules("sms"),
    "send_fax": client_modules("fax"),
    "feedback": reader_modules(),
}
"""Modules that the stacks add, because the handler imports them by the names in descriptors."""
TEMPLATES_OF = {
    "console": ".",
    "send_mail": "mail",
    "send_mail_resend": "mail",
    "send_sms": "sms",
    "messages_api": ".",
}
# The wheel lacks a license file; METADATA says MIT.
WITHOUT_LICENCE = {"standardwebhooks-1.1.0.dist-info"}


class OtherPython(Target):
    """Machine whose version of Python is not that of the tests, so that its bundles lack bytecode."""

    @property
    def compiles(self) -> bool:
        return False


LAMBDA = OtherPython("aarch64-manylinux_2_28")
AARCH64 = b"\xb7\0"
"""Machine in the header of an ELF file."""
every_handler = pytest.mark.parametrize("handler", HANDLERS)


def test_the_tests_of_bundles_cover_every_handler() -> None:
    assert {*HANDLERS} == {each.stem for each in LAMBDAS.glob("*.py")}


def build(handler: str, target: Target, folder: Path) -> Path:
    """Build the bundle of a handler as its stack does, and return its folder."""
    templates = TEMPLATES_OF.get(handler, "")
    modules = MODULES_OF.get(handler, ())
    Bundle(handler, target, templates=templates, extras=EXTRAS.get(handler), modules=modules).build(folder)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every bundle for AWS."""
    return {handler: build(handler, LAMBDA, tmp_path_factory.mktemp(handler)) for handler in HANDLERS}


@every_handler
def test_a_bundle_contains_only_its_handler_the_library_and_its_packages(
    built: dict[str, Path], handler: str
) -> None:
    names = (each.name for each in built[handler].iterdir())
    inside = {name.partition(".")[0] if name.endswith(".so") else name for name in names}
    assert {name for name in inside if not name.endswith(".dist-info")} == HANDLERS[handler]


@every_handler
def test_a_bundle_contains_only_the_modules_of_the_library_that_its_handler_imports(
    built: dict[str, Path], handler: str
) -> None:
    folder = built[handler]
    inside = {each.relative_to(folder).as_posix() for each in (folder / "mailroom").rglob("*.py")}
    library = {each for each in library_of(handler) if each.partition(".")[0] == "mailroom"}
    assert inside == {as_file(each) for each in library}


def test_a_descriptor_that_imports_own_channel_adds_only_that_module_to_the_bundle_of_dispatch() -> None:
    of_dispatch = library_files([(LAMBDAS / "dispatch.py").read_bytes()])
    of_descriptor = library_files([b"import mailroom.own_channel"])
    assert of_descriptor.keys() - of_dispatch.keys() == {"mailroom/own_channel.py"}


@pytest.mark.parametrize("source", [b"def of(:", b"x = '\xff'"])
def test_the_whole_library_is_bundled_with_code_that_cannot_be_parsed(source: bytes) -> None:
    assert {*library_files([source]).values()} == {*(LAMBDAS / "mailroom").rglob("*.py")}


def test_the_imports_of_code_that_begins_with_a_byte_order_mark_are_bundled() -> None:
    found = library_files([b"\xef\xbb\xbfimport mailroom.clock"])
    assert {*found} == {"mailroom/__init__.py", "mailroom/clock.py"}


def test_a_folder_with_old_bytecode_does_not_hide_a_module_from_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bundle.ROOTS, "mailroom", tmp_path)
    library = tmp_path / "mailroom"
    (library / "mailbox" / "__pycache__").mkdir(parents=True)
    for name in ("__init__", "mailbox"):
        (library / f"{name}.py").touch()
    found = library_files([b"from mailroom.mailbox import due"])
    assert {*found} == {"mailroom/__init__.py", "mailroom/mailbox.py"}


@cache
def imports() -> grimp.ImportGraph:
    """Which module of the library imports which, by another reader than the bundles' own."""
    packages = ("mailroom_ops", "mailroom_stacks")
    return grimp.build_graph("mailroom", *packages, exclude_type_checking_imports=True, cache_dir=None)


def library_of(handler: str) -> set[str]:
    """The modules that the process of `handler` may come to import."""
    tree = ast.parse((LAMBDAS / f"{handler}.py").read_text())
    froms = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    named = {f"{each.module}{at}" for each in froms for at in ("", *(f".{one.name}" for one in each.names))}
    modules = {*(named & imports().modules), *MODULES_OF.get(handler, ())}
    before: set[str] = set()
    while modules != before:
        before = modules
        packages = {name.rpartition(".")[0] for name in modules} - {""}
        modules = modules | packages
        modules = modules.union(*(imports().find_upstream_modules(each) for each in modules))
    return modules


def as_file(module: str) -> str:
    path = module.replace(".", "/")
    package = f"{path}/__init__.py"
    return package if (LAMBDAS / package).exists() else f"{path}.py"


@every_handler
def test_a_bundle_is_for_arm_and_python_3_14(built: dict[str, Path], handler: str) -> None:
    compiled = [*built[handler].rglob("*.so")]
    assert compiled
    assert all(re.search(r"\.(cpython-314-aarch64-linux-gnu|abi3)\.so$", file.name) for file in compiled)
    assert {file.read_bytes()[18:20] for file in compiled} == {AARCH64}


def test_a_bundle_leaves_out_unused_parts_of_packages(built: dict[str, Path]) -> None:
    folder = built["send_fax"]
    assert [each.name for each in (folder / "twilio" / "rest").iterdir()] == ["__init__.py"]
    assert [each.name for each in (folder / "phonenumbers" / "shortdata").iterdir()] == ["__init__.py"]
    assert not [
        each.name for each in folder.iterdir() if each.name.startswith(("aio", "attr", "yarl", "jwt"))
    ]


def test_the_bundle_of_the_callbacks_contains_one_module_of_twilios_package(built: dict[str, Path]) -> None:
    folder = built["twilio_callbacks"]
    assert {each.name for each in (folder / "twilio").iterdir()} == {"__init__.py", "request_validator.py"}


@pytest.mark.parametrize(("handler", "own"), TEMPLATES_OF.items())
def test_a_bundle_contains_only_the_templates_of_its_channels_without_examples(
    built: dict[str, Path], handler: str, own: str
) -> None:
    templates = built[handler] / "templates"
    assert {each.name for each in templates.iterdir()} == ({"mail", "sms"} if own == "." else {own})
    assert list(templates.glob(f"{'*' if own == '.' else own}/default/body.txt"))
    assert not list(templates.rglob("*.json"))


def test_the_bundle_of_the_mail_sender_is_below_its_limits_of_modules_and_bytes(
    built: dict[str, Path],
) -> None:
    folder = built["send_mail"]
    modules = [each for each in (folder / "mailroom").rglob("*.py") if each.name != "__init__.py"]
    # Only a machine with the functions' own version of Python writes bytecode.
    sizes = Counter[str]()
    for each in folder.rglob("*"):
        if each.is_file() and each.suffix != ".pyc":
            part = each.relative_to(folder).parts[0].partition(".")[0].partition("-")[0]
            sizes["sealed" if part in SEALED | {"pynacl", "cffi"} else "other"] += each.stat().st_size
    assert len(modules) <= 52
    assert sizes["other"] < 4_800_000
    assert sizes["sealed"] < 3_600_000  # the smallest library with an encryption: see `Tokens.seal`


def test_packages_without_bytecode_are_not_reused_for_bundles_with_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "BUNDLES", tmp_path)
    without = Bundle("unsubscribe", LAMBDA).packages()
    monkeypatch.setattr(OtherPython, "compiles", True)
    packages = Bundle("unsubscribe", LAMBDA).packages()
    assert not [*without.rglob("*.pyc")]
    assert [*packages.rglob("*.pyc")]


@every_handler
def test_a_bundle_keeps_licences_and_leaves_out_bytecode(built: dict[str, Path], handler: str) -> None:
    folder = built[handler]
    described = [each for each in folder.iterdir() if each.name.endswith(".dist-info")]
    assert described
    assert all(list(each.rglob("LICENSE*")) for each in described if each.name not in WITHOUT_LICENCE)
    assert not list(folder.rglob("__pycache__"))
    assert not list(folder.rglob("RECORD"))
    assert not list(folder.rglob("*.pyc"))


@pytest.fixture
def copied_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of all that goes into bundles."""
    shutil.copytree(LAMBDAS, tmp_path / "lambdas", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TEMPLATES, tmp_path / "templates")
    monkeypatch.setitem(bundle.ROOTS, "mailroom", tmp_path / "lambdas")
    monkeypatch.setattr(bundle, "LAMBDAS", tmp_path / "lambdas")
    monkeypatch.setattr(bundle, "REQUIREMENTS", (tmp_path / "lambdas" / "requirements",))
    monkeypatch.setattr(bundle, "TEMPLATES", tmp_path / "templates")
    return tmp_path


@pytest.mark.parametrize(
    ("hashes", "said"),
    [("", "must have a hash"), (f" --hash=sha256:{'0' * 64}", "Hash mismatch")],
    ids=["missing", "wrong"],
)
def test_a_package_with_a_missing_or_wrong_hash_is_not_bundled(
    copied_sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashes: str, said: str
) -> None:
    monkeypatch.setattr(bundle, "BUNDLES", tmp_path / "kept")
    requirements = copied_sources / "lambdas" / "requirements" / "dispatch.txt"
    requirements.write_text(f"jmespath==1.1.0{hashes}\n")
    with pytest.raises(RuntimeError, match="run `make lock`") as refused:
        Bundle("dispatch", LAMBDA).build(tmp_path / "bundle")
    assert f"{requirements}: " in str(refused.value)
    assert said in str(refused.value)
    assert not (tmp_path / "bundle").exists()
    assert not [*(tmp_path / "kept").iterdir()]


@pytest.mark.parametrize(
    ("changed", "differ"),
    [
        ("lambdas/mailroom/ledger/ledger.py", {"send_mail", "send_sms", "dispatch"}),
        ("lambdas/mailroom/providers/ses/sender.py", {"send_mail"}),
        ("lambdas/mailroom/api/application.py", set()),
        ("lambdas/send_mail.py", {"send_mail"}),
        ("lambdas/requirements/dispatch.txt", {"dispatch"}),
        ("templates/mail/default/body.txt", {"send_mail"}),
        ("templates/sms/default/body.txt", {"send_sms"}),
        ("lambdas/mailroom/__pycache__/ledger.pyc", set()),
    ],
)
def test_the_hash_of_a_bundle_depends_only_on_the_bundles_own_sources(
    copied_sources: Path, changed: str, differ: set[str]
) -> None:
    bundles = {
        name: Bundle(name, LAMBDA, templates=TEMPLATES_OF.get(name, ""))
        for name in ("send_mail", "send_sms", "dispatch")
    }
    before = {name: each.fingerprint() for name, each in bundles.items()}
    (copied_sources / changed).parent.mkdir(exist_ok=True)
    with (copied_sources / changed).open("a") as file:
        file.write("\n")
    assert {name for name, each in bundles.items() if each.fingerprint() != before[name]} == differ
