"""What a month costs: formulas against examples that were reckoned by hand, in dollars a million."""

import copy
from typing import Any

import pytest
from msgspec import structs

from mailroom_ops.cost import fixed
from mailroom_ops.cost.answer import Cost, WantedMessages, cost
from mailroom_ops.cost.parts import (
    MessagePath,
    callbacks_cost,
    composing_cost,
    events_cost,
    parts,
    pdf_cost,
    request_parts,
    storage_cost,
)
from mailroom_ops.estimates.forecast import Sending, wait_price
from mailroom_ops.estimates.lanes import Assumed, Stages
from mailroom_stacks.settings.load import load
from tests.support.stacks.refusals import STAGES

MILLION = 1_000_000
CONTEXT: dict[str, Any] = STAGES
NOTHING = fixed.Resources(*[0] * 10)


def around(channel: str, lane: str = "normal", stage: str = "prod", **changes: Any) -> MessagePath:
    context = copy.deepcopy(CONTEXT)
    for section, values in changes.items():
        context[stage].setdefault(section, {}).update(values)
    return MessagePath(load(context, stage), Stages(context).lane(stage, channel, lane))


def reckoned(*wanted: WantedMessages, stage: str = "prod", **options: Any) -> Cost:
    return cost(Stages.of(), stage, wanted, NOTHING, **options)


@pytest.mark.parametrize("stage", ["dev", "prod", "local"])
@pytest.mark.parametrize(
    ("channel", "lane"),
    [("mail", "normal"), ("mail", "bulk"), ("sms", "normal"), ("fax", "normal"), ("webhook", "normal")],
)
def test_sending_costs_what_a_plan_says(stage: str, channel: str, lane: str) -> None:
    stages = Stages.of()
    found = stages.lane(stage, channel, lane)
    plan = Sending(found, Assumed.of(channel)).dollars(MILLION)
    (said,) = reckoned(WantedMessages(channel, MILLION, lane), stage=stage).channels
    assert plan
    assert {name: said.parts[name] for name in plan} == {name: round(each, 4) for name, each in plan.items()}


def test_the_events_of_a_mail() -> None:
    # Two events, each: SNS 0.50, SQS 1.2 x 0.40, 0.57 writes x 0.625, a hundredth of 0.20 for an invocation,
    # 0.02 s x 0.25 GB x 13.3334 a GB-second.
    one = 0.50 + 0.48 + 0.35625 + 0.002 + 0.066667
    assert events_cost(around("mail")) * MILLION == pytest.approx(2 * one, abs=1e-5)


def test_a_mail_by_resend_has_no_price_of_ses_and_its_events_come_by_calls_of_the_api() -> None:
    context = copy.deepcopy(CONTEXT)
    context["prod"]["mail"]["provider"] = "resend"
    (said,) = cost(Stages(context), "prod", [WantedMessages("mail", MILLION)], NOTHING).channels
    assert "SES" not in said.parts
    assert said.not_included == "Resend's differs by plan"
    # Each: the API 1.00, an invocation 0.20, 0.05 s x 0.25 GB x 13.3334; the queue and the write as ever.
    of_api = 1.00 + 0.20 + 0.166667
    by_resend = around("mail", mail={"provider": "resend"})
    by_ses = events_cost(around("mail")) * MILLION
    assert events_cost(by_resend) * MILLION == pytest.approx(by_ses - 2 * 0.50 + 2 * of_api, abs=1e-5)


def test_a_bus_costs_an_event_for_each_outcome_and_the_function_that_puts_it() -> None:
    assert "events on the bus" not in parts(around("mail"))
    mail = around("mail", outcomes={"event_bus": "default"})
    # Sent and delivered, each: 1.00, a hundredth of 0.20, 0.002 s x 0.25 GB x 13.3334.
    assert parts(mail)["events on the bus"] * MILLION == pytest.approx(2 * (1 + 0.002 + 0.006667), abs=1e-5)
    with_callback = MessagePath(mail.settings, mail.lane, has_callback=True)
    assert parts(with_callback)["events on the bus"] * MILLION == pytest.approx(2)


def test_events_of_a_campaign_are_written_one_by_one() -> None:
    more = 2 * (0.99 - 0.57) * 0.625
    assert (events_cost(around("mail", "bulk")) - events_cost(around("mail"))) * MILLION == pytest.approx(
        more
    )


def test_twilio_calls_the_api_where_aws_publishes_to_a_topic() -> None:
    # The call: 1.00 and an invocation of 0.05 s at 256 MB; then as a mail's event, apart.
    call = 1.00 + 0.20 + 0.05 * 0.25 * 13.3334
    rest = 0.48 + 0.99 * 0.625 + 0.002 + 0.066667
    assert events_cost(around("sms")) * MILLION == pytest.approx(3 * (call + rest), abs=1e-5)
    aws = around("sms", sms={"provider": "aws", "sender": "MYSHOP"})
    assert events_cost(aws) * MILLION == pytest.approx(3 * (0.50 + rest), abs=1e-5)


@pytest.mark.parametrize("channel", ["fax", "webhook"])
def test_of_faxes_and_webhooks_nothing_is_told(channel: str) -> None:
    assert events_cost(around(channel)) == 0
    assert "what the provider tells" not in parts(around(channel))


def test_what_is_kept_is_paid_for_by_the_days_with_its_backups() -> None:
    # Ledger (396 + 100) bytes x 90 days, mailbox (1,000 + 100) x 30, a month of 30.4, 0.25 + 0.20 a GB.
    month = (496 * 90 + 1_100 * 30) / 30.4 / 1e9
    days = {"log_days": 90, "mailbox_days": 30}
    assert storage_cost(around("mail", retention=days)) == pytest.approx(month * 0.45)
    bare = around("mail", retention=days, deployment={"point_in_time_recovery": False})
    assert storage_cost(bare) == pytest.approx(month * 0.25)


def test_search_is_two_rows_a_read_and_its_part_of_an_invocation() -> None:
    # 2 writes x 0.625, a read 0.125, a hundredth of 0.20, 0.002 s x 0.25 GB x 13.3334 a GB-second; kept:
    # 2 rows of 130 + 100 bytes for 90 days of a month of 30.4, at 0.25 + 0.20 a GB.
    kept = 2 * 230 * 90 / 30.4 * 0.45 / 1000
    one = 2 * 0.625 + 0.125 + 0.002 + 0.006667 + kept
    assert parts(around("mail"))["search"] * MILLION == pytest.approx(one, abs=1e-5)
    without = copy.deepcopy(CONTEXT) | {"prod": {**CONTEXT["prod"], "search": False}}
    path = MessagePath(load(without, "prod"), Stages(without).lane("prod", "mail", "normal"))
    assert "search" not in parts(path)
    found, off = fixed.of_settings(around("mail").settings), fixed.of_settings(path.settings)
    assert (found.functions - off.functions, found.secrets - off.secrets) == (1, 1)
    assert (found.alarm_metrics - off.alarm_metrics, found.mapping_metrics - off.mapping_metrics) == (6, 6)


def test_what_is_kept_for_ever_is_counted_as_a_years() -> None:
    assert storage_cost(around("mail")) * MILLION == pytest.approx(
        (496 * 90 + 1_100 * 365) / 30.4 * 0.45 / 1000
    )
    assert any("for ever (counted: a year of it)" in each for each in reckoned().assumptions)


def test_a_callback_is_an_invocation_a_few_requests_and_a_write() -> None:
    # Outcomes 0.01 x 0.20 and 0.002 s; SQS 2.1 x 0.40; the sender 0.20 and 0.3 s; a write 0.625.
    one = 0.002 + 0.002 * 0.25 * 13.3334 + 0.84 + 0.20 + 0.3 * 0.25 * 13.3334 + 0.625
    assert callbacks_cost(around("webhook")) * MILLION == pytest.approx(one, abs=1e-5)
    assert callbacks_cost(around("mail")) * MILLION == pytest.approx(2 * one, abs=1e-5)


def test_callbacks_cost_only_where_messages_have_them() -> None:
    wanted = WantedMessages("mail", 1000)
    without, with_ = (reckoned(wanted, callbacks=each).channels[0] for each in (False, True))
    assert "callbacks" not in without.parts
    assert with_.parts["callbacks"] == pytest.approx(1000 * callbacks_cost(around("mail")), abs=1e-4)
    assert with_.parts["logs"] > without.parts["logs"]


def test_composing_costs_its_share_of_a_chunk_beside_the_put() -> None:
    # Reads 1.02 x 0.5 x 0.125, writes 0.02 x 0.625, SQS (0.002 + 0.04) x 0.40, invocations 0.02 x 0.20,
    # 0.02 s at 512 MB.
    one = 0.06375 + 0.0125 + 0.0168 + 0.004 + 0.02 * 0.5 * 13.3334
    assert composing_cost(around("mail", "bulk")) * MILLION == pytest.approx(one, abs=1e-5)
    assert "composing" not in parts(around("mail"))


def test_a_faxs_pdf_is_put_fetched_and_kept() -> None:
    # 100 KB: 5.00 to put, 2 x 0.40 to look and fetch, 0.09 a GB out, 0.023 a GB and month for 90 days.
    gb = 0.0001
    by_hand = 5.00 + 0.80 + gb * MILLION * (0.09 + 0.023 * 90 / 30.4)
    assert pdf_cost(Stages.of().settings("prod")) * MILLION == pytest.approx(by_hand)
    assert "PDFs" not in parts(around("mail"))


def test_a_request_of_the_api_beside_its_message() -> None:
    found = {name: price * MILLION for name, price in request_parts(Stages.of().settings("prod")).items()}
    assert found == {
        "HTTP API": pytest.approx(1.00),
        "invocations": pytest.approx(0.20),
        "function's time": pytest.approx(0.05 * 0.5 * 13.3334),
        "logs": pytest.approx(0.50 + 0.03 * 90 / 30.4),
    }
    said = reckoned(WantedMessages("mail", 10), requests=MILLION)
    assert [each.channel for each in said.channels] == ["mail", "api"]


def test_a_stage_that_sends_nothing_costs_what_it_is_made_of() -> None:
    resources = fixed.Resources(8, 1, 14, 93, 12, 1, 3, 2, 4, 9)
    polls = 5 * 30.4 * 86_400 / 20
    assert fixed.dollars(resources, 0) == {
        "alarms": pytest.approx(8.30),
        "dashboard": 3,
        "custom metrics": 0.30,
        "metrics of mappings": pytest.approx(3.60),
        "polling of queues": pytest.approx(polls * (7 * 0.40 + 0.50) / MILLION),
        # Each minute nine invocations of 0.05 s with 512 MB, their logs, two writes each; of one line an item
        # is read, a queue's depth, and eight shards of the line beside the eight of what is due.
        "rounds of release": pytest.approx(
            30.4 * 1440 * (9 * (0.20 + 0.05 * 0.5 * 13.3334 + 0.5 + 2 * 0.625) + 9 * 0.125 + 0.40) / MILLION,
            abs=1e-5,
        ),
        "keys": 3,
        "rotation of keys": 4,
        "secrets": pytest.approx(1.60),
    }
    assert fixed.dollars(resources, 2)["custom metrics"] == pytest.approx((2 * 4 + 3 + 1) * 0.30)


def test_the_first_ten_alarms_are_free() -> None:
    assert fixed.dollars(structs.replace(NOTHING, alarm_metrics=10), 0)["alarms"] == 0


def test_all_is_the_sum_of_its_parts() -> None:
    said = cost(
        Stages.of(),
        "prod",
        [WantedMessages("mail", MILLION), WantedMessages("sms", 20_000), WantedMessages("fax", 500)],
        fixed.of_settings(Stages.of().settings("prod")),
        requests=1000,
    )
    for each in said.channels:
        assert each.dollars == pytest.approx(sum(each.parts.values()), abs=0.001)
        assert each.dollars_per_1000 == pytest.approx(each.dollars / each.messages * 1000, abs=1e-3)
    assert said.fixed.dollars == pytest.approx(sum(said.fixed.parts.values()), abs=0.001)
    assert said.dollars == pytest.approx(sum(each.dollars for each in said.channels) + said.fixed.dollars)
    assert said.dollars_per_1000 == pytest.approx(said.dollars / 1_020_500 * 1000, abs=1e-4)


@pytest.mark.parametrize(
    ("content_kb", "beside"),
    [
        (0, 0.0),
        # The content written and deleted; sent, received and deleted once more, in an invocation more of ten.
        (1, 2 * 0.625 + (0.1 + 2 / 10) * 0.40 + 0.20 / 10),
        (3, 6 * 0.625 + (0.1 + 2 / 10) * 0.40 + 0.20 / 10),
    ],
)
def test_a_wait_is_four_writes_a_read_and_what_its_content_takes(content_kb: int, beside: float) -> None:
    # Held and handed over, each an item and its entry in the index; 0.010 s with 512 MB.
    one = 4 * 0.625 + 0.125 + 0.010 * 0.5 * 13.3334 + beside
    lane = Stages(CONTEXT).lane("prod", "mail", "bulk")
    assert lane.batch == 10
    assert wait_price(lane, content_kb) * MILLION == pytest.approx(one, abs=1e-5)


def test_what_providers_take_is_not_guessed() -> None:
    found = reckoned(WantedMessages("mail", 1), WantedMessages("sms", 1)).channels
    missing = {each.channel: each.not_included for each in found}
    assert missing["mail"] == ""
    assert "country" in missing["sms"]


def test_messages_that_come_alone_cost_more_than_full_batches() -> None:
    # 0.9 of an invocation and 1.8 requests. The function's time is the same: a gap of 2 / 7 s a mail, in
    # which the mail's own 0.1 s pass.
    more = 0.9 * 0.20 + 1.8 * 0.40
    assert reckoned(WantedMessages("mail", MILLION)).alone == pytest.approx(more, abs=1e-3)
    assert reckoned(WantedMessages("fax", MILLION)).alone == 0


def test_a_channel_that_has_no_row_costs_what_every_message_does() -> None:
    context = copy.deepcopy(CONTEXT)
    context["prod"]["channels"]["chat"] = {
        "handler": "send_push",
        "messages_per_second": 1,
        "lanes": {"normal": {"share": 1}},
    }
    (said,) = cost(Stages(context), "prod", [WantedMessages("chat", MILLION)], NOTHING).channels
    assert said.parts["mailbox and ledger writes"] == pytest.approx(3 * 0.625)
    assert said.not_included == "its price is not known here"
