"""Messages sent again: looked at first, then reopened in the ledger and queued.

reopen ─── crash ─── queue      What was reopened and not queued is `retrying` without a worker: this command
                                queues it when it is run again, and `reconcile` finds it by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from secrets import token_hex
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from msgspec import Struct, structs

from mailroom.aws.dynamo import UnprocessedKeys
from mailroom.aws.queues import Entry
from mailroom.message.message import Key
from ops.resend.contents import Contents, items_of, next_attempt
from ops.resend.copies import Copies, Item
from ops.resend.deployed import Deployed
from ops.resend.following import Following
from ops.resend.ids import Asked
from ops.resend.judge import judge
from ops.resend.resent import Resent

AT_ONCE = 50
"""Messages of one step: what a crash may leave reopened and not queued."""
_WORKERS = 8
_FAULTS = (ClientError, BotoCoreError, ResponseParserError, UnprocessedKeys)
"""What reading and writing tables raises where AWS does not do it."""
_UNTAKEN = "it is reopened, but SQS would not take it: run this again, or mailroom reconcile"


class _Looked(Struct, frozen=True):
    """What a message is, the ledger's item that says so, and what would be sent (None: nothing)."""

    now: Resent
    found: Item = {}
    content: Item | None = None


class Resending:
    """Works for one stage. With `force` also what has arrived, or would be suppressed, is sent again."""

    def __init__(self, deployed: Deployed, *, force: bool) -> None:
        self._deployed = deployed
        self._force = force
        self._copies = Copies(deployed)
        self._contents = Contents(deployed, self._copies, force=force)

    def run(self, asked: Sequence[Asked], following: Following, *, dry_run: bool) -> list[Resent]:
        """All of it: what became of each; of a dry run, what would. Those that are ready come first."""
        looked = _followed(self._looked(asked), following, "looking", len(asked))
        following.looked(looked)
        ready = [each for each in looked if each.result == "ready"]
        refused = [each for each in looked if each.result != "ready"]
        if dry_run or not ready:
            return [*ready, *refused]
        following.allow(ready)
        return [*_followed(self._go(ready), following, "sending", len(ready)), *refused]

    def _looked(self, asked: Sequence[Asked]) -> Iterator[Resent]:
        """What each is, and whether it can be sent again."""
        with ThreadPoolExecutor(_WORKERS) as pool:
            yield from (looked.now for looked in pool.map(self._look, asked))

    def _go(self, ready: Sequence[Resent]) -> Iterator[Resent]:
        """Send again those that are ready; each is looked at anew, for time has passed."""
        waiting = iter(ready)
        with ThreadPoolExecutor(_WORKERS) as pool:
            while step := list(islice(waiting, AT_ONCE)):
                done = list(pool.map(self._reopen, map(str, range(len(step))), step))
                failed = self._copies.send(queued for _, queued in done if queued is not None)
                for reference, (each, _) in enumerate(done):
                    yield each.unqueued(_UNTAKEN) if str(reference) in failed else each

    def _look(self, asked: Asked) -> "_Looked":
        found = self._find(asked)
        if isinstance(found, str):
            return _Looked(Resent(asked.id, asked.event_type or "", "", "refused", found))
        verdict = judge(found, force=self._force)
        content = self._contents.of(found) if verdict.go else None
        if verdict.go:
            verdict = self._contents.fit(found, content, verdict)
        now = Resent(
            found["id"],
            found["event_type"],
            str(found.get("status", "")),
            "ready" if verdict.go else "refused",
            verdict.why,
            next_attempt(found) if verdict.go else None,
            verdict.twice,
        )
        return _Looked(now, found, content)

    def _find(self, asked: Asked) -> dict[str, Any] | str:
        """Its ledger item, or why there is none to go by."""
        items = items_of(self._deployed, self._deployed.dispatch.ledger_table, asked)
        if len(items) == 1:
            return items[0]
        if items:
            names = " and ".join(each["event_type"] for each in items)
            return f"there are messages of {names} with that id; say which by --channel"
        if items_of(self._deployed, self._deployed.mailbox, asked):
            return (
                "the ledger does not know it: nobody has begun it, and mailroom reconcile puts it back by "
                "its id; but if it was put more than 90 days ago, it may have been sent and forgotten"
            )
        return "there is no such message in the ledger"

    def _reopen(self, reference: str, ready: Resent) -> tuple[Resent, tuple[str, Entry] | None]:
        """Reopen one. What it is now, and the queue message that it needs (None: outcomes makes it).

        Raises nothing of AWS's: others of its step are reopened already, and have to be queued.
        """
        try:
            looked = self._look(Asked(ready.id, ready.event_type))
        except _FAULTS as fault:
            return ready.refused(f"it could not be read, so it is as it was: {fault}; run this again"), None
        now, content = looked.now, looked.content
        if now.result != "ready" or content is None:
            return now, None
        if now.status != "retrying" and (now.status, now.attempt) != (ready.status, ready.attempt):
            # Force and consent were given for what was shown, and for nothing else.
            return now.refused(f"{now.status}: it has changed since it was looked at; look again"), None
        try:
            attempt = now.attempt if now.status == "retrying" else self._next_life(looked.found)
        except _FAULTS as fault:
            why = f"it may be reopened, and is not queued: {fault}; run this again, or mailroom reconcile"
            return now.unqueued(why), None
        if attempt is None:
            return now.refused("it has changed just now: somebody else was faster, or an event came"), None
        resent = structs.replace(now, result="resent", attempt=attempt)
        if now.event_type == "fax":
            return resent, None
        return resent, self._copies.entry(reference, content, attempt)

    def _next_life(self, found: Item) -> int | None:
        """Reopen it; the number of the attempt that follows, None: it is not as it was found any more."""
        key = Key(found["id"], found["event_type"])
        token = token_hex(16)
        attempt = self._deployed.ledger(lambda: token).reopen(key, found)
        if attempt is not None:
            return attempt
        # The SDK repeats a call whose answer was lost, and then meets what the first one wrote.
        items = items_of(self._deployed, self._deployed.dispatch.ledger_table, Asked(key.id, key.event_type))
        ours = [each for each in items if each.get("claim_token") == token and "completedAt" not in each]
        return next_attempt(ours[0]) if ours else None


def _followed(results: Iterable[Resent], following: Following, what: str, total: int) -> list[Resent]:
    done = []
    with following.step(what, total) as advance:
        for each in results:
            done.append(each)
            advance(1)
    return done
