"""The handlers send_fax, retry_fax and outcomes."""

import sys
import time
from collections.abc import Iterator

import msgspec
import pytest

from mailroom.environment import FaxSender, variables_of
from tests.support.unit.events import failures, lambda_context, sqs_event
from tests.support.unit.fax import FAX_SETTINGS, entry, fax_body
from tests.support.unit.fax_credentials import SIGNALWIRE, Secret, StandIn
from tests.support.unit.functions import Load
from tests.support.unit.shared import Aws, Item

VARIABLES = {"send_fax": "FAX_PROVIDER", "retry_fax": "FAX_QUEUE_URL", "outcomes": "RETRY_QUEUE_URL"}
"""A required variable of each handler."""


def fax_environment(aws: Aws, secret: Secret) -> dict[str, str]:
    """Return the variables that the stacks add for these functions."""
    settings = {**FAX_SETTINGS, "fax_secret_arn": secret.arn, "poll_seconds": 0.3}
    return {
        **variables_of(FaxSender(**settings)),
        "FAX_QUEUE_URL": aws.urls["fax.fifo"],
        "WEBHOOK_QUEUE_URL": aws.urls["webhook"],
        "RETRY_QUEUE_URL": aws.urls["fax-retry"],
        "RETRY_DELAY_SECONDS": "600",
    }


@pytest.fixture
def load_fax(aws: Aws, load: Load, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Load a handler with the environment of a stage with faxes."""
    for name, value in fax_environment(aws, Secret(SIGNALWIRE)).items():
        monkeypatch.setenv(name, value)
    yield load
    for name in VARIABLES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("name", "variable"), VARIABLES.items())
def test_a_handler_without_a_required_environment_variable_fails_at_start_and_names_the_variable(
    load_fax: Load, monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(msgspec.ValidationError, match=variable):
        load_fax(name)


def test_send_fax_submits_a_fax_once_with_the_credentials_of_the_secret(
    load_fax: Load, aws: Aws, stand_in: StandIn
) -> None:
    handler = load_fax("send_fax")
    assert stand_in.lines == []  # a cold start sends no request
    for _ in range(2):
        assert handler(sqs_event(fax_body()), lambda_context(900_000)) == {"batchItemFailures": []}
    assert stand_in.lines == [("project-1", "token-1")]
    assert stand_in.line.submits == 1
    assert (entry(aws)["status"], entry(aws)["provider"]) == ("delivered", "signalwire")
    (unsettled_try,) = entry(aws)["unsettled_tries"]
    assert unsettled_try.endswith(" signalwire/ours")


def test_retry_fax_moves_due_faxes_and_leaves_all_other_records_queued(
    load_fax: Load, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_URL", aws.urls["fax-retry"])
    now_seconds = int(time.time())
    bodies: list[str | Item] = [
        fax_body(fax_id="due", not_before=now_seconds - 1, attempt=2),
        fax_body(fax_id="early", not_before=now_seconds + 3600, attempt=2),
        "no",
    ]
    reply = load_fax("retry_fax")(sqs_event(*bodies), lambda_context())
    assert failures(reply) == ["r-1", "r-2"]
    assert [(body["id"], body["attempt"]) for body in aws.bodies("fax.fifo")] == [("due", 2)]
