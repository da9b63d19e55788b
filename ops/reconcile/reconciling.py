"""One run: look, wait, judge what was found anew, and put back what is still stuck."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mailroom.dynamo import plain
from mailroom.message import Key
from ops.reconcile.back import Back, Stuck
from ops.reconcile.judge import DAY, Finding, Memory, State, judge
from ops.reconcile.letters import Letters
from ops.reconcile.look import Head, Look
from ops.reconcile.looking import Looking, segments_of
from ops.reconcile.patience import Patience
from ops.reconcile.reading import Image, Reading, parts
from ops.resend.deployed import Deployed

_TOGETHER = 100
"""Messages that are read and put back at once: of 400 KB each, at most."""
_IN_MAILBOX = ("send_at",)


class Reconciling:
    """Works for one stage. `folder` is where the look is kept until it is done with."""

    def __init__(self, deployed: Deployed, patience: Patience, folder: Path, *, undated: bool) -> None:
        self._deployed = deployed
        self._patience = patience
        self._reading = Reading(deployed.dynamodb)
        described = deployed.dynamodb.describe_table(TableName=deployed.dispatch.ledger_table)["Table"]
        since = described["CreationDateTime"].timestamp()
        self._memory = Memory(since, deployed.dispatch.ledger_ttl_seconds, undated)
        items = deployed.dynamodb.describe_table(TableName=deployed.mailbox)["Table"].get("ItemCount", 0)
        known = described.get("ItemCount", 0)
        self.items = items + known
        """Roughly how many there are: DynamoDB counts every six hours."""
        now = deployed.clock()
        about = f"{described['TableArn']} {patience.older_than:g}"
        head = Head(about, now, {"mailbox": segments_of(items), "ledger": segments_of(known)})
        arn = described["TableArn"].split(":")
        path = folder / f"reconcile-{deployed.stage}-{arn[4]}-{arn[3]}.jsonl"
        self.look = Look.at(path, head, now - DAY)

    def looked(self) -> Iterator[int]:
        """Look through both tables; how many items were seen, page by page. What an earlier look has seen is
        not looked at again."""
        return Looking(self._deployed, self.look, self._patience).go()

    def wait(self) -> float:
        """Seconds until what was missing counts as lost. What is merely on its way shows up until then."""
        if not self.look.found["mailbox"]:
            return 0
        return max(0.0, self.look.latest + self._patience.older_than - self._deployed.clock())

    def judged(self) -> Iterator[Counter[tuple[State, str]]]:
        """How those stand that were found: counts by state and channel, in steps."""
        letters = Letters(self._deployed)
        for keys in self._found():
            mailbox = self._reading.images(self._deployed.mailbox, keys, _IN_MAILBOX)
            found = self._judge(keys, self._ledger(keys), mailbox, letters)
            yield Counter((finding.state, key.event_type) for key, finding in found.items())

    def put_back(self) -> Iterator[tuple[Counter[str], int]]:
        """Judge them anew and put back those that are stuck: how many, by channel, and how many could not be
        put back, in steps."""
        back, letters = Back(self._deployed), Letters(self._deployed)
        for keys in self._found():
            ledger, mailbox = self._ledger(keys), self._reading.images(self._deployed.mailbox, keys)
            found = self._judge(keys, ledger, mailbox, letters)
            yield back.put(
                [
                    Stuck(key, finding.way, ledger.get(key), mailbox.get(key))
                    for key, finding in found.items()
                    if finding.way is not None
                ]
            )

    def _found(self) -> Iterator[list[Key]]:
        for page in self.look.pages():
            yield from parts(page.keys, _TOGETHER)

    def _ledger(self, keys: list[Key]) -> dict[Key, Image]:
        return self._reading.images(self._deployed.dispatch.ledger_table, keys)

    def _judge(
        self, keys: list[Key], ledger: dict[Key, Image], mailbox: dict[Key, Image], letters: Letters
    ) -> dict[Key, Finding]:
        now = self._deployed.clock()

        def item(images: dict[Key, Image], key: Key) -> dict[str, object] | None:
            return plain(images[key]) if key in images else None

        return {
            key: judge(
                item(ledger, key), item(mailbox, key), now, self._patience, self._memory, letters.may_hold
            )
            for key in keys
        }
