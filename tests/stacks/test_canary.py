"""The canary of a stage: who puts it, what rings without it, and the settings that do not fit."""

import json
from typing import Any

import pytest

from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.alarm import alarm_named
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import EVERY_ALARM as CANARY


def rule(stage: Templates) -> dict[str, Any]:
    return stage["routing"].one("Events::Rule", Name="mailroom-dev-canary")


def event_at_noon(stage: Templates) -> dict[str, object]:
    """Return the event that EventBridge sends at noon."""
    transformer = rule(stage)["Targets"][0]["InputTransformer"]
    ((name, path),) = transformer["InputPathsMap"].items()
    assert path == "$.time"
    sent: dict[str, object] = json.loads(transformer["InputTemplate"].replace(f"<{name}>", '"noon"'))
    return sent


@pytest.mark.parametrize(
    ("name", "address"),
    [("whole", "success@simulator.amazonses.com"), ("by_resend", "delivered@resend.dev")],
)
def test_release_is_invoked_every_five_minutes_with_a_canary_for_the_providers_test_address(
    name: str, address: str, request: pytest.FixtureRequest
) -> None:
    stage: Templates = request.getfixturevalue(name)
    assert rule(stage)["ScheduleExpression"] == "rate(5 minutes)"
    assert event_at_noon(stage) == {"canary": "noon", "to": address}


def test_release_may_put_items_into_the_mailbox_only_if_it_puts_canaries(
    dev: Templates, whole: Templates
) -> None:
    assert "dynamodb:PutItem" in json.dumps(whole["routing"].body)
    assert "dynamodb:PutItem" not in json.dumps(dev["routing"].body)


@pytest.mark.parametrize("name", ["whole", "lean"])
def test_an_alarm_rings_if_no_canary_was_delivered_for_a_quarter_of_an_hour(
    name: str, request: pytest.FixtureRequest
) -> None:
    missing = alarm_named(request.getfixturevalue(name), "mailroom-dev-canary-missing")
    assert (missing["Namespace"], missing["MetricName"]) == ("Mailroom", "CanaryDelivered")
    assert {each["Name"]: each["Value"] for each in missing["Dimensions"]} == {
        "service": "feedback",
        "stage": "dev",
    }
    assert (missing["Period"], missing["EvaluationPeriods"]) == (300, 3)
    assert (missing["ComparisonOperator"], missing["Threshold"]) == ("LessThanThreshold", 1)
    assert missing["TreatMissingData"] == "breaching"


def test_one_bounce_among_the_canaries_of_a_day_does_not_ring_the_alarm_of_the_bounce_rate(
    whole: Templates,
) -> None:
    (rate,) = (
        query["Expression"]
        for query in alarm_named(whole, "mailroom-dev-ses-bounce-rate")["Metrics"]
        if "Expression" in query
    )
    assert rate == "IF(sent >= 388, rate, 0)"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"channels.mail": REMOVED},
            "sends mails, but channels.mail is missing; add channels.mail, or use false.",
        ),
        (
            {"channels.mail.per_day": 288},
            "sends 288 mails a day, but channels.mail.per_day allows only 288; raise per_day, or use false.",
        ),
        (
            {"recipients": {"only": ["example.com"]}},
            "sends to success@simulator.amazonses.com, which recipients.only does not contain; add it, or "
            "use false.",
        ),
    ],
)
def test_a_canary_that_cannot_arrive_stops_synth(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(with_settings({**CANARY, **changes}), "dev")
    assert str(refused.value) == f"mailroom.dev.monitoring.canary: {sentence}"


@pytest.mark.parametrize(
    "changes",
    [
        {"recipients": {"only": ["simulator.amazonses.com"]}},
        {"recipients": {"only": ["success@simulator.amazonses.com"]}},
        {"channels.mail.per_day": 289},
        {"channels.mail.per_day": None},
    ],
)
def test_synth_accepts_a_canary_that_may_arrive(changes: dict[str, object]) -> None:
    assert load(with_settings({**CANARY, **changes}), "dev").monitoring.canary
