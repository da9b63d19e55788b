"""Messages that wait for their window and for the day over several days: doubt, campaigns, whole lines."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from mailroom.message.message import Key
from tests.support.faults.day_world import DAY, DayWorld
from tests.support.faults.outside import ses_error
from tests.support.faults.world import BULK, HOUR, MAIL, World, mail

NewWorld = Callable[..., World]
LIMIT: dict[str, Any] = {"budgets_table": "budgets", "per_day": (("0001-01-01", 6),), "reserve": 0.5}
WEEKDAYS = {"from": "09:00", "to": "20:00", "days": "mon-fri", "zone": "UTC"}


def die_after_submit(world: World, item: dict[str, Any], url: str) -> None:
    """Let the item's worker die right after the provider has accepted the mail."""
    world.enqueue(item, url=url)
    at = len(world.outside.calls)
    trial = type(world)(world.on_unknown, keyed=world.resend is not None)
    trial.day, trial.clock.now = world.day, world.clock.now
    trial.enqueue(item, url=url)
    trial.deliver(url)
    world.outside.stop = (at + trial.outside.calls.index("submit"), "after")
    world.deliver(url)
    world.outside.stop = None
    assert world.accepted_ids() == [item["id"]]


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_mail_with_an_unknown_outcome_ends_as_sent_even_if_the_daily_limit_is_used_up(
    new_world: NewWorld, on_unknown: str
) -> None:
    world = new_world(on_unknown, keyed=True)
    world.day = LIMIT
    die_after_submit(world, mail("doubtful", lane="bulk"), BULK)
    world.enqueue(*(mail(f"news-{number}", lane="bulk") for number in range(3)), url=BULK)
    world.deliver(BULK)
    world.settle()
    assert (world.sends()["doubtful"], world.end("doubtful")) == (1, "sent")


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_mail_with_an_unknown_outcome_ends_as_sent_even_if_its_window_has_closed(
    new_world: NewWorld, on_unknown: str
) -> None:
    world = new_world(on_unknown, keyed=True)
    world.clock.now = datetime(2026, 11, 20, 19, 59, tzinfo=UTC).timestamp()
    die_after_submit(world, mail("doubtful", window=WEEKDAYS), MAIL)
    world.settle()
    assert (world.sends()["doubtful"], world.end("doubtful")) == (1, "sent")


@pytest.mark.parametrize("hours", [None, ("09:00", "20:00"), ("17:00", "19:00")])
def test_bulk_mails_that_fill_three_daily_limits_are_sent_within_five_days_whatever_their_window(
    new_world: NewWorld, hours: tuple[str, str] | None
) -> None:
    world = new_world()
    begun = world.clock.now = datetime(2026, 11, 23, 9, tzinfo=UTC).timestamp()
    world.day = {**LIMIT, "per_day": (("0001-01-01", 48),)}
    more = {"window": {"from": hours[0], "to": hours[1], "zone": "UTC"}} if hours else {}
    world.put(*(mail(f"news-{number:03}", lane="bulk", **more) for number in range(72)))
    world.stream()
    world.settle()
    assert world.sends() == dict.fromkeys((item["id"] for item in world.items), 1)
    # Three days of 24. What was sent counts for a day and up to two hours, and so may miss a short window.
    assert max(world.ses.times) - begun < 5 * DAY


@pytest.mark.parametrize("url", [MAIL, BULK])
def test_a_mail_that_waits_because_its_providers_quota_is_used_up_can_be_cancelled(
    new_world: NewWorld, url: str
) -> None:
    world = new_world()
    world.day = LIMIT
    real = world.ses.send_email

    def used_up(**_: Any) -> Any:
        raise ses_error("LimitExceededException", 400, "Daily message quota exceeded.")

    world.ses.send_email = used_up  # type: ignore[method-assign]
    world.enqueue(mail("m"), url=url)
    world.deliver(url)
    assert world.found("m")["status"] == "scheduled"
    assert world.ledger.cancel(Key("m", "mail"))
    world.ses.send_email = real  # type: ignore[method-assign]
    world.settle()
    assert (world.sends(), world.end("m")) == ({}, "cancelled: cancelled")


def run_limited_campaign(start: int, window: tuple[str, str] | None, expires: int | None) -> DayWorld:
    """Run a campaign to 60 people, of whom a day reaches 24, from an hour of the day on."""
    world = DayWorld(60, [], 30, 0.2)
    world.clock.now = world.begun = datetime(2026, 11, 18, start, tzinfo=UTC).timestamp()
    world.campaign.definition = structs.replace(
        world.campaign.definition,
        window=window and {"from": window[0], "to": window[1], "zone": "UTC"},
        expires_after_hours=expires,
    )
    at = datetime.fromtimestamp(world.begun, UTC).isoformat().replace("+00:00", "Z")
    world.campaign.start(scheduled_at=at)
    world.run(start=False)
    return world


@pytest.mark.parametrize("start", [10, 21])
def test_a_campaign_with_a_window_sends_each_message_before_the_messages_expire(start: int) -> None:
    world = run_limited_campaign(start, ("09:00", "20:00"), 24 * 4)
    assert len(world.accepted()) == 60
    assert max(at for at, _ in world.accepted()) < 4 * DAY


def test_a_campaign_sends_within_an_hour_even_if_codes_exceed_their_reserve_of_the_daily_limit() -> None:
    two_days = 2 * DAY
    world = DayWorld(100, [float(at) for at in range(0, 3 * DAY, HOUR // 2)], 125, 0.2)
    codes = world._codes
    world._codes = [code for code in codes if code[0] < world.begun + two_days]
    world.run(start=False)
    world._codes = [code for code in codes if code[0] >= world.begun + two_days]
    begun = world.clock.now - world.begun
    world.run()
    assert min(at for at, name in world.accepted() if name.startswith("p")) - begun < HOUR
