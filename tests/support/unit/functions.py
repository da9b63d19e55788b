"""The functions' environment, as the stacks set it."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto.ses.models import ses_backends

from tests.support import ROOT
from tests.support.unit.shared import (
    BUCKET,
    BUDGETS,
    CONTENTS,
    LEDGER,
    MAILBOX,
    PREFERENCES,
    REGION,
    RUNS,
    SENDER,
    SUPPRESSIONS,
    Aws,
)

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
Load = Callable[[str], Handler]
HANDLERS = ("dispatch", "release", "send_mail")
LOADED = (*HANDLERS, "collect", "compose")
REPOSITORY = ROOT


def stack_environment(aws: Aws) -> dict[str, str]:
    """Return all variables that the stacks put into the functions' environments."""
    return {
        "MAILROOM_STAGE": "test",
        "POWERTOOLS_LOG_LEVEL": "INFO",
        "LEDGER_TABLE": LEDGER,
        "LEDGER_TTL_SECONDS": "7776000",
        "PAYLOAD_BUCKET": BUCKET,
        "MAILBOX_TABLE": MAILBOX,
        "SUPPRESSIONS_TABLE": SUPPRESSIONS,
        "PREFERENCES_TABLE": PREFERENCES,
        "UNSUBSCRIBE_URL": "https://api.mailroom.example/unsubscribe",
        "UNSUBSCRIBE_SECRET_ARN": "mailroom-test-unsubscribe",
        "ROUTES": json.dumps({"mail": {"normal": aws.urls["mail"], "bulk": aws.urls["mail-bulk"]}}),
        "DELAYED_ROUTES": "{}",
        "CALLBACK_SCHEMES": '["https"]',
        "CALLBACK_PORTS": "[443]",
        "CONTENTS_TABLE": CONTENTS,
        "BUDGETS_TABLE": BUDGETS,
        "RUNS_TABLE": RUNS,
        "LINES": json.dumps({"mail": {"per_second": 10}}),
        "CHANNEL": "mail",
        "QUEUE_URL": aws.urls["mail"],
        "LEASE_SECONDS": "120",
        "PACE_SECONDS": "0",
        "ON_UNKNOWN": "resend",
        "RESEND_DELAYS": "[0, 1800, 7200]",
        "BACKOFF_SECONDS": "5",
        "BACKOFF_CAP_SECONDS": "900",
        "MISCONFIGURED_SECONDS": "20",
        "SUBMIT_SECONDS": "10",
        "RECORD_SECONDS": "5",
        "MAIL_SENDERS": json.dumps([SENDER]),
        "CONFIGURATION_SET": "mailroom-test",
        "MAX_ATTACHMENT_BYTES": "1000",
        "TEMPLATES": str(REPOSITORY / "templates" / "mail"),
    }


@pytest.fixture
def load(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """A handler, imported as if its process had just begun."""
    for name, value in stack_environment(aws).items():
        monkeypatch.setenv(name, value)

    def handler(name: str) -> Handler:
        sys.modules.pop(name, None)
        loaded: Handler = importlib.import_module(name).handler
        return loaded

    yield handler
    for name in LOADED:
        sys.modules.pop(name, None)


@pytest.fixture
def outbox(aws: Aws) -> Iterator[list[Any]]:
    """Return the mails that SES accepted."""
    backend = ses_backends["123456789012"][REGION]
    backend.sent_messages.clear()
    yield backend.sent_messages
    backend.sent_messages.clear()
