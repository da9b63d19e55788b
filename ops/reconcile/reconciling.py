"""One run: find what may be stuck, judge it, say so, and put back what is stuck when it is judged anew."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from ops.reconcile.back import Back
from ops.reconcile.following import Following
from ops.reconcile.found import Found
from ops.reconcile.memory import Memory
from ops.reconcile.named import Named
from ops.reconcile.patience import Patience
from ops.reconcile.report import Answer, depths
from ops.reconcile.search import Search
from ops.reconcile.standing import Standing
from ops.reconcile.tables import Tables, described
from ops.reconcile.whole import Whole
from ops.resend.deployed import Deployed
from ops.resend.ids import Asked


class Reconciling:
    """Works for one stage, on what `search` finds there. `vouched`: the operator's word stands for what the
    ledger may have forgotten."""

    def __init__(
        self, deployed: Deployed, patience: Patience, tables: Tables, search: Search, *, vouched: bool
    ) -> None:
        self._deployed = deployed
        self._patience = patience
        ttl = deployed.dispatch.ledger_ttl_seconds
        self._memory = Memory.of(tables, ttl, deployed.clock(), vouched=vouched)
        self._search = search

    @classmethod
    def of_stage(
        cls,
        deployed: Deployed,
        patience: Patience,
        folder: Path,
        sleep: Callable[[float], None],
        *,
        vouched: bool,
    ) -> "Reconciling":
        """On all that the stage has. `folder` is where the look is kept until it is done with."""
        tables = _tables(deployed)
        search = Whole(deployed, patience, tables, folder, sleep)
        return cls(deployed, patience, tables, search, vouched=vouched)

    @classmethod
    def of_messages(cls, deployed: Deployed, patience: Patience, asked: Sequence[Asked]) -> "Reconciling":
        """On some messages alone, for which the operator vouches by naming them."""
        return cls(deployed, patience, _tables(deployed), Named(deployed, asked), vouched=True)

    def go(self, following: Following, *, dry_run: bool) -> Answer:
        """All of it; a dry run puts nothing back. What was found is kept where this is cut off."""
        with self._search.opened():
            self._search.go(following)
            answer = self._judged(following, dry_run=dry_run)
            following.found(answer)
            if dry_run:
                return answer
            if answer.stuck:
                following.allow(answer)
                answer = self._put_back(answer, following)
            self._search.close()
            return answer

    def _judged(self, following: Following, *, dry_run: bool) -> Answer:
        found = Found(each=self._search.named)
        standing = Standing(self._deployed, self._patience, self._memory)
        with following.step("looking again", self._search.count) as advance:
            for keys in self._search.batches():
                found.take(standing.of(keys))
                advance(len(keys))
        return Answer(
            stage=self._deployed.stage,
            dry_run=dry_run,
            older_than_seconds=round(self._patience.older_than),
            looked_at=self._search.seen,
            found=found.by_state(),
            vouched=found.vouched,
            messages=found.messages(self._search.unknown),
            queues=depths(self._deployed),
            put_back={},
            failed=0,
            look=self._search.file if dry_run else "",
        )

    def _put_back(self, answer: Answer, following: Following) -> Answer:
        back, standing = Back(self._deployed), Standing(self._deployed, self._patience, self._memory)
        counts: Counter[str] = Counter()
        failed = 0
        with following.step("putting back", answer.stuck) as advance:
            for keys in self._search.batches():
                step, left = back.put(standing.stuck(keys))
                counts += step
                failed += left
                advance(step.total() + left)
        return structs.replace(answer, put_back=dict(sorted(counts.items())), failed=failed)


def _tables(deployed: Deployed) -> Tables:
    ledger = described(deployed.dynamodb, deployed.dispatch.ledger_table)
    return Tables(described(deployed.dynamodb, deployed.mailbox), ledger)
