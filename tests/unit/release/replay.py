"""Lets a version read what a release wrote, as `record` recorded it. What became of each goes to a file.

    python -m tests.unit.release.replay tests/unit/release/0.2.0 outcomes.json

The release's own outcomes are in its folder. A later version must come to the same ones.
"""

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tests.unit.release.record import knows, operate, prepare, written
from tests.unit.release.stage import NOW, Entry, Image, Stage

READERS = {
    "mail": "send_mail",
    "mail-bulk": "send_mail",
    "sms": "send_sms",
    "push": "send_push",
    "fax.fifo": "send_fax",
    "webhook": "send_webhook",
    "fax-retry": "retry_fax",
    "feedback": "feedback",
    "scheduled": "dispatch_scheduled",
    "collect": "collect",
    "audience": "compose",
}
CHANNELS = {"mail": "mail", "sms": "sms", "push": "push", "fax": "fax.fifo", "webhook": "webhook"}
LATE = 2000
"""Seconds after the recording began: no lease and no wait of then is left."""


class Replay:
    """A stage that is filled anew for each thing that is read."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage()
        prepare(self.stage)
        recorded = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        self.ledger: dict[str, Image] = recorded["ledger"]
        self.mailbox: dict[str, Image] = recorded["mailbox"]
        self.runs: dict[str, Image] = recorded["campaign-runs"]
        self.schedules = recorded["schedules"]
        self.people = {name: recorded[name] for name in ("suppressions", "preferences")}
        self.dead_letters = recorded["dead-letters"]
        self.queues = {
            queue: [Entry(**each) for each in entries] for queue, entries in recorded["queues"].items()
        }

    def run(self) -> dict[str, dict[str, str]]:
        """What became of everything, by how it was read."""
        return {
            "dispatched": dict(self.dispatched()),
            "first": dict(self.first()),
            "met": dict(self.met()),
            "moved": dict(self.moved()),
            "called back": dict(self.called_back()),
            "events": dict(self.events()),
            "due": dict(self.due()),
            "collected": dict(self.collected()),
            "composed": dict(self.composed()),
            "followed": dict(self.followed()),
            "looked through": dict(self.looked_through()),
            "status": dict(self.status()),
            "operated": dict(self.operated()),
        }

    def dispatched(self) -> Iterable[tuple[str, str]]:
        """The mailbox's items, put now."""
        for id_, image in self.mailbox.items():
            yield id_, self.outcome(partial(self.stage.dispatch, image), image)

    def first(self) -> Iterable[tuple[str, str]]:
        """Bodies of first attempts, of which the ledger knows nothing."""
        for queue in (*CHANNELS.values(), "mail-bulk"):
            for entry in self.queues[queue]:
                if "webhook_id" not in entry.body and entry.body.get("attempt", 1) == 1:
                    yield f"{queue} {_id(entry)}", self.outcome(self._work(queue, entry), _key(queue, entry))

    def met(self) -> Iterable[tuple[str, str]]:
        """Items of the ledger, and the body of their next attempt; else a late copy of what they had."""
        for name, image in self.ledger.items():
            queue = CHANNELS[image["event_type"]["S"]]
            bodies = [each for each in self.queues[queue] if _id(each) == image["id"]["S"]]
            bodies = [each for each in bodies if "webhook_id" not in each.body]
            following = int(image.get("attempts", {"N": "0"})["N"]) + 1
            for entry in [each for each in bodies if each.body.get("attempt", 1) == following] or bodies[:1]:
                yield name, self.outcome(self._work(queue, entry), image, image)

    def moved(self) -> Iterable[tuple[str, str]]:
        """The retry queue's bodies."""
        for entry in self.queues["fax-retry"]:
            name = f"{_id(entry)}, attempt {entry.body.get('attempt', 1)}"
            yield name, self.outcome(self._work("fax-retry", entry), _key("fax", entry))

    def called_back(self) -> Iterable[tuple[str, str]]:
        """Callbacks, and the item that keeps what became of them."""
        known = {(each["id"]["S"], each["event_type"]["S"]): each for each in self.ledger.values()}
        for entry in self.queues["webhook"]:
            if "webhook_id" in entry.body:
                item = known[entry.body["id"], entry.body["event_type"]]
                self._fill(item)
                back = self._work("webhook", entry)()
                (noted,) = self.stage.items("ledger")
                result = noted["callbacks"]["M"][entry.body["name"]]["M"]
                yield (
                    f"{entry.body['id']} {entry.body['name']}",
                    f"{'back, ' if back else ''}{result['status']['S']}",
                )

    def events(self) -> Iterable[tuple[str, str]]:
        """Events of providers about all that was sent."""
        for entry in self.queues["feedback"]:
            self._fill(self.ledger["s-sent"], self.ledger["s-aws"], people=False)
            for id_ in [each for each in self.mailbox if each.startswith("m-")]:
                sent = {**self.ledger["m-sent"], "id": {"S": id_}}
                self.stage.put("ledger", sent)
            back = self._work("feedback", entry)()
            changed = [each["dynamodb"]["NewImage"] for each in self.stage.changes]
            marks = [each["recipient"]["S"] for each in self.stage.items("suppressions")]
            now = {each["id"]["S"]: each["status"]["S"] for each in changed}
            yield ", ".join(now), f"{'back, ' if back else ''}{', '.join([*now.values(), *marks])}"

    def due(self) -> Iterable[tuple[str, str]]:
        """What schedules send, with the item there and without."""
        for schedule in self.schedules:
            entry = Entry(json.loads(schedule["Target"]["Input"]))
            item = self.mailbox[_id(entry)]
            for name, items in (("there", [item]), ("taken back", [])):
                waiting = {**self.ledger["m-later scheduled"], "id": item["id"]}
                done = self.outcome(
                    self._work("scheduled", entry), item, waiting, mailbox=items, now=NOW + 86_400
                )
                yield f"{_id(entry)} {name}", done

    def collected(self) -> Iterable[tuple[str, str]]:
        """The collect queue's bodies, with the run as it stood."""
        for entry, run in zip(self.queues["collect"], (None, "collecting, 1 pages", "stopped"), strict=True):
            self._fill(runs=[self.runs[run]] if run else [])
            back = self._work("collect", entry)()
            states = sorted(each["state"]["S"] for each in self.stage.items("campaign-runs"))
            people = sum(len(each.body["recipients"]) for each in self.stage.take("audience"))
            pages = len(self.stage.take("collect"))
            name = f"{entry.body.get('run', 'a schedule')}, page {entry.body.get('page', 1)}"
            done = f"{', '.join(states)}; {people} people, {pages} page to come"
            yield name, f"{'back, ' if back else ''}{done}"

    def composed(self) -> Iterable[tuple[str, str]]:
        """The audience queue's bodies, while the run goes on and after it was stopped."""
        for state in ("collected, 2 pages", "stopped"):
            for entry in self.queues["audience"]:
                self._fill(runs=[self.runs[state]])
                back = self._work("audience", entry)()
                put = len(self.stage.items("mailbox"))
                keys = ", ".join(each["key"] for each in entry.body["recipients"])
                yield f"{state}: {keys}", f"{'back, ' if back else ''}{put} put"

    def followed(self) -> Iterable[tuple[str, str]]:
        """The ledger's items as the stream has them after their claim."""
        for name, image in self.ledger.items():
            self._fill()
            sending = {**image, "status": {"S": "sending"}, "attempts": {"N": "0"}}
            images = {"OldImage": sending, "NewImage": image, "SequenceNumber": "1"}
            self.stage.changes = [{"eventName": "MODIFY", "dynamodb": images}]
            self.stage.follow()
            yield name, ", ".join(queue for queue, entries in sorted(self.stage.queues.items()) if entries)

    def looked_through(self) -> Iterable[tuple[str, str]]:
        """Dead letters, with and without the memory of those that were logged before."""
        nothing: list[Image] = []
        for known in (nothing, self.dead_letters):
            self._fill(*(self.ledger[each] for each in ("m-sent", "m-slow released, in trouble")))
            self.stage.put("dead-letters", *known)
            dead = [each for each in self.queues["mail"] if _id(each) in ("m-sent", "m-slow", "m-later")]
            self.stage.queues["mail-dlq"] = dead[:3]
            answer = self.stage.run("dead_letters", {"queue": "mail-dlq"})
            yield f"{len(known)} known", f"{answer['mail-dlq']['seen']} seen, {answer['mail-dlq']['new']} new"

    def status(self) -> Iterable[tuple[str, str]]:
        """What producers and operators see."""
        from mailroom.client import Mailroom

        client = Mailroom("local")
        for name, image in self.ledger.items():
            self._fill(image)
            found = client.status(image["id"]["S"], image["event_type"]["S"])
            shown = json.loads(operate(f"status {image['id']['S']} --json"))
            assert found is not None
            yield name, f"{found.status}, {shown['messages'][0]['status']}"

    def operated(self) -> Iterable[tuple[str, str]]:
        """Commands that write."""
        for line, ledger in (
            ("resend m-failed --yes", "m-failed"),
            ("resend m-bounced --force --yes", "m-bounced"),
            ("resend f-sent --force --yes", "f-sent with callbacks"),
            ("settle f-following --as failed --yes", "f-following sending, submitted"),
            ("reconcile m-later --older-than 0s --yes", "m-later scheduled"),
            ("reconcile f-busy --older-than 0s --yes", "f-busy retrying"),
            ("erase ada@example.com --yes", "m-sent with callbacks"),
            ("suppressions list", ""),
            ("preferences show dan@example.com", ""),
            ("campaign status weekly-followers", ""),
        ):
            if not knows(line):
                continue
            known = [self.ledger[ledger]] if ledger else []
            key = known[0] if known else self.mailbox["m-sent"]
            mailbox = [each for each in self.mailbox.values() if each["id"] == key["id"]]
            filled = {"mailbox": mailbox, "runs": [self.runs["collected, 2 pages"]], "now": NOW + 3 * 86_400}
            yield line, self.outcome(partial(self.operate, line), key, *known, **filled)

    def operate(self, line: str) -> None:
        """Run a command that must succeed."""
        operate(line)

    def outcome(self, act: Callable[[], Any], key: Image, *ledger: Image, **filled: Any) -> str:
        """What an act does with a message: whether it came back, its status, what was submitted, queues."""
        self._fill(*ledger, **filled)
        before = self.stage.submitted
        back = act()
        item = self.stage.item(key["id"]["S"], key["event_type"]["S"])
        said = ["back"] if back else []
        said += [item["status"]["S"]] if item else []
        said += ["submitted"] * (self.stage.submitted - before)
        said += ["schedule"] * len(self.stage.schedules)
        said += [f"to {queue}" for queue, entries in sorted(self.stage.queues.items()) if entries]
        return ", ".join(said)

    def _fill(
        self,
        *ledger: Image,
        now: float = NOW + LATE,
        mailbox: Iterable[Image] = (),
        runs: Iterable[Image] = (),
        people: bool = True,
    ) -> None:
        self.stage.clear()
        self.stage.now = now
        self.stage.put("ledger", *ledger)
        self.stage.put("mailbox", *mailbox)
        self.stage.put("campaign-runs", *runs)
        for table, items in self.people.items():
            self.stage.put(table, *(items if people else ()))

    def _work(self, queue: str, entry: Entry) -> Callable[[], list[int]]:
        return lambda: self.stage.work(READERS[queue], entry)


def _id(entry: Entry) -> str:
    return str(entry.body.get("id") or entry.body.get("fax_id"))


def _key(queue: str, entry: Entry) -> Image:
    channel = queue.partition(".")[0].partition("-")[0]
    return {"id": {"S": _id(entry)}, "event_type": {"S": channel}}


if __name__ == "__main__":
    folder, answer = (Path(each).resolve() for each in sys.argv[1:])
    answer.write_text(written(Replay(folder).run()) + "\n")
