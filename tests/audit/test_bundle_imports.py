"""`make audit`: a handler imports each package of its bundle, and besides them only packages of Lambda."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from mailroom_stacks.constructs.bundle import Target
from tests.stacks.test_bundles import HANDLERS, build, every_handler
from tests.support.stacks.campaign_folders import EVERYTHING, changes_for
from tests.support.stacks.variants import BY_RESEND, PUSH, PUSH_ROW, variant

FUNCTIONS = {
    "console": ("console", "console"),
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
    "resend_mail_events": ("api", "resend-mail-events"),
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
    # zoneinfo opens the package tzdata if the system lacks time zones, as Lambda's runtime may.
    "tzdata": "import zoneinfo\nzoneinfo.reset_tzpath(())\nimport tzdata\nzoneinfo.ZoneInfo('Europe/Berlin')",
    "idna": "import mailroom.message.address as of; of.bare('a@ü.example')",
    "phonenumbers": "import mailroom.message.address as of; of.to_e164('+16175551234')",
    "twilio": "import mailroom.{provider}",
    "minijinja": "import mailroom.content.templates",
    "itsdangerous": "import mailroom.recipients.unsubscribe_links",
    "psycopg": "import psycopg",
    "nacl": "import nacl.secret",
    # The console checks tokens, and seals links.
    "jwt": "import jwt, cryptography.fernet",
}
"""Imports of a handler that it makes only for some work, with that work."""
PROVIDERS = {
    "send_fax": "providers.signalwire.sender",
    "send_sms": "providers.twilio.sender",
    "twilio_callbacks": "providers.twilio.callbacks",
}
"""The adapter that wants Twilio's package, by handler; a callback's check wants it at once."""
ONLY_BY_RESEND = {"resend_mail_events", "send_mail_resend"}
"""Settings of a stage without the sender by SES."""
LISTING = """
import importlib, site, sys
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
bundle = Path(sys.path[0])
for file in (bundle / "mailroom").rglob("*.py"):
    importlib.import_module(".".join(file.relative_to(bundle).with_suffix("").parts).removesuffix(".__init__"))
print()
from botocore.exceptions import BotoCoreError
from types import SimpleNamespace
context = SimpleNamespace(
    function_name="function", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="id",
    get_remaining_time_in_millis=lambda: 10_000,
)
try:
    response = {handler}.handler({event}, context)
except BotoCoreError:
    pass  # the function got as far as a call of AWS, which does not answer here
else:
    assert not response or response.get("statusCode") != 500, response
"""
EVENT = {
    "Records": [],
    "shard": "0",
    "rawPath": "/",
    "headers": {},
    "requestContext": {"http": {"method": "GET", "path": "/"}},
}
"""An event for every function: an empty batch, the shard of `release`, and a request."""
RUNTIME = {"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3", "typing_extensions"}
"""Packages that Lambda's Python has besides a bundle:
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html."""
HERE_ALONE = {"certifi", "markupsafe", "_distutils_hack"}
"""Optional imports: botocore works without the first, MiniJinja without the second, and the last belongs to a
virtual environment."""
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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every bundle for this machine."""
    host = Target("host")
    return {handler: build(handler, host, tmp_path_factory.mktemp(handler)) for handler in HANDLERS}


@cache
def variables_of_function(handler: str) -> dict[str, str]:
    """The function's variables, in a stage that has the function."""
    all_functions = {
        "push": PUSH,
        "channels.push": PUSH_ROW,
        "console": EVERYTHING["console"],
        **changes_for("weekly-followers"),
    }
    stack, name = FUNCTIONS[handler]
    stage = variant(BY_RESEND if handler in ONLY_BY_RESEND else all_functions)
    return stage[stack].environment(f"mailroom-dev-{name}")


def modules(handler: str) -> list[str]:
    """Return the packages that a handler's bundle lets it import."""
    return sorted(
        Path(each).stem for each in HANDLERS[handler] - {"templates", "campaigns.json", "topics.json"}
    )


@every_handler
def test_a_lambda_handler_imports_all_modules_of_its_bundle_and_otherwise_only_those_of_lambda(
    built: dict[str, Path], handler: str
) -> None:
    """At last the process imports every module of the library in the bundle, and handles an event."""
    folder = built[handler]
    later = "\n".join(
        work.format(provider=PROVIDERS.get(handler, handler))
        for package, work in LATER.items()
        if package in HANDLERS[handler]
    )
    script = LISTING.format(handler=handler, modules=modules(handler), later=later, event=EVENT)
    # -P: not the folder we are in. boto3 comes from here, as on AWS from the runtime: after the bundle.
    process = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=folder,
        env={
            **os.environ,
            **variables_of_function(handler),
            "PYTHONPATH": str(folder),
            "AWS_REGION": "eu-central-1",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "key",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_MAX_ATTEMPTS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    borrowed, files, _logs = process.stdout.split("\n\n")
    assert all(Path(file).is_relative_to(folder) for file in files.splitlines())
    assert len(files.splitlines()) == len(modules(handler))
    assert borrowed
    assert {*borrowed.splitlines()} <= RUNTIME | HERE_ALONE


def test_the_bundle_of_send_fax_contains_the_modules_that_sending_needs(
    built: dict[str, Path],
) -> None:
    folder = built["send_fax"]
    process = subprocess.run(
        [sys.executable, "-P", "-c", FAX_CLIENT],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    response, *places = process.stdout.splitlines()
    assert response == "POST https://example.signalwire.com/Faxes +442079460958 a:b"
    assert places == [str(folder)] * 3
