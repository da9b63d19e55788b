"""Trials of a row: two mails, a worker that is killed once, and what became of the mails."""

import json
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from mailroom_local.processes import wait_until
from tests.proof.producer import State
from tests.proof.proxy import Proxy
from tests.proof.ses import SesServer

COLUMNS = ("stops", "sent_twice", "late", "lost", "stuck", "unknown")
SENTINEL = "sentinel"
"""Beginning of the names of mails that only show how far the worker is."""
PROMISED = ("sent_twice", "lost", "stuck", "unknown")
"""Columns that are 0 for Mailroom if SES's events arrive."""
MAILS = 2
"""Mails of a trial: one in the worker's hands, and one behind it."""
TIMEOUT_SECONDS = 30
"""Time after which a system gives a mail of a dead worker to another worker, instead of its default."""
BOUND_SECONDS = 2.5 * TIMEOUT_SECONDS
START_SECONDS = 120.0
PASSWORD = secrets.token_hex(16)
"""Password of the servers of this run."""
POLL_SECONDS = 0.25
TRIES = 3
_STARTING = threading.Semaphore(2)
_NUMBERS = count(1)


class Unjudged(Exception):
    """Trial without a result, with the reason."""


@dataclass(frozen=True)
class Row:
    """System of the table, with one way to use it."""

    label: str
    worker: Sequence[str]
    """Command that the supervisor starts again whenever it has ended."""
    producer: Sequence[str]
    after: str
    """Default of the time after which the system gives a mail of a dead worker to another worker."""
    servers: Sequence[str] = ()
    """Servers besides SES: redis, postgres or aws."""
    variables: Mapping[str, str] = field(default_factory=dict)
    by_clock: bool = False
    """Whether the worker is a command that cron starts, and that ends when no mail waits."""
    events: bool = False
    """Whether SES's events reach the ledger before the queue delivers again."""


class Lane:
    """Worker with a queue and a proxy of its own, which makes one trial after the other."""

    def __init__(self, row: Row, ses: SesServer, ports: Mapping[str, int], place: str, log: Path) -> None:
        """`place` is the lane's part of the servers: a database, or a prefix of names."""
        self._row, self._ses, self._log = row, ses, log
        self._proxy = Proxy({**ports, "ses": ses.port})
        self._environment = environment(row, self._proxy.ports, place, log)
        self._worker: subprocess.Popen[bytes] | None = None
        log.mkdir(parents=True, exist_ok=True)
        with (log / "producer").open("wb") as errors:
            self._producer = subprocess.Popen(
                row.producer,
                cwd=REPOSITORY,
                env=environment(row, {**ports, "ses": ses.port}, place, log),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def close(self) -> None:
        self._kill()
        self._proxy.close()
        _end(self._producer)
        for stream in (self._producer.stdin, self._producer.stdout):
            assert stream is not None
            stream.close()

    def points(self) -> int:
        """Return the number of points at which a worker can be stopped, from the put of the mails until the
        system is idle."""
        self._idle()
        names = self._put(None)
        wait_until(lambda: self._done(names), BOUND_SECONDS, POLL_SECONDS)
        points, sends = self._proxy.points, Counter(self._ses.accepted())
        if any(sends[name] != 1 for name in names):
            raise Unjudged(f"{self._row.label}: without a stop, its mails are not sent once; see {self._log}")
        return points

    def trial(self, stop: int) -> Counter[str]:
        """Return how the mails end if the worker is killed at this point. A trial that took so long that a
        time-out may have passed before the worker was up is repeated."""
        for _ in range(TRIES):
            counts = self._trial(stop)
            if counts is not None:
                return counts
        raise Unjudged(f"{self._row.label}: this machine needs too long to start a worker")

    def _trial(self, stop: int) -> Counter[str] | None:
        self._idle()
        names = self._put(stop)
        wait_until(lambda: self._proxy.stopped or self._done(names), BOUND_SECONDS, POLL_SECONDS)
        killed = self._proxy.stopped
        self._proxy.arm(None, self._kill)
        if self._row.events:
            self._tell("report", *self._ses.references(set(names)))
        began = time.monotonic()
        self._sentinels(2)
        if killed and time.monotonic() - began > TIMEOUT_SECONDS * 0.8 and not self._row.by_clock:
            return None
        early = set(self._ses.accepted())
        wait_until(lambda: self._settled(names), BOUND_SECONDS, POLL_SECONDS)
        # The worker may still have a mail that is in no queue. It sends it before a mail that is put now.
        self._sentinels(1)
        sends = Counter(self._ses.accepted())
        return _judged(names, sends, set(sends) if self._row.by_clock else early, self._tell("state"))

    def _idle(self) -> None:
        """Wait until the worker is up and its queue is empty."""
        self._sentinels(1)
        wait_until(lambda: self._settled([SENTINEL]), BOUND_SECONDS, POLL_SECONDS)

    def _put(self, stop: int | None) -> list[str]:
        names = [f"mail-{next(_NUMBERS)}" for _ in range(MAILS)]
        self._proxy.arm(stop, self._kill)
        self._tell("put", *names)
        return names

    def _sentinels(self, number: int) -> None:
        """Put mails, and wait for the sending of each before the next. After that, the worker is up, and has
        sent every mail except those that wait for a time-out. Cron needs none of this."""
        for _ in range(0 if self._row.by_clock else number):
            name = f"{SENTINEL}-{next(_NUMBERS)}"
            self._tell("put", name)
            if not wait_until(partial(self._sent, name), START_SECONDS, POLL_SECONDS):
                raise Unjudged(f"{self._row.label}: the worker does not work; see {self._log}")

    def _sent(self, name: str) -> bool:
        self._supervise()
        return name in self._ses.accepted()

    def _done(self, names: Sequence[str]) -> bool:
        """Return whether these mails were sent and are settled."""
        return self._settled(names) and {*names} <= {*self._ses.accepted()}

    def _settled(self, names: Sequence[str]) -> bool:
        """Return whether these mails have left the queue. Start the worker if it ended."""
        state = self._tell("state")
        if any(_contains(name, state["waiting"]) for name in names):
            self._supervise(waiting=True)
            return False
        return True

    def _supervise(self, *, waiting: bool = False) -> None:
        """Start the worker unless it runs. A command of cron starts only if a mail is waiting."""
        if (self._worker is not None and self._worker.poll() is None) or (self._row.by_clock and not waiting):
            return
        with (self._log / "worker").open("ab") as log:
            self._worker = subprocess.Popen(
                self._row.worker,
                cwd=REPOSITORY,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _kill(self) -> None:
        if self._worker is not None:
            _end(self._worker)

    def _tell(self, *words: str) -> State:
        assert self._producer.stdin is not None
        assert self._producer.stdout is not None
        print(*words, file=self._producer.stdin, flush=True)
        line = self._producer.stdout.readline()
        if not line:
            raise Unjudged(f"{self._row.label}: the producer ended; see {self._log}")
        state: State = json.loads(line)
        return state


def environment(row: Row, ports: Mapping[str, int], place: str, log: Path) -> dict[str, str]:
    """Return the variables of a worker or a producer that reaches the servers at these ports."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **inherited,
        **row.variables,
        **{f"{name.upper()}_PORT": str(port) for name, port in ports.items()},
        "PLACE": place,
        "REDIS_URL": f"redis://:{PASSWORD}@127.0.0.1:{ports.get('redis')}/{place}",
        "QUEUE_URL": f"http://127.0.0.1:{ports.get('aws')}/000000000000/{place}",
        "RESEND_BASE_URL": f"http://127.0.0.1:{ports['ses']}/resend",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports.get('aws')}",
        "TMPDIR": str(log),
        "TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
        "POSTGRES_URL": f"postgresql://mailroom:{PASSWORD}@127.0.0.1:{ports.get('postgres')}/{place}",
        "PYTHONPATH": str(REPOSITORY),
        "AWS_ENDPOINT_URL_SESV2": f"http://127.0.0.1:{ports['ses']}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
    }


def _judged(names: Sequence[str], sends: Mapping[str, int], early: set[str], state: State) -> Counter[str]:
    ends: Counter[str] = Counter(stops=1)
    for name in names:
        copies = sends.get(name, 0)
        ends["sent_twice"] += copies > 1
        ends["late"] += copies > 0 and name not in early
        if _contains(name, state["failed"]):
            ends["unknown"] += 1
        elif _contains(name, state["waiting"]):
            ends["stuck"] += 1
        elif not copies:
            ends["lost"] += 1
    return ends


def _contains(name: str, text: str) -> bool:
    """Return whether a text contains a name, other than as the beginning of a longer name."""
    return re.search(rf"{name}(?!\d)", text) is not None


def _end(process: subprocess.Popen[Any]) -> None:
    """Kill a process and its children, and wait for its end."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
