"""A function's zip folder holds what its handler imports, for the platform that it runs on."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import grimp
import pytest

from mailroom_stacks.app import main as app
from mailroom_stacks.constructs import bundle
from mailroom_stacks.constructs.bundle import Bundle, Target, library_files
from mailroom_stacks.paths import LAMBDAS, TEMPLATES
from tests.support.stacks.refusals import OURS
from tests.support.stacks.templates import Template, Templates

COMMON = {"aws_lambda_powertools", "jmespath", "mailroom", "msgspec", "typing_extensions.py"}
TEMPLATED = {"minijinja", "templates"}
SEGMENTS = {"sms_toolkit", "six.py"}
RECIPIENTS = {"idna", "phonenumbers"}
ZONES = {"tzdata"}
HTTP = {"certifi", "charset_normalizer", "idna", "requests", "urllib3"}
DATABASE = {"psycopg", "psycopg_binary", "psycopg_binary.libs"}
HANDLERS = {
    "collect": COMMON | DATABASE | {"collect.py", "campaigns.json"},
    "compose": COMMON | DATABASE | ZONES | {"compose.py", "campaigns.json"} | RECIPIENTS,
    "messages_api": COMMON | ZONES | RECIPIENTS | SEGMENTS | TEMPLATED | {"messages_api.py", "itsdangerous"},
    "unsubscribe": COMMON | {"unsubscribe.py", "idna", "itsdangerous"},
    "dispatch": COMMON | ZONES | {"dispatch.py"} | RECIPIENTS,
    "dead_letters": COMMON | ZONES | {"dead_letters.py"},
    "release": COMMON | ZONES | {"release.py"} | RECIPIENTS,
    "feedback": COMMON | {"feedback.py"} | RECIPIENTS,
    "index_messages": COMMON | {"index_messages.py", "idna"},
    "outcomes": COMMON | ZONES | {"outcomes.py"},
    "resend_events": COMMON | {"resend_events.py", "standardwebhooks"},
    "retry_fax": COMMON | {"retry_fax.py", "phonenumbers"},
    "send_fax": COMMON | HTTP | {"send_fax.py", "phonenumbers", "twilio"},
    "send_mail": COMMON | TEMPLATED | ZONES | {"send_mail.py", "idna", "itsdangerous"},
    "send_mail_resend": COMMON | TEMPLATED | ZONES | {"send_mail_resend.py", "idna", "itsdangerous"},
    "send_push": COMMON | ZONES | {"send_push.py"},
    "send_sms": COMMON | HTTP | TEMPLATED | SEGMENTS | ZONES | {"send_sms.py", "phonenumbers", "twilio"},
    "send_webhook": COMMON | {"send_webhook.py", "standardwebhooks"},
    "twilio_callbacks": COMMON | {"twilio_callbacks.py", "twilio"},
}
FUNCTIONS = {
    "collect": ("campaigns", "collect"),
    "compose": ("campaigns", "compose"),
    "messages_api": ("api", "messages-api"),
    "unsubscribe": ("api", "unsubscribe"),
    "dispatch": ("routing", "dispatch"),
    "dead_letters": ("dead-letters", "dead-letters"),
    "release": ("routing", "release"),
    "feedback": ("feedback", "feedback"),
    "index_messages": ("routing", "index-messages"),
    "outcomes": ("routing", "outcomes"),
    "resend_events": ("api", "resend-events"),
    "retry_fax": ("fax", "retry-fax"),
    "send_fax": ("fax", "send-fax"),
    "send_mail": ("channels", "send-mail"),
    "send_mail_resend": ("channels", "send-mail"),
    "send_push": ("channels", "send-push"),
    "send_sms": ("channels", "send-sms"),
    "send_webhook": ("webhook", "send-webhook"),
    "twilio_callbacks": ("api", "twilio-callbacks"),
}
LATER = {
    # zoneinfo opens it where the system has no zones, as the runtime may not.
    "tzdata": "import zoneinfo\nzoneinfo.reset_tzpath(())\nimport tzdata\nzoneinfo.ZoneInfo('Europe/Berlin')",
    "idna": "import mailroom.message.address as of; of.bare('a@ü.example')",
    "phonenumbers": "import mailroom.message.address as of; of.to_e164('+16175551234')",
    "twilio": "import mailroom.{provider}",
    "sms_toolkit": "import mailroom.channels.sms.text as of; of.segments_of('Hello')",
    "minijinja": "import mailroom.content.templates",
    "itsdangerous": "import mailroom.recipients.unsubscribe_links",
    "psycopg": "import psycopg",
}
"""What a handler imports when it has work for it, and what that work is."""
PROVIDERS = {
    "send_fax": "channels.fax.signalwire",
    "send_sms": "channels.sms.twilio",
    "twilio_callbacks": "feedback.twilio_callbacks",
}
"""The adapter that wants Twilio's package, by handler; a callback's check wants it at once."""
EXTRAS = {handler: {"campaigns.json": b"{}"} for handler in ("collect", "compose")}
"""What the stack puts there: the definitions of its campaigns."""
BY_RESEND = {"resend_events", "send_mail_resend"}
"""What a stage has in the place of the sender by SES."""
TEMPLATES_OF = {"send_mail": "mail", "send_mail_resend": "mail", "send_sms": "sms", "messages_api": "."}
LISTING = """
import site, sys
from pathlib import Path
import {handler}
here = [Path(each) for each in site.getsitepackages()]
for name, module in [*sys.modules.items()]:
    file = getattr(module, "__file__", None)
    if file and any(Path(file).is_relative_to(each) for each in here):
        print(name.partition(".")[0])
print()
{later}
for name in {modules}:
    print(sys.modules[name].__file__)
"""
# Its wheel has none; METADATA says MIT.
WITHOUT_LICENCE = {"standardwebhooks-1.1.0.dist-info"}
LAMBDA = Target("aarch64-manylinux_2_28")
AARCH64 = b"\xb7\0"
"""Machine in the header of an ELF file."""
every_handler = pytest.mark.parametrize("handler", HANDLERS)


def test_no_handler_is_left_out() -> None:
    assert {*HANDLERS} == {each.stem for each in LAMBDAS.glob("*.py")}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Every bundle for AWS and for this machine."""
    folders = {}
    for platform in (LAMBDA.platform, "host"):
        for handler in HANDLERS:
            folder = tmp_path_factory.mktemp(f"{handler}-{platform}")
            templates = TEMPLATES_OF.get(handler, "")
            bundle_of = Bundle(handler, Target(platform), templates=templates, extras=EXTRAS.get(handler))
            bundle_of.build(folder)
            folders[handler, platform] = folder
    return folders


@every_handler
def test_a_bundle_holds_its_handler_the_library_and_its_packages_alone(
    built: dict[tuple[str, str], Path], handler: str
) -> None:
    inside = {each.name for each in built[handler, LAMBDA.platform].iterdir()}
    assert {name for name in inside if not name.endswith(".dist-info")} == HANDLERS[handler]


@every_handler
def test_of_the_library_a_bundle_holds_what_its_handler_imports_and_no_other_module(
    built: dict[tuple[str, str], Path], handler: str
) -> None:
    folder = built[handler, LAMBDA.platform]
    inside = {each.relative_to(folder).as_posix() for each in (folder / "mailroom").rglob("*.py")}
    assert inside == {as_file(each) for each in library_of(handler)}


@pytest.mark.parametrize("source", [b"def of(:", b"x = '\xff'"])
def test_code_that_this_python_cannot_read_gets_the_whole_library(source: bytes) -> None:
    assert {*library_files([source]).values()} == {*(LAMBDAS / "mailroom").rglob("*.py")}


def test_code_may_begin_with_a_mark_of_its_encoding() -> None:
    found = library_files([b"\xef\xbb\xbfimport mailroom.clock"])
    assert {*found} == {"mailroom/__init__.py", "mailroom/clock.py"}


def test_a_folder_that_bytecode_is_left_in_hides_no_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bundle.ROOTS, "mailroom", tmp_path)
    library = tmp_path / "mailroom"
    (library / "mailbox" / "__pycache__").mkdir(parents=True)
    for name in ("__init__", "mailbox"):
        (library / f"{name}.py").touch()
    found = library_files([b"from mailroom.mailbox import due"])
    assert {*found} == {"mailroom/__init__.py", "mailroom/mailbox.py"}


@every_handler
def test_every_module_of_the_library_in_a_bundle_can_be_imported_there(
    built: dict[tuple[str, str], Path], handler: str
) -> None:
    folder = built[handler, "host"]
    paths = [each.relative_to(folder).with_suffix("") for each in (folder / "mailroom").rglob("*.py")]
    names = sorted(".".join(each.parts).removesuffix(".__init__") for each in paths)
    ended = subprocess.run(
        [sys.executable, "-P", "-c", "\n".join(f"import {each}" for each in names)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@cache
def imports() -> grimp.ImportGraph:
    """Which module of the library imports which, by another reader than the bundles' own."""
    return grimp.build_graph("mailroom", exclude_type_checking_imports=True, cache_dir=None)


def library_of(handler: str) -> set[str]:
    """The modules that the process of `handler` may come to import."""
    tree = ast.parse((LAMBDAS / f"{handler}.py").read_text())
    froms = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    named = {f"{each.module}{at}" for each in froms for at in ("", *(f".{one.name}" for one in each.names))}
    modules = named & imports().modules
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
def test_a_bundle_is_for_arm_and_python_3_14(built: dict[tuple[str, str], Path], handler: str) -> None:
    compiled = [*built[handler, LAMBDA.platform].rglob("*.so")]
    assert compiled
    assert all(re.search(r"\.(cpython-314-aarch64-linux-gnu|abi3)\.so$", file.name) for file in compiled)
    assert {file.read_bytes()[18:20] for file in compiled} == {AARCH64}


Imported = tuple[list[str], list[str]]
"""The packages that a handler took from beside its bundle, and the files of those that it has in there."""


@pytest.fixture(scope="module")
def imported(
    built: dict[tuple[str, str], Path], every_function: Templates, by_resend: Templates
) -> Callable[[str], Imported]:
    """What a handler's process imported, which is started once."""

    @cache
    def by(handler: str) -> Imported:
        stack, name = FUNCTIONS[handler]
        stage = by_resend if handler in BY_RESEND else every_function
        later = "\n".join(
            work.format(provider=PROVIDERS.get(handler, handler))
            for package, work in LATER.items()
            if package in HANDLERS[handler]
        )
        # -P: not the folder we are in. boto3 comes from here, as on AWS from the runtime: after the bundle.
        ended = subprocess.run(
            [
                sys.executable,
                "-P",
                "-c",
                LISTING.format(handler=handler, modules=modules(handler), later=later),
            ],
            cwd=built[handler, "host"],
            env={
                **os.environ,
                **stage[stack].environment(f"mailroom-dev-{name}"),
                "PYTHONPATH": str(built[handler, "host"]),
                "AWS_REGION": "eu-central-1",
                "AWS_DEFAULT_REGION": "eu-central-1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        borrowed, _, own = ended.stdout.partition("\n\n")
        return borrowed.splitlines(), own.splitlines()

    return by


def modules(handler: str) -> list[str]:
    """What a handler's bundle lets it import."""
    return sorted(Path(each).stem for each in HANDLERS[handler] - {"templates", "campaigns.json"})


@every_handler
def test_every_package_of_a_bundle_is_imported_by_its_handler(
    built: dict[tuple[str, str], Path], imported: Callable[[str], Imported], handler: str
) -> None:
    _, files = imported(handler)
    assert all(Path(file).is_relative_to(built[handler, "host"]) for file in files)
    assert len(files) == len(modules(handler))


RUNTIME = {"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3", "typing_extensions"}
"""What Lambda's Python has beside a bundle: https://docs.aws.amazon.com/lambda/latest/dg/python-package.html."""
HERE_ALONE = {"certifi", "markupsafe", "_distutils_hack"}
"""botocore does without the first, MiniJinja without the second, and the last is a virtual environment's."""


@every_handler
def test_a_handler_needs_nothing_beside_its_bundle_but_what_lambda_has(
    imported: Callable[[str], Imported], handler: str
) -> None:
    borrowed, _ = imported(handler)
    assert borrowed
    assert set(borrowed) <= RUNTIME | HERE_ALONE


FAX_CLIENT = """
import logging
from pathlib import Path
import phonenumbers, requests, twilio
from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.rest import Client

class Scripted(HttpClient):
    def request(self, method, uri, params=None, data=None, headers=None, auth=None, **_):
        return Response(200, f"{method} {uri} {data['To']} {auth[0]}:{auth[1]}")

number = phonenumbers.parse("+44 20 7946 0958", None)
to = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
Client("a", "b", environment={})
client = Client("a", "b", environment={}, http_client=Scripted(logging.getLogger(), False))
print(client.request("POST", "https://example.signalwire.com/Faxes", data={"To": to}).text)
for package in (phonenumbers, requests, twilio):
    print(Path(package.__file__).parents[1])
"""


def test_the_fax_senders_bundle_holds_enough_of_twilio_and_phonenumbers_to_send(
    built: dict[tuple[str, str], Path],
) -> None:
    folder = built["send_fax", "host"]
    ended = subprocess.run(
        [sys.executable, "-P", "-c", FAX_CLIENT],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said, *places = ended.stdout.splitlines()
    assert said == "POST https://example.signalwire.com/Faxes +442079460958 a:b"
    assert places == [str(folder)] * 3


def test_what_no_function_uses_of_a_package_is_left_out(built: dict[tuple[str, str], Path]) -> None:
    folder = built["send_fax", LAMBDA.platform]
    assert [each.name for each in (folder / "twilio" / "rest").iterdir()] == ["__init__.py"]
    assert [each.name for each in (folder / "phonenumbers" / "shortdata").iterdir()] == ["__init__.py"]
    assert not [
        each.name for each in folder.iterdir() if each.name.startswith(("aio", "attr", "yarl", "jwt"))
    ]


def test_of_twilios_package_a_callbacks_check_takes_one_module(built: dict[tuple[str, str], Path]) -> None:
    folder = built["twilio_callbacks", LAMBDA.platform]
    assert {each.name for each in (folder / "twilio").iterdir()} == {"__init__.py", "request_validator.py"}


@pytest.mark.parametrize(("handler", "own"), TEMPLATES_OF.items())
def test_a_sender_takes_its_own_channels_templates_alone_and_no_examples(
    built: dict[tuple[str, str], Path], handler: str, own: str
) -> None:
    templates = built[handler, LAMBDA.platform] / "templates"
    assert {each.name for each in templates.iterdir()} == ({"mail", "sms"} if own == "." else {own})
    assert list(templates.glob(f"{'*' if own == '.' else own}/default/body.txt"))
    assert not list(templates.rglob("*.json"))


def test_the_mail_sender_s_bundle_stays_small(built: dict[tuple[str, str], Path]) -> None:
    folder = built["send_mail", LAMBDA.platform]
    modules = [each for each in (folder / "mailroom").rglob("*.py") if each.name != "__init__.py"]
    # Only a machine with the functions' own version of Python writes bytecode.
    size = sum(each.stat().st_size for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc")
    assert len(modules) <= 41
    assert size < 4_800_000


@every_handler
def test_licences_stay_and_what_python_made_goes(built: dict[tuple[str, str], Path], handler: str) -> None:
    folder = built[handler, LAMBDA.platform]
    described = [each for each in folder.iterdir() if each.name.endswith(".dist-info")]
    assert described
    assert all(list(each.rglob("LICENSE*")) for each in described if each.name not in WITHOUT_LICENCE)
    assert not list(folder.rglob("__pycache__"))
    assert not list(folder.rglob("*.pyc"))


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
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
def test_a_package_whose_hash_is_missing_or_wrong_gets_into_no_bundle(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashes: str, said: str
) -> None:
    monkeypatch.setattr(bundle, "BUNDLES", tmp_path / "kept")
    requirements = sources / "lambdas" / "requirements" / "dispatch.txt"
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
        ("lambdas/mailroom/channels/mail/ses.py", {"send_mail"}),
        ("lambdas/mailroom/api/application.py", set()),
        ("lambdas/send_mail.py", {"send_mail"}),
        ("lambdas/requirements/dispatch.txt", {"dispatch"}),
        ("templates/mail/default/body.txt", {"send_mail"}),
        ("templates/sms/default/body.txt", {"send_sms"}),
        ("lambdas/mailroom/__pycache__/ledger.pyc", set()),
    ],
)
def test_a_hash_changes_with_its_own_inputs_alone(sources: Path, changed: str, differ: set[str]) -> None:
    bundles = {
        name: Bundle(name, LAMBDA, templates=TEMPLATES_OF.get(name, ""))
        for name in ("send_mail", "send_sms", "dispatch")
    }
    before = {name: each.fingerprint() for name, each in bundles.items()}
    (sources / changed).parent.mkdir(exist_ok=True)
    with (sources / changed).open("a") as file:
        file.write("\n")
    assert {name for name, each in bundles.items() if each.fingerprint() != before[name]} == differ


def test_a_plain_run_bundles_and_prints_a_line_a_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("mailroom_stacks.app.application.CDK_JSON", OURS)
    monkeypatch.setattr(sys, "argv", ["app.py", "-c", "stage=dev", "--output", str(tmp_path)])
    app.main()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.partition(":")[0] for line in lines) == [
        f"mailroom-dev-{stack}"
        for stack in (
            *("api", "channels", "dead-letters", "fax", "feedback", "mailbox", "monitoring", "routing"),
            "webhook",
        )
    ]
    channels = Template.read(tmp_path / "mailroom-dev-channels.template.json")
    keys = {
        each["Code"]["S3Key"]
        for each in channels.all("Lambda::Function")
        if each["FunctionName"].startswith("mailroom-dev-send-mail")
    }
    assert len(keys) == 1, "both lanes run the same bundle"
    (key,) = keys
    assert (tmp_path / f"asset.{key.removesuffix('.zip')}" / "send_mail.py").exists()
