"""What `plan` answers: the settings that would change it, what does not fit, and what it costs."""

from pathlib import Path
from typing import Any

import pytest

from ops.estimates.lanes import WAITING, WORKING, Assumed, Stages
from ops.estimates.stations import Load
from stacks.settings.load import load
from tests.support.ops.plan import CONTEXT, answered, context, dollars_of, dollars_unpaced, plan_of, planned


def test_where_the_rate_bounds_twice_the_rate_is_shown_and_what_that_does() -> None:
    (change,) = answered().changes
    assert (change.setting, change.now, change.then) == (
        "mailroom.dev.channels.mail.messages_per_second",
        14,
        28,
    )
    assert change.seconds == pytest.approx(answered(messages_per_second=28).seconds, abs=0.1)


def test_where_the_workers_bound_as_many_are_shown_as_the_rate_needs() -> None:
    change, _ = answered(messages_per_second=180).changes
    assert change.setting == "mailroom.dev.channels.mail.lanes.bulk.maximum_concurrency"
    # A mail takes 0.13 s at 256 MB, so ten and 0.1 s between two batches are 7.17 a second and worker.
    assert (change.now, change.then) == (4, 13)
    more = answered(messages_per_second=180, bulk={"maximum_concurrency": 13})
    assert more.bound == "rate"
    assert change.seconds == pytest.approx(more.seconds, abs=0.1)


def test_where_the_workers_bound_so_many_threads_are_shown_as_a_batch_has_messages() -> None:
    wide: dict[str, Any] = {"messages_per_second": 180, "memory_mb": 512}
    _, change = answered(**wide).changes
    assert (change.setting, change.now, change.then) == (
        "mailroom.dev.channels.mail.submits_at_once",
        1,
        10,
    )
    # 4 workers for 90 a second have gaps of 2 / 45 s: nine of them are 0.4 s. The last of ten mails that
    # share 512 MB takes 0.178 s, and 0.1 s passes in between.
    latency = planned(**wide, submits_at_once=10).latency
    assert latency == pytest.approx(0.178, abs=0.0005)
    assert change.seconds == pytest.approx(100_000 * (0.4 + latency + 0.1) / 40, abs=0.1)
    assert change.seconds == pytest.approx(answered(**wide, submits_at_once=10).seconds, abs=0.1)


def test_threads_that_the_memory_has_no_room_for_are_shown_with_what_they_need() -> None:
    _, change = answered(messages_per_second=180).changes
    assert (change.setting.rpartition(".")[2], change.then, change.seconds) == ("submits_at_once", 10, None)
    # 220, 34 for attachments, 9 x 16.
    assert change.forbidden.startswith(
        "mailroom.dev.channels.mail.memory_mb: 256 does not hold the largest message; use 398 or more"
    )


def test_threads_are_not_named_where_a_batch_has_no_work_for_more() -> None:
    full = answered(messages_per_second=2000, memory_mb=512, submits_at_once=10)
    assert [each.setting.rpartition(".")[2] for each in full.changes] == ["maximum_concurrency"]


def test_threads_are_not_named_where_most_time_passes_between_invocations() -> None:
    quick = answered(messages_per_second=2000, memory_mb=512, assumed=Assumed(0.001, 1, 0))
    assert [each.setting.rpartition(".")[2] for each in quick.changes] == ["maximum_concurrency"]


def test_threads_are_not_named_where_they_would_wait_for_the_vcpu() -> None:
    busy = answered(messages_per_second=2000, memory_mb=512, assumed=Assumed(0.1, 0.1, 0.09))
    assert [each.setting.rpartition(".")[2] for each in busy.changes] == ["maximum_concurrency"]


def test_a_small_batch_is_named_where_a_larger_one_helps() -> None:
    slow = answered(messages_per_second=2000, assumed=Assumed(0.1, 0.5, 0), bulk={"batch_size": 2})
    assert [(each.setting.rpartition(".")[2], each.then) for each in slow.changes] == [
        ("maximum_concurrency", 350),
        ("submits_at_once", 2),
        ("batch_size", 10),
    ]
    assert slow.changes[2].seconds is not None
    assert slow.changes[2].seconds < slow.seconds / 2
    quick = answered(messages_per_second=2000, assumed=Assumed(1, 0.01, 0), bulk={"batch_size": 2})
    assert [each.setting.rpartition(".")[2] for each in quick.changes] == [
        "maximum_concurrency",
        "submits_at_once",
    ]


def test_a_change_that_the_stages_rules_forbid_is_shown_with_their_sentence() -> None:
    slow = answered(
        messages_per_second=4, assumed=Assumed(20, 0.1, 0), bulk={"batch_size": 1}, timeout_seconds=30
    )
    change = slow.changes[0]
    assert (change.then, change.seconds) == (41, None)
    assert change.forbidden.startswith("mailroom.dev.channels.mail.lanes.bulk.batch_size: 1 x 20.5 s between")


def test_more_than_a_queue_keeps_is_warned_of_with_what_fits() -> None:
    many, plan = answered(10_000_000), planned(10_000_000)
    settings = load(CONTEXT, "dev")
    (row,) = (each for each in settings.lane_rows() if each.lane == "bulk")
    most = int((4 * 86_400 - row.rules.longest_stay) * plan.speed)
    days = plan.ramp.time_of(10_000_000) / 86_400
    assert many.warning == (
        f"Too many at once: the last message would wait for {days:.1f} days in the queue "
        "mail-bulk, which keeps messages for 4 (mailroom.dev.retention.queue_days), a part of it for "
        f"retries; after that SQS deletes them silently. At most {most:,} fit."
    )
    assert answered(most).warning == ""
    assert answered(most + 1).warning


def _with_campaigns(folder: Path, **concurrency: int) -> dict[str, Any]:
    """CONTEXT's stage, which may send faster than its campaigns put; not all of them are enabled."""
    for name, number in {**concurrency, "off": 2}.items():
        (folder / name).mkdir()
        (folder / name / "campaign.toml").write_text(
            f'channel = "mail"\nconcurrency = {number}\n[audience]\nkind = "module"\n'
        )
    fast = context(messages_per_second=2000, bulk={"maximum_concurrency": 50})
    fast["dev"]["campaigns"] = {"enabled": [*concurrency]}
    return fast


def test_composing_is_as_fast_as_the_smallest_concurrency_of_the_stages_campaigns(tmp_path: Path) -> None:
    campaigns = _with_campaigns(tmp_path, large=9, small=7)
    planned = plan_of(Stages(campaigns, tmp_path), Load(1))
    assert planned.bounds["compose"] == pytest.approx(350)
    campaigns["dev"]["campaigns"]["overrides"] = {"large": {"concurrency": 3}}
    assert plan_of(Stages(campaigns, tmp_path), Load(1)).bounds["compose"] == pytest.approx(150)


def test_composing_bounds_a_campaign_that_is_put_more_slowly_than_it_could_be_sent(tmp_path: Path) -> None:
    stages = Stages(_with_campaigns(tmp_path, small=3), tmp_path)
    planned = plan_of(stages, Load(100_000))
    assert (planned.bound, planned.next_bound) == ("compose", "workers")
    assert planned.seconds == pytest.approx(100_000 / 150, abs=0.1)
    assert planned.limits["compose"] == "the smallest concurrency of the enabled campaigns"
    assert "compose" not in plan_of(stages, Load(100_000), lane="normal").bounds


def test_nothing_is_composed_where_no_campaign_is_enabled() -> None:
    assert "compose" not in answered().bounds


def test_a_plan_for_campaigns_says_that_composing_is_not_in_its_cost() -> None:
    assert any("Composing itself is not in the cost" in note for note in answered().notes)


def test_nothing_is_said_of_campaigns_where_none_are_sent() -> None:
    normal = answered(1, lane="normal")
    assert not any("ompos" in note for note in normal.notes)


def test_a_million_mails_cost_what_their_calls_cost() -> None:
    # A sender of 0.1 s without a pace.
    found = dollars_unpaced("mail")
    assert found.pop("reads of who may get nothing") == pytest.approx(0.0625)
    assert {name: round(price, 2) for name, price in found.items()} == {
        "mailbox and ledger writes": 1.88,
        "queue requests": 0.12,
        "invocations": 0.02,
        "sender's time": 0.33,
        "SES": 100.0,
    }
    assert round(sum(found.values()) - found["SES"], 2) == 2.35


def test_waiting_for_the_pace_is_paid_for_beside_the_work() -> None:
    found = dollars_of()
    both = 100_000 * (4 / 7) * 0.25 * 0.0000133334  # a gap each
    assert found[WORKING] == pytest.approx(100_000 * (0.095 + 0.005 * 1769 / 256) * 0.25 * 0.0000133334)
    assert found[WORKING] + found[WAITING] == pytest.approx(both)


def test_where_the_wait_costs_more_than_the_work_fewer_workers_are_named() -> None:
    pace = answered().pace
    fewer = answered(bulk={"maximum_concurrency": 2}).pace
    assert pace is not None
    assert fewer is not None
    assert pace.setting == "mailroom.dev.channels.mail.lanes.bulk.maximum_concurrency"
    assert (pace.now, pace.then, pace.waiting_then) == (4, 2, fewer.waiting)
    assert pace.waiting == pytest.approx(dollars_of(1_000_000)[WAITING], abs=1e-4)
    assert pace.working == pytest.approx(dollars_of(1_000_000)[WORKING], abs=1e-4)


def test_where_fewer_workers_are_not_possible_the_rest_of_the_rate_is_named() -> None:
    pace = answered(bulk={"maximum_concurrency": 2, "share": 0.2}).pace
    more = answered(bulk={"maximum_concurrency": 2, "share": 0.5}).pace
    assert pace is not None
    assert more is not None
    assert (pace.setting.rpartition(".")[2], pace.now, pace.then) == ("share", 0.2, 0.5)
    assert pace.waiting_then == more.waiting
    assert more.setting == ""
    assert more.waiting > more.working


def test_where_the_provider_takes_longer_than_the_pace_nothing_is_said_of_it() -> None:
    assert answered(messages_per_second=28, bulk={"maximum_concurrency": 2}).pace is None


def test_twice_the_messages_cost_twice_as_much() -> None:
    one, two = dollars_of(1000), dollars_of(2000)
    assert two == {name: pytest.approx(2 * price) for name, price in one.items()}


def test_small_batches_cost_requests_and_invocations() -> None:
    ten, one = (dollars_unpaced("mail", batch) for batch in (10, 1))
    assert ten["queue requests"] == pytest.approx((0.1 + 0.2) * 0.4)
    assert one["queue requests"] == pytest.approx((0.1 + 2) * 0.4)
    assert one["invocations"] == pytest.approx((0.01 + 1) * 0.2)


def test_bulk_mails_are_looked_up_in_peoples_choices_as_well() -> None:
    normal = dollars_of(1_000_000, lane="normal")
    reads = "reads of who may get nothing"
    assert dollars_of(1_000_000)[reads] == pytest.approx(2 * normal[reads])


@pytest.mark.parametrize(("channel", "units"), [("sms", 4), ("fax", 4), ("webhook", 3)])
def test_what_others_take_is_not_guessed(channel: str, units: int) -> None:
    found = dollars_unpaced(channel)
    assert ("reads of who may get nothing" in found) is (channel == "sms")
    found.pop("reads of who may get nothing", None)
    assert found.keys() == {"mailbox and ledger writes", "queue requests", "invocations", "sender's time"}
    assert found["mailbox and ledger writes"] == pytest.approx(units * 0.625)
    assert found["queue requests"] == pytest.approx(0.3 * (0.5 if channel == "fax" else 0.4))
