"""The seven ways of choosing, in random orders, against a model: console, commands, the API, the pages, one
click, texts with STOP or START, and events."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal
from urllib.parse import quote

import pytest

from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.recipients.choices import Addressee, Choices, Preferences, Suppressions
from mailroom.unsubscribe.page import FIELD, IN, OUT, PageSettings, Topic
from mailroom_ops.people.opt_outs import OptOuts
from mailroom_ops.shared.deeds import Deeds
from tests.support.bodies import by_sns, ses_body
from tests.support.unit.api_requests import Api, api_event
from tests.support.unit.people_api import TITLES, people_api
from tests.support.unit.shared import PREFERENCES, SUPPRESSIONS, Aws, FakeClock, claimed, mail
from tests.support.unit.unsubscribing import ADA, ONE_CLICK, Door, page_token, posted_form, token
from tests.unit.feedback.test_feedback_consumer import Desk

NUMBER = "+16175551234"
TOPICS = [*TITLES]
SEQUENCES, STEPS = 1000, 10
ARN = "arn:aws:iam::123456789012:user/eve"
Way = Literal["command", "console"]


@dataclass
class Model:
    """Expected state of Ada: for each topic her latest choice, and for each channel the reason why it is
    stopped."""

    out: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Way and time of each opt-out that is valid."""
    repeated: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Way and time of the last repetition of an opt-out by a link in a mail."""
    ended: dict[str, int] = field(default_factory=dict)
    """Time of the opt-out that the API has ended, for each topic whose latest choice that is."""
    stop: int = -1
    start: int = -1
    mail: str = ""

    def opt_out(self, topic: str, way: str, now: int) -> None:
        if topic not in self.out:
            self.out[topic] = way, now
            self.ended.pop(topic, None)
        elif way in ("one-click", "page"):
            self.repeated[topic] = way, now

    def opt_in(self, topic: str, way: str, at: int | None = None) -> int:
        """Return the status of the API's response."""
        by, _ = self.out.get(topic, ("", -1))
        if way == "api" and (topic not in self.out or at != self.last(topic)[1]):
            return 200 if topic not in self.out and self.ended.get(topic, -2) == at else 409
        own = by == "preferences" and topic not in self.repeated
        if topic in self.out and (way != "preferences" or own):
            del self.out[topic]
            self.repeated.pop(topic, None)
            if at is not None:
                self.ended[topic] = at
        return 200

    def last(self, topic: str) -> tuple[str, int]:
        """Return way and time of an opt-out, or of its last repetition, as applications see it."""
        return self.repeated.get(topic, self.out[topic])

    @property
    def stopped(self) -> dict[str, str]:
        sms = {"sms": "asked_to_stop"} if self.stop >= 0 and self.start <= self.stop else {}
        why = {"bounce": "undeliverable", "complaint": "asked_to_stop"}
        return sms | ({"mail": why[self.mail]} if self.mail else {})


class ChoosingWorld:
    """Ways to the tables of one stage, and the model."""

    def __init__(self, aws: Aws, ledger: Ledger, clock: FakeClock, api: Api, random: Random) -> None:
        self.aws, self.clock, self.api, self.random, self.model = aws, clock, api, random, Model()
        topics = {topic: Topic() for topic in TOPICS}
        self.door, self.desk = Door(aws, clock, page=PageSettings(topics=topics)), Desk(aws, clock)
        self.seen: list[int] = []
        """Times that the application has read, which it may use much later."""
        self.preferences = Preferences(aws.dynamodb, PREFERENCES, clock)
        self.suppressions = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
        ledger.complete(claimed(ledger, mail("m-1", to=ADA)), "ses", "ses-1")

    @property
    def now(self) -> int:
        return int(self.clock.now * 1000)

    def by_operator(self, topic: str) -> None:
        way: Way = self.random.choice(("command", "console"))
        opt_outs = OptOuts(Session(self.aws, way), "test")  # type: ignore[arg-type]  # has all that it needs
        opt_outs._preferences = self.preferences  # the client has the test's clock
        if self.random.random() < 0.5:
            opt_outs.opt_out(ADA, topic)
            self.model.opt_out(topic, way, self.now)
        else:
            opt_outs.opt_in(ADA, topic)
            self.model.opt_in(topic, way)

    def by_api(self, topic: str) -> None:
        if self.random.random() < 0.4:
            assert self._patch({topic: {"state": "out"}}) == 200
            self.model.opt_out(topic, "api", self.now)
            return
        choices = self.preferences.choices(ADA)
        present = choices[topic].at if topic in choices else self.now
        at = self.random.choice([present, *self.seen])
        self.seen.append(at)
        consent = {"state": "in", "at": iso(at / 1000), "evidence": "asked"}
        assert self._patch({topic: consent}) == self.model.opt_in(topic, "api", at)

    def by_page(self, topic: str) -> None:
        value = self.random.choice((OUT, IN))
        assert self.door.status(posted_form(token(topic=topic), {FIELD: value})) == 200
        if value == OUT:
            self.model.opt_out(topic, "page", self.now)
        else:
            self.model.opt_in(topic, "page")

    def by_preferences(self, topic: str) -> None:
        match self.random.choice((OUT, IN, "nothing")):
            case "nothing":
                assert self.door.status(posted_form(page_token(), {"nothing": "1"})) == 200
                for each in TOPICS:
                    self.model.opt_out(each, "preferences", self.now)
            case "unsubscribe":
                assert self.door.status(posted_form(page_token(), {OUT: topic})) == 200
                self.model.opt_out(topic, "preferences", self.now)
            case _:
                assert self.door.status(posted_form(page_token(), {IN: topic})) == 200
                self.model.opt_in(topic, "preferences")

    def by_one_click(self, topic: str) -> None:
        assert self.door.status(posted_form(token(topic=topic), ONE_CLICK)) == 200
        self.model.opt_out(topic, "one-click", self.now)

    def by_text(self, _topic: str) -> None:
        """Texts may arrive late and in any order."""
        wish, sent = self.random.choice(("stop", "start")), self.now - self.random.randrange(100_000)
        text = {"source": "twilio-text", "number": NUMBER, "sent_to": "+12025550123", "wish": wish}
        assert self.desk.handle(json.dumps({**text, "at": sent})) == []
        if wish == "stop":
            self.model.stop = max(self.model.stop, sent)
        else:
            self.model.start = max(self.model.start, sent)

    def by_event(self, _topic: str) -> None:
        kind = self.random.choice(("Bounce", "Complaint"))
        assert self.desk.handle(by_sns(ses_body(kind, "m-1"))) == []
        self.model.mail = "complaint" if "complaint" in (self.model.mail, kind.lower()) else "bounce"

    def _patch(self, topics: Any) -> int:
        kind = {"Content-Type": "application/json"}
        return self.api.ask(
            api_event("PATCH", f"/people?recipient={ADA}", json.dumps({"topics": topics}), kind)
        ).status

    def check(self) -> None:
        """Compare what each reader sees with the model: a sender, the API, a command and the page."""
        model, addressees = self.model, [Addressee(ADA, topic) for topic in TOPICS]
        blocked = Choices(self.suppressions, self.preferences).find("mail", addressees)
        expected = {topic for topic in TOPICS if model.mail or topic in model.out}
        assert {each.topic for each in blocked} == expected
        told = self.api.get(f"/people?recipient={ADA}").json
        outs = {each["topic"]: (each["by"], each["at"]) for each in told["topics"] if each["state"] == "out"}
        last = {topic: model.last(topic) for topic in model.out}
        assert outs == {topic: (by, iso(at / 1000)) for topic, (by, at) in last.items()}
        number = self.api.get(f"/people?recipient={quote(NUMBER)}").json
        stopped = {each["channel"]: each["why"] for each in (*told["stopped"], *number["stopped"])}
        assert stopped == model.stopped
        opt_outs = OptOuts(Session(self.aws, "command"), "test").of(ADA)  # type: ignore[arg-type]
        actors = {"api": "", "command": ARN, "console": ARN}
        assert {each.topic: (each.by, each.actor) for each in opt_outs} == {
            topic: (by.replace("-", "_"), actors.get(by, "")) for topic, (by, _) in model.out.items()
        }
        page = self.door.answer(
            {**posted_form(page_token(), ""), "requestContext": {"http": {"method": "GET"}}}
        )["body"]
        assert page.count('aria-checked="false"') == len(model.out)
        assert page.count(" disabled>") == sum(by != "preferences" for by, _ in last.values())


class Session:
    """Session of an operator."""

    def __init__(self, aws: Aws, way: Way) -> None:
        self._aws, self.way = aws, way

    def client(self, service: str) -> Any:
        return self if service == "sts" else self._aws.dynamodb

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": ARN}


WAYS: list[Callable[[ChoosingWorld, str], None]] = [
    *(ChoosingWorld.by_operator, ChoosingWorld.by_api, ChoosingWorld.by_page, ChoosingWorld.by_preferences),
    *(ChoosingWorld.by_one_click, ChoosingWorld.by_text, ChoosingWorld.by_event),
]


@pytest.mark.parametrize("part", range(10))
def test_random_sequences_of_opt_outs_and_opt_ins_end_in_the_state_that_the_model_expects(
    aws: Aws, ledger: Ledger, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(Deeds, "record", lambda *_: None)
    monkeypatch.setattr(Deeds, "person", lambda *_: "person")
    random = Random(part)
    api = people_api(clock, tmp_path)
    counts = dict.fromkeys(("out", "in", "stopped", "free"), 0)
    for _ in range(SEQUENCES // 10):
        aws.dynamodb.empty()  # type: ignore[attr-defined]  # the double's
        world = ChoosingWorld(aws, ledger, clock, api, random)
        for _ in range(random.randrange(1, STEPS + 1)):
            clock.advance(random.choice((0.001, 60, 3600)))
            random.choice(WAYS)(world, random.choice(TOPICS))
        world.check()
        counts["out" if world.model.out else "in"] += 1
        counts["stopped" if world.model.stopped else "free"] += 1
    assert min(counts.values()) > 5
