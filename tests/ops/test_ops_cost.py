"""Costs of a month: formulas against examples that were calculated by hand, in dollars per million."""

from typing import Any

import pytest

from mailroom_ops.costs import stage_cost
from mailroom_ops.costs.configured_lanes import lane_of
from mailroom_ops.costs.cost import Cost, month_cost
from mailroom_ops.costs.message_cost import message_parts
from mailroom_stacks.settings.load import load
from tests.support.stacks.refusals import STAGES, with_settings

MILLION = 1_000_000
RESOURCES: dict[str, list[dict[str, Any]]] = {
    "SQS::Queue": [{"RedrivePolicy": {}}] * 8 + [{}] * 9,
    "CloudWatch::Alarm": [{}] * 90 + [{"Metrics": [*[{"MetricStat": {}}] * 3, {"Expression": "a + b"}]}],
    "Lambda::EventSourceMapping": [{"MetricsConfig": {}}] * 2 + [{}] * 8,
    "CloudWatch::Dashboard": [{}] * 2,
    "KMS::Key": [{"EnableKeyRotation": True}] * 2 + [{}],
    "SecretsManager::Secret": [{}] * 4,
    "Lambda::Function": [{}, {"Environment": {"Variables": {"LINES": '{"mail": {}, "sms": {}}'}}}],
}
TEMPLATES = [
    {
        "Resources": {
            f"{at}": {"Type": f"AWS::{kind}", "Properties": each} for at, each in enumerate(resources)
        }
    }
    for kind, resources in RESOURCES.items()
]


def reckoned(queue: str = "mail", **changes: Any) -> dict[str, float]:
    """A million messages of prod, with other values of settings, by their sections."""
    paths = {f"{section}.{name}": value for section, of in changes.items() for name, value in of.items()}
    settings = load(with_settings(paths, "prod"), "prod")
    parts = message_parts(settings, lane_of(settings, queue))
    return {name: price * MILLION for name, price in parts.items()}


def month(ses_plan: str = "", **messages: int) -> Cost:
    settings = load(STAGES, "prod")
    loads = {lane_of(settings, queue): count for queue, count in messages.items()}
    return month_cost(settings, TEMPLATES, loads, ses_plan)


def test_the_cost_of_a_mail_is_three_writes_its_queue_its_function_and_ses() -> None:
    found = reckoned()
    # The function: a tenth of 0.20 and of 1 KB of logs at 0.50 a GB; 0.12955 s of 0.25 GB, and the rest of
    # the 2 workers / 7 a second.
    assert found["mailbox and ledger writes"] == pytest.approx(3 * 0.625)
    assert found["queue requests"] == pytest.approx((0.1 + 2 / 10) * 0.40)
    assert found["sender's time"] == pytest.approx(0.02 + 0.05 + 0.12955 * 0.25 * 13.3334, abs=1e-4)
    waiting = 2 / 7 - 0.12955
    assert found["sender's wait for its pace"] == pytest.approx(waiting * 0.25 * 13.3334, abs=1e-4)
    assert found["SES"] == 160  # of the plan of a new account


def test_the_cost_of_an_event_includes_its_topic_its_queue_its_function_and_a_write() -> None:
    # SNS 0.50, SQS 1.2 x 0.40, a hundredth of an invocation and its log, 0.02 s x 0.25 GB, a write.
    one = 0.50 + 0.48 + 0.007 + 0.02 * 0.25 * 13.3334 + 0.625
    assert reckoned()["provider's events"] == pytest.approx(2 * one, abs=1e-4)


@pytest.mark.parametrize(
    ("channel", "events", "provider"), [("mail", 2, {"mail": {"provider": "resend"}}), ("sms", 3, {})]
)
def test_events_of_twilio_and_resend_cost_calls_of_the_api_instead_of_a_topic(
    channel: str, events: int, provider: dict[str, Any]
) -> None:
    # The call: 1.00, an invocation of 0.05 s at 256 MB, and its log.
    call = 1.00 + 0.20 + 0.50 + 0.05 * 0.25 * 13.3334
    rest = 0.48 + 0.007 + 0.02 * 0.25 * 13.3334 + 0.625
    found = reckoned(channel, **provider)
    assert found["provider's events"] == pytest.approx(events * (call + rest), abs=1e-4)
    assert "SES" not in found


@pytest.mark.parametrize(("channel", "units"), [("sms", 4), ("fax", 4), ("webhook", 3)])
def test_the_cost_of_a_message_excludes_the_price_of_a_provider_other_than_ses(
    channel: str, units: int
) -> None:
    found = reckoned(channel)
    assert found.pop("mailbox and ledger writes") == pytest.approx(units * 0.625)
    ours = {"queue requests", "sender's time", "provider's events", "kept in tables", "search"}
    assert {*found} <= {*ours, "sender's wait for its pace"}


def test_an_event_bus_adds_the_cost_of_two_events_for_each_mail() -> None:
    assert "events on the bus" not in reckoned()
    assert reckoned(outcomes={"event_bus": "default"})["events on the bus"] == pytest.approx(2 * 1.00)


def test_the_cost_of_storage_depends_on_the_days_of_retention_and_on_backups() -> None:
    # Ledger (396 + 100) bytes x 90 days, mailbox (1,000 + 100) x 30, a month of 30.4, 0.25 + 0.20 a GB.
    a_month = (496 * 90 + 1_100 * 30) / 30.4 / 1000
    days: dict[str, Any] = {"retention": {"mailbox_days": 30}}
    bare: dict[str, Any] = {"deployment": {"point_in_time_recovery": False}}
    assert reckoned(**days)["kept in tables"] == pytest.approx(a_month * 0.45)
    assert reckoned(**days, **bare)["kept in tables"] == pytest.approx(a_month * 0.25)


def test_the_cost_of_storage_without_an_end_is_that_of_a_year() -> None:
    a_year = (496 * 90 + 1_100 * 365) / 30.4 * 0.45 / 1000
    assert reckoned()["kept in tables"] == pytest.approx(a_year)


def test_the_search_costs_a_read_and_three_rows_for_each_message() -> None:
    # A read 0.125; 3 rows, one of them of the template, each a write of 0.625 and 230 bytes kept for 90 days,
    # at 0.25 + 0.20 a GB.
    one = 0.125 + 3 * (0.625 + 230 * 90 / 30.4 * 0.45 / 1000)
    assert reckoned()["search"] == pytest.approx(one)


def test_the_cost_of_a_message_does_not_include_the_search_in_a_stage_without_search() -> None:
    without = load(with_settings({"search": False}, "prod"), "prod")
    assert "search" not in message_parts(without, lane_of(without, "mail"))


def test_a_stage_without_messages_costs_its_alarms_dashboards_keys_and_secrets() -> None:
    assert stage_cost.stage_parts(TEMPLATES) == {
        "alarms": pytest.approx(8.30),  # the first ten are free
        "dashboards": 0,  # the first three are free
        "metrics": pytest.approx(3 * 0.30),  # the first ten are free
        "polling of queues": pytest.approx((8 * 5 * 30.4 * 86_400 / 20 - MILLION) * 0.40 / MILLION),
        # Each minute release reads the names of the channels, and two lists of each of eight shards. Each of
        # two channels has three lists in eight shards, and a budget. A read of an empty list costs 0.125 / 2.
        "rounds of release": pytest.approx(
            30.4 * 1440 * ((1 + 8 * 2 + 2 * 3 * 8) * 0.125 / 2 + 2 * 0.125) / MILLION, abs=1e-5
        ),
        "keys": 3 + 2 * 2,  # two canaries with two rotations
        "secrets": pytest.approx(1.60),
    }
    sending = stage_cost.stage_parts(TEMPLATES, senders=2)
    assert sending["metrics"] == pytest.approx((12 + 1 + 2 * 4 + 4 - 10) * 0.30)


def test_the_total_cost_is_the_sum_of_its_parts() -> None:
    cost = month(mail=MILLION, sms=20_000, fax=500)
    parts = [cost.stage_parts, *(queue.parts for queue in cost.queues)]
    assert cost.dollars == pytest.approx(sum(sum(each.values()) for each in parts))
    assert sum(cost.queues[0].parts.values()) == pytest.approx(sum(reckoned().values()))


def test_the_plan_of_ses_changes_the_price_of_mails_but_not_of_texts() -> None:
    mail, sms = month("none", mail=MILLION, sms=MILLION).queues
    assert mail.parts["SES"] == 100
    assert sms == month(sms=MILLION).queues[0]


def test_the_monthly_cost_of_canaries_is_that_of_their_mails_and_metrics() -> None:
    settings = load(with_settings({"monitoring.canary": True}, "prod"), "prod")
    parts = month_cost(settings, TEMPLATES, {}).stage_parts
    of_a_mail = sum(reckoned().values()) / MILLION
    assert parts.pop("canaries") == pytest.approx(288 * 30.4 * of_a_mail + 0.30)
    # A mail counts the metrics of a sender, and those of sending.
    assert parts.pop("metrics") == pytest.approx(month().stage_parts["metrics"] + 8 * 0.30)
    assert parts.items() <= month().stage_parts.items()


def test_a_message_of_a_channel_without_a_price_costs_the_parts_that_every_message_has() -> None:
    chat = {"handler": "send_push", "messages_per_second": 1, "lanes": {"normal": {"share": 1}}}
    settings = load(with_settings({"channels.chat": chat}, "prod"), "prod")
    lane = lane_of(settings, "chat")
    assert message_parts(settings, lane)["mailbox and ledger writes"] == pytest.approx(3 * 0.625e-6)
    assert lane.descriptor.unpriced == "its price is not known here"
