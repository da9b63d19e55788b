"""What should hold about stops, pauses and waits. Copy into tests/faults of a set-up clone, and run by pytest."""

from collections import Counter
from typing import Any
import json
import pytest
from mailroom.clock import iso, epoch
from mailroom.message.message import Key
from mailroom.dispatch.release import Release
from mailroom.environment import LineSettings
from tests.support.faults import repairs
from tests.support.faults.outside import Stopped
from tests.support.faults.stop_world import StopWorld
from tests.support.faults.world import BULK, MAIL, World, mail

DAY = 86400


def test_a_mail_that_an_operator_resends_before_its_send_at_still_waits_for_it():
    w = World()
    at = w.clock.now + 2 * DAY
    w.put(mail("a", send_at=iso(at)))
    w.stream()
    assert w._feedback.cancel(Key("a", "mail"))
    print(repairs.resend(repairs.of_mail(w), "a", force=True))
    w.settle()
    print("sent at", [t - w.put_at for t in w.ses.times], w.end("a"))
    assert all(t >= at for t in w.ses.times)


def test_bulk_with_send_at_resent_waits():
    w = World()
    at = w.clock.now + 2 * DAY
    w.put(mail("a", send_at=iso(at), lane="bulk"))
    w.stream()
    assert w._feedback.cancel(Key("a", "mail"))
    repairs.resend(repairs.of_mail(w), "a", force=True)
    w.settle()
    print("sent at", [t - w.put_at for t in w.ses.times], w.end("a"))
    assert all(t >= at for t in w.ses.times)


@pytest.mark.parametrize("kind", ["line", "paused-like", "window", "send_at"])
def test_rows_of_a_removed_channel_end(kind):
    """sms is taken out of the stage while its messages wait."""
    from mailroom.ledger.waits import Wait, DAY_USED_UP, OUTSIDE_WINDOW, SEND_AT, PAUSED
    from mailroom.channels.contracts import CONTRACTS
    from mailroom.message.message import parse, encode
    from mailroom.ledger.contents import Held

    w = World()
    item = {"id": "t", "event_type": "sms", "to": "+16175551234", "text": "x", "lane": "bulk"}
    if kind == "paused-like":
        item["id"] = f"weekly#r#k#{0:08x}{1:032x}"
    m = parse(item, CONTRACTS)
    reason = {"line": DAY_USED_UP, "paused-like": PAUSED, "window": OUTSIDE_WINDOW, "send_at": SEND_AT}[kind]
    v = "v1"
    w.contents.put([(Held(m.key, v), encode(item))])
    assert w.waits.hold(
        [Wait(m, reason, w.clock.now + 60, v, w.clock.now, None, lines_up=kind == "line")]
    ) == [True]
    if kind == "send_at":
        w.put(item)
    for _ in range(200):
        w.clock.now += 3600
        for p in [f"due#{n}" for n in range(8)] + ["line#mail"]:
            w.round(p)
    f = w.dynamodb.get_item(TableName="ledger", Key={"id": {"S": item["id"]}, "event_type": {"S": "sms"}})[
        "Item"
    ]
    print(kind, f["status"], f.get("waits_in"), f.get("error"))
    assert "completedAt" in f


def test_a_stop_of_a_paused_run_costs_no_read_per_message():
    w = StopWorld(200, per_day=10**6)
    w.begin()
    for _ in range(60):
        w.play()
        if w.campaign.run().state != "collecting":
            break
    w.pause()
    w.clock.now += 6
    for _ in range(400):
        d = w.next_due()
        w.clock.now = max(w.clock.now, d if d is not None else 0)
        w.dispatch()
        w.campaign.deliver("https://sqs/collect", 1)
        w.campaign.deliver("https://sqs/audience")
        w.dispatch()
        w.deliver(BULK)
        if w.parts() and all(p == "line#mail" for p in w.parts()) and not w.queues.messages[BULK]:
            break
    paused = [
        i
        for i in w.dynamodb.tables["ledger"].items.values()
        if i.get("waits_in", {"S": ""})["S"].startswith("paused")
    ]
    print("paused", len(paused))
    w.stop()
    w.clock.now += 6
    before = len(w.outside.calls)
    w.release()
    calls = Counter(w.outside.calls[before:])
    print(
        "calls of one round after the stop",
        calls,
        Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()),
    )
    assert calls["batch_get_item"] < 30


def test_a_stale_chunk_of_the_stopped_start_does_not_win_over_the_restart():
    from tests.support.faults.campaign_world import COLLECT, AUDIENCE, Recipient, Found

    w = StopWorld(3)
    w.begin()
    w.campaign.deliver(COLLECT, 1)  # the chunk with the old data is queued
    recs = w.campaign.queues.receive(AUDIENCE)  # a composer takes it, and dies (time-out of its database)
    assert recs
    w.stop()
    people = w.campaign.people
    real = people.page

    def corrected(page):
        f = real(page)
        return Found(
            [Recipient(r.key, {**r.attributes, "first_name": "Corrected"}) for r in f.recipients],
            f.cursor,
            f.faults,
        )

    people.page = corrected
    w.clock.now += 120
    w.begin()  # the audience is corrected, the run is started again
    w.campaign.deliver(COLLECT, 1)
    print(w.campaign.run().state, w.campaign.run().next_page)
    for m in w.campaign.queues.messages[AUDIENCE]:
        m.visible_at = w.clock.now
    w.campaign.deliver(AUDIENCE)  # the old chunk is delivered again, right after the restart
    w.dispatch()
    for _ in range(300):
        if not w.play():
            break
    texts = [
        m["Content"]["Simple"]["Subject"]["Data"] + json.dumps(m["Content"]["Simple"]["Body"])
        for m in w.ses.accepted
    ]
    print(
        len(texts),
        sum("Ada" in t for t in texts),
        sum("Corrected" in t for t in texts),
        w.campaign.run().conflicts,
    )
    assert not any("Ada" in t for t in texts)


def _corrected(w, drop=()):
    from tests.support.faults.campaign_world import Recipient, Found

    people = w.campaign.people
    real = people.page

    def corrected(page):
        f = real(page)
        return Found(
            [
                Recipient(r.key, {**r.attributes, "first_name": "Corrected"})
                for r in f.recipients
                if r.key not in drop
            ],
            f.cursor,
            f.faults,
        )

    people.page = corrected


def _texts(w):
    t = [json.dumps(m["Content"]["Simple"]) for m in w.ses.accepted]
    return sum("Ada" in x for x in t), sum("Corrected" in x for x in t)


def test_stop_correct_start_sends_no_old_content_of_a_long_queue():
    from tests.support.faults.campaign_world import COLLECT, AUDIENCE

    w = StopWorld(300)
    w.begin()
    for _ in range(40):
        w.campaign.deliver(COLLECT, 1)
        w.campaign.deliver(AUDIENCE)
        w.dispatch()
        if w.campaign.run().state == "collected" and not w.queues.messages[AUDIENCE]:
            break
    print("queued", len(w.queues.messages[BULK]))
    w.stop()
    sent = len(w.ses.accepted)
    print("sent before the stop", sent)
    _corrected(w)
    for _ in range(10):
        w.deliver(BULK)  # the lane cancels 100 of them meanwhile
    w.clock.now += 61  # "Wait a minute after a stop"
    w.begin()
    for _ in range(3000):
        if not w.play():
            break
    print(
        "old, corrected content sent:",
        _texts(w),
        "conflicts",
        w.campaign.run().conflicts,
        Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()),
    )
    assert _texts(w)[0] == 0


@pytest.mark.parametrize("where", ["queue", "window"])
def test_stop_correct_audience_start_sends_nothing_to_those_taken_out(where):
    from tests.support.faults.campaign_world import COLLECT, AUDIENCE

    w = StopWorld(60)
    if where == "window":
        from msgspec.structs import replace

        h = int(w.clock.now % DAY // 3600)
        w.campaign.definition = replace(
            w.campaign.definition,
            attributes={
                **w.campaign.definition.attributes,
                "window": {"from": f"{(h + 3) % 24:02}:00", "to": f"{(h + 6) % 24:02}:00", "zone": "UTC"},
            },
        )
    w.begin()
    for _ in range(40):
        w.campaign.deliver(COLLECT, 1)
        w.campaign.deliver(AUDIENCE)
        w.dispatch()
        if where == "window":
            w.deliver(BULK)
        if w.campaign.run().state == "collected" and not w.queues.messages[AUDIENCE]:
            break
    for _ in range(10 if where == "window" else 0):
        w.deliver(BULK)
    print(
        len(w.queues.messages[BULK]),
        Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()),
    )
    w.stop()
    drop = {f"p{n}" for n in range(30, 60)}
    _corrected(w, drop)
    for _ in range(1):
        w.deliver(BULK)
    w.clock.now += 61
    w.begin()
    for _ in range(3000):
        if not w.play():
            break
    got = [m["Destination"]["ToAddresses"][0].partition("@")[0] for m in w.ses.accepted]
    print(
        "sent",
        len(got),
        "of those taken out of the audience",
        len(drop & {*got}),
        _texts(w),
        w.campaign.run().conflicts,
    )
    assert not drop & {*got}


def test_pause_for_a_wrong_link_then_start_again_sends_the_corrected_content():
    """run-a-campaign.md: "pause … --why 'wrong link'"; "A stop or a restart ends the pause"."""
    from tests.support.faults.campaign_world import COLLECT, AUDIENCE

    w = StopWorld(40)
    w.begin()
    for _ in range(40):
        w.campaign.deliver(COLLECT, 1)
        w.campaign.deliver(AUDIENCE)
        w.dispatch()
        if w.campaign.run().state == "collected" and not w.queues.messages[AUDIENCE]:
            break
    w.pause()
    w.clock.now += 6
    for _ in range(6):
        w.deliver(BULK)
    print(
        Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()),
        "sent",
        len(w.ses.accepted),
    )
    _corrected(w)
    w.clock.now += 61
    w.begin()
    for _ in range(2000):
        if not w.play():
            break
    print("old, corrected:", _texts(w), "conflicts", w.campaign.run().conflicts)
    assert _texts(w)[0] == 0


def test_contents_are_deleted_when_a_message_has_been_held_twice():
    """A copy of a waiting bulk message comes (SQS delivers twice; repair): the second hold replaces the mark; is the first content deleted?"""
    w = World()
    h = int(w.clock.now % DAY // 3600)
    m = mail("a", window={"from": f"{(h + 2) % 24:02}:00", "to": f"{(h + 4) % 24:02}:00", "zone": "UTC"})
    w.put(m)
    w.enqueue(m, m)
    w.deliver()
    w.deliver()
    print("contents while it waits", len(w.dynamodb.tables["contents"].items))
    w.settle()
    print(w.end("a"), "contents left", len(w.dynamodb.tables["contents"].items))
    assert not w.dynamodb.tables["contents"].items


@pytest.mark.parametrize("act", ["stop", "pause"])
def test_last_campaign_removed_after_its_run_was_stopped_sends_nothing_more(act):
    """run-a-campaign.md, Removing a campaign: "Before you remove the last one, stop its runs. Then deploy"."""
    from tests.support.faults.campaign_world import COLLECT, AUDIENCE

    w = StopWorld(60, per_day=20)  # 10 a day for bulk: the others wait for the day
    w.begin()
    for _ in range(60):
        w.campaign.deliver(COLLECT, 1)
        w.campaign.deliver(AUDIENCE)
        w.dispatch()
        w.deliver(BULK)
        if (
            w.campaign.run().state == "collected"
            and not w.queues.messages[AUDIENCE]
            and not w.queues.messages[BULK]
        ):
            break
        w.clock.now += 60
    n = len(w.ses.accepted)
    print("sent before", n, Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()))
    getattr(w, act)()
    w.clock.now += 30
    w.runs_table = ""  # the deployment without campaigns
    for _ in range(4000):
        if not w.play():
            break
    print(
        act,
        "sent afterwards",
        len(w.ses.accepted) - n,
        Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()),
    )
    assert len(w.ses.accepted) == n


@pytest.mark.parametrize("act", ["stop", "pause"])
def test_a_stopped_run_outlives_its_waiting_messages(act):
    """The run's item expires `ledger_days` after collect or compose wrote it last (campaigns.py:98,167; stop and pause do not extend it). A send_at may be a year ahead."""
    from tests.support.faults.campaign_world import COLLECT, AUDIENCE
    from msgspec.structs import replace

    w = StopWorld(12)
    at = w.clock.now + 120 * DAY
    w.campaign.definition = replace(
        w.campaign.definition, attributes={**w.campaign.definition.attributes, "send_at": iso(at)}
    )
    w.begin()
    for _ in range(40):
        w.campaign.deliver(COLLECT, 1)
        w.campaign.deliver(AUDIENCE)
        w.dispatch()
        if w.campaign.run().state == "collected" and not w.queues.messages[AUDIENCE]:
            break
    print(Counter(i["status"]["S"] for i in w.dynamodb.tables["ledger"].items.values()))
    getattr(w, act)()
    item = [*w.dynamodb.tables["runs"].items.values()][0]
    print(
        "run's ttl",
        item.get("ttl"),
        (float(item["ttl"]["N"]) - w.clock.now) / DAY if "ttl" in item else "none",
    )
    w.clock.now += 91 * DAY
    w.dynamodb.tables["runs"].items.clear()  # DynamoDB's TTL
    for _ in range(400):
        if not w.play():
            break
    print(act, "sent", len(w.ses.accepted))
    assert not w.ses.accepted
