"""Canaries: mails to the provider's test address, by which a stage shows that it works."""

from mailroom.channels.mail.contract import Mail
from mailroom.mailbox import NEEDED_AFTER
from mailroom.message.message import CANARY
from tests.support.unit.events import plenty
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.post import Log
from tests.support.unit.releasing import Waiting
from tests.support.unit.shared import MAILBOX, NOW, Item

ADDRESS = "success@simulator.amazonses.com"
TIME = "2026-11-27T08:30:00Z"


def put_canary(waiting: Waiting, time: str = TIME) -> None:
    waiting.release().handle({"canary": time, "to": ADDRESS}, plenty)


def canary(waiting: Waiting, time: str = TIME) -> Item:
    return waiting.aws.item(f"{CANARY}{time}", table=MAILBOX)


def test_a_canary_is_a_valid_mail_with_a_ttl(waiting: Waiting) -> None:
    put_canary(waiting)
    item = canary(waiting)
    assert item.pop("ttl") == NOW + NEEDED_AFTER
    read = waiting.dispatcher().validator.read(item)
    assert isinstance(read, Mail)
    assert (read.id, read.to, read.lane) == (f"{CANARY}{TIME}", ADDRESS, "normal")


def test_an_event_that_eventbridge_sends_twice_puts_one_canary(waiting: Waiting) -> None:
    put_canary(waiting)
    first = canary(waiting)
    waiting.clock.now += 60
    put_canary(waiting)
    assert canary(waiting) == first


def test_each_schedule_time_has_its_own_canary(waiting: Waiting) -> None:
    put_canary(waiting)
    put_canary(waiting, "2026-11-27T08:35:00Z")
    assert canary(waiting) != canary(waiting, "2026-11-27T08:35:00Z") != {}


def test_the_log_contains_the_id_of_a_canary_and_the_reason_of_a_failed_put(
    waiting: Waiting, log: Log
) -> None:
    put_canary(waiting)
    waiting.meddle(put_item=failing(client_error("ThrottlingException")))
    put_canary(waiting, "later")
    lines = [(line["id"], line["state"], line["reason"]) for line in log() if line["message"] == "canary"]
    assert lines == [
        (f"{CANARY}{TIME}", "accepted", ""),
        (f"{CANARY}later", "failed", "AnOperation: ThrottlingException"),
    ]
