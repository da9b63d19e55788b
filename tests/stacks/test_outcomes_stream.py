"""How the ledger's stream is read."""

import json

from mailroom.outcomes import FAILED, SILENT
from stacks.routing import FAILED as COUNTED
from stacks.routing import NO_NEWS
from tests.support.stacks.templates import Templates, text


def test_the_filter_leaves_out_what_nobody_is_called_back_for_and_no_more() -> None:
    assert set(NO_NEWS) == set(SILENT)
    assert COUNTED == FAILED


def test_outcomes_is_told_of_callbacks_failures_and_faxes_to_try_again_alone(
    dev: Templates,
) -> None:
    filters = dev["routing"].mapping("mailroom-dev-outcomes")["FilterCriteria"]["Filters"]
    changes = {"eventName": ["INSERT", "MODIFY"]}
    assert [json.loads(each["Pattern"]) for each in filters] == [
        {
            **changes,
            "dynamodb": {
                "NewImage": {
                    "callback_url": {"S": [{"exists": True}]},
                    "status": {"S": [{"anything-but": ["sending", "scheduled"]}]},
                }
            },
        },
        {**changes, "dynamodb": {"NewImage": {"status": {"S": [*FAILED]}}}},
        {
            **changes,
            "dynamodb": {"NewImage": {"event_type": {"S": ["fax"]}, "status": {"S": ["retrying"]}}},
        },
    ]


def test_the_ledger_stream_is_read_within_bounds_and_what_fails_is_kept_whole(dev: Templates) -> None:
    routing = dev["routing"]
    dispatch, outcomes = (dict(routing.mapping(f"mailroom-dev-{name}")) for name in ("dispatch", "outcomes"))
    assert "ExportsOutputFnGetAttLedger" in text(outcomes["EventSourceArn"])
    own = ("EventSourceArn", "FilterCriteria", "FunctionName")
    assert {name: value for name, value in outcomes.items() if name not in own} == {
        name: value for name, value in dispatch.items() if name not in own
    }
    (bucket,) = routing.all("S3::Bucket")
    assert "unprocessed" in text(bucket["BucketName"])


def test_outcomes_knows_where_callbacks_and_retries_go_and_when(dev: Templates) -> None:
    given = dev["routing"].environment("mailroom-dev-outcomes")
    assert "WebhookQueue" in given["WEBHOOK_QUEUE_URL"]
    assert "FaxRetryQueue" in given["RETRY_QUEUE_URL"]
    assert (given["MAX_ATTEMPTS"], given["RETRY_DELAY_SECONDS"]) == ("20", "600")
    assert json.loads(given["CHANNELS"]) == ["fax", "mail", "sms", "webhook"]
    assert (float(given["RETRY_GROWTH"]), given["RETRY_DELAY_CAP_SECONDS"]) == (1, "3600")


def test_what_outcomes_gave_up_on_rings_an_alarm_of_its_own(dev: Templates) -> None:
    assert dev["routing"].output("OutcomesGaveUpAlarmName")
    assert dev["routing"].output("DispatchGaveUpAlarmName") != dev["routing"].output(
        "OutcomesGaveUpAlarmName"
    )
    assert dev["routing"].output("UnprocessedBucketName")
