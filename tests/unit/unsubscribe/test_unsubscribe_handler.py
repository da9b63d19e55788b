"""unsubscribe, as Lambda runs it."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest

from tests.support.unit.events import lambda_context
from tests.support.unit.functions import REPOSITORY, Handler
from tests.support.unit.shared import PREFERENCES, Aws, FakeClock, refuse_calls
from tests.support.unit.unsubscribing import (
    ADA,
    KEY,
    NEWER,
    ONE_CLICK,
    TOPIC,
    links,
    posted_form,
    preferences_of,
    token,
    unsubscribe_request,
)

VARIABLES = ("PREFERENCES_TABLE", "UNSUBSCRIBE_SECRET_ARN")
Load = Callable[[], Handler]
_NAMES = iter(range(1000))


@pytest.fixture
def loaded(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports the handler as if its process had just begun."""
    name, text = f"mailroom-test-unsubscribe-{next(_NAMES)}", json.dumps({"key": KEY})
    arn = boto3.client("secretsmanager").create_secret(Name=name, SecretString=text)["ARN"]
    for name, value in zip(VARIABLES, (PREFERENCES, arn), strict=True):
        monkeypatch.setenv(name, value)

    def load() -> Handler:
        sys.modules.pop("unsubscribe", None)
        handler: Handler = importlib.import_module("unsubscribe").handler
        return handler

    yield load
    sys.modules.pop("unsubscribe", None)


def test_the_handler_stores_a_one_click_opt_out_in_the_table_of_preferences(
    loaded: Load, aws: Aws, clock: FakeClock
) -> None:
    handler = loaded()
    assert handler(unsubscribe_request(token()), lambda_context())["statusCode"] == 200
    assert aws.dynamodb.scan(TableName=PREFERENCES)["Items"] == []
    assert handler(posted_form(token(), ONE_CLICK), lambda_context())["statusCode"] == 200
    found = preferences_of(aws, clock).get(ADA, TOPIC)
    assert found is not None
    assert found.by == "one-click"


def test_an_opt_out_by_a_link_with_a_new_key_is_accepted_while_the_cached_secret_lacks_the_key(
    loaded: Load, aws: Aws, clock: FakeClock
) -> None:
    """The function is warm, and keeps the old key for a minute."""
    handler, newer = loaded(), links(NEWER).url(ADA, TOPIC).rpartition("/")[2]
    assert handler(unsubscribe_request(token()), lambda_context())["statusCode"] == 200
    said = json.dumps({"key": NEWER, "previous": [KEY]})
    boto3.client("secretsmanager").put_secret_value(
        SecretId=os.environ["UNSUBSCRIBE_SECRET_ARN"], SecretString=said
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mailroom.recipients.unsubscribe_links.RENEW_SECONDS", 0)
        assert handler(posted_form(newer, ONE_CLICK), lambda_context())["statusCode"] == 200
    assert preferences_of(aws, clock).get(ADA, TOPIC) is not None


def test_a_cold_start_of_the_unsubscribe_function_makes_no_call_to_aws(
    loaded: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_calls(monkeypatch)
    loaded()


@pytest.mark.process
def test_the_unsubscribe_function_imports_neither_templates_nor_providers() -> None:
    script = (
        "import sys; import mailroom.unsubscribe.application; "
        "print([each for each in "
        "('minijinja', 'twilio', 'mailroom.ledger.ledger', 'mailroom.channels.mail.contract') "
        "if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        env={"PYTHONPATH": "lambdas", "POWERTOOLS_METRICS_NAMESPACE": "Mailroom"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


def test_the_unsubscribe_function_reads_the_settings_of_its_page_from_a_file_at_its_start(
    loaded: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "unsubscribe.json"
    monkeypatch.setenv("UNSUBSCRIBE_PAGE", str(file))
    with pytest.raises(FileNotFoundError):
        loaded()
    file.write_text('{"brand": "Example Books", "default_language": "de"}')
    page = loaded()(unsubscribe_request(token()), lambda_context())["body"]
    assert '<html lang="de"' in page
    assert "Example Books" in page
