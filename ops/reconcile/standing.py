"""How messages stand, by what both tables and the dead-letter queues say of them now."""

from collections.abc import Sequence

from mailroom.aws.dynamo import plain
from mailroom.message.message import Key
from ops.reconcile.back import Stuck
from ops.reconcile.judge import Finding, judge
from ops.reconcile.letters import Letters
from ops.reconcile.memory import Memory
from ops.reconcile.patience import Patience
from ops.reconcile.reading import Image, Reading
from ops.resend.deployed import Deployed


class Standing:
    """Judges for one stage. The dead-letter queues are asked once."""

    def __init__(self, deployed: Deployed, patience: Patience, memory: Memory) -> None:
        self._deployed = deployed
        self._patience = patience
        self._memory = memory
        self._reading = Reading(deployed.dynamodb)
        self._letters = Letters(deployed)

    def of(self, keys: Sequence[Key]) -> dict[Key, Finding]:
        """How each stands."""
        mailbox = self._reading.images(self._deployed.mailbox, keys, ("id",))
        return self._judged(keys, self._ledger(keys), mailbox)

    def stuck(self, keys: Sequence[Key]) -> list[Stuck]:
        """Those of them that are to be put back, with both their items whole."""
        ledger, mailbox = self._ledger(keys), self._reading.images(self._deployed.mailbox, keys)
        return [
            Stuck(key, finding.way, ledger.get(key), mailbox.get(key))
            for key, finding in self._judged(keys, ledger, mailbox).items()
            if finding.way is not None
        ]

    def _ledger(self, keys: Sequence[Key]) -> dict[Key, Image]:
        return self._reading.images(self._deployed.dispatch.ledger_table, keys)

    def _judged(
        self, keys: Sequence[Key], ledger: dict[Key, Image], mailbox: dict[Key, Image]
    ) -> dict[Key, Finding]:
        now, may_hold = self._deployed.clock(), self._letters.may_hold
        return {
            key: judge(_item(ledger, key), _item(mailbox, key), now, self._patience, self._memory, may_hold)
            for key in keys
        }


def _item(images: dict[Key, Image], key: Key) -> dict[str, object] | None:
    return plain(images[key]) if key in images else None
