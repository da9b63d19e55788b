"""Faults of a chaos run: a plan, which the seed determines, and its execution while messages are put."""

import os
import random
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import Literal

from lab.harness.function_code import replace_functions
from lab.harness.stage_client import StageClient
from mailroom_local.aws import STAGE
from mailroom_local.providers import trouble
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import Workspace

Kind = Literal["kill", "pump", "deploy", "day", "stop", "start", "trouble", "calm"]
FUNCTIONS = {
    "send-mail": 4,
    "send-mail-bulk": 2,
    "send-sms": 3,
    "send-push": 2,
    "send-webhook": 2,
    "send-fax": 2,
    "dispatch": 3,
    "release": 2,
    "outcomes": 2,
    "feedback": 2,
    "twilio-callbacks": 1,
}
"""Functions whose processes are killed, with the weight of each."""
FUNCTIONS_BY_MAIL = {
    "resend": {"resend-mail-events": 1},
    "both": {"resend-mail-events": 1, "send-mail-fallback": 4, "send-mail-bulk-fallback": 2},
}
"""Further functions, by the provider of mails."""
CLOSED = "closed"
"""Fault of a provider that has a fallback: it refuses every submit."""
SHARES: dict[str, dict[str, float]] = {
    "throttled": {"throttled": 0.3},
    "error": {"error": 0.1},
    "timeout": {"timeout": 0.05},
    "slow": {"slow": 0.2},
    CLOSED: {"throttled": 1},
}
"""Shares of a provider's submits that have a fault, by fault. The share of time-outs is small, because they
delay a sender for the longest time."""
CLOSES, OPENS = 0.05, 0.5
"""Times at which a provider with a fallback begins and ends to refuse every submit, as shares of the
messages: two of the five minutes in which the messages are put."""
LASTS = 0.1
"""Duration of a provider's fault, and of the stop of `release`, as a share of the messages."""
DEPLOYMENTS = 2
DAYS, CLOSED_SECONDS = 3, 20
"""Number of times that bulk mails are stopped, as if the provider's daily quota were used up, and the
duration of each stop in seconds."""
SPREAD_SECONDS, DOUBLED = 3.0, 0.3
"""Seconds within which reports about a message arrive in random order, and the share of reports that arrive
twice."""
POLL_SECONDS = 0.05
NOBODY_SECONDS = 10.0

_WORKER = re.compile(rf"ministack-lambda-mailroom-{STAGE}-([a-z-]+)-[a-z0-9_]{{8}}/_worker\.py")


@dataclass(frozen=True)
class Fault:
    """A fault that occurs when `at` messages have been put. A kill ends a process of the first of `functions`
    that has one; `place` (from 0 to 1) selects one of its processes."""

    at: int
    kind: Kind
    functions: tuple[str, ...] = ()
    place: float = 0.0
    provider: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Done:
    """A fault that has occurred, and its time (epoch seconds). `what` is the function, or the provider with
    its fault."""

    kind: Kind
    what: str
    at: float


def plan(seed: int, messages: int, kills: int, mail: str = "ses") -> list[Fault]:
    """Return the faults of a run in order. Equal arguments give equal faults. `mail` is the provider of
    mails, or `both`: SES with Resend as its fallback."""
    chance = random.Random(seed)
    functions = FUNCTIONS | FUNCTIONS_BY_MAIL.get(mail, {})
    kill = [_kill(int(chance.uniform(0.02, 1) * messages), functions, chance) for _ in range(kills)]
    pump = Fault(int(chance.uniform(0.2, 0.4) * messages), "pump")
    deploy = [Fault(int(chance.uniform(0.3, 0.9) * messages), "deploy") for _ in range(DEPLOYMENTS)]
    unused = {"ses", "resend"} - {mail} if mail != "both" else {"ses"}
    troubles = [
        *_troubles(chance, messages, [provider for provider in trouble.PROVIDERS if provider not in unused])
    ]
    if mail == "both":
        troubles += [
            Fault(int(CLOSES * messages), "trouble", provider="ses", trouble=CLOSED),
            Fault(int(OPENS * messages), "calm", provider="ses"),
            *_troubles(chance, messages, ["ses"], begin=OPENS),
        ]
    days = [Fault(int(chance.uniform(0.1, 0.9) * messages), "day") for _ in range(DAYS)]
    # The function `release` is stopped for a while when the daily limit is closed for the first time, so that
    # waiting messages accumulate.
    first = min(day.at for day in days)
    release = [Fault(first, "stop"), Fault(first + int(LASTS * messages), "start")]
    return sorted([*kill, pump, *deploy, *troubles, *days, *release], key=lambda fault: fault.at)


def _kill(second: int, functions: Mapping[str, int], chance: random.Random) -> Fault:
    names, weights = list(functions), list(functions.values())
    first = chance.choices(names, weights)[0]
    victims = chance.sample(names, len(names))
    return Fault(second, "kill", (first, *(name for name in victims if name != first)), chance.random())


def _troubles(
    chance: random.Random, messages: int, providers: Sequence[str], begin: float = 0
) -> Iterator[Fault]:
    """Yield the faults of the providers from `begin` (a share of the messages) on: each provider has each
    fault once, one after another, with a pause in between."""
    room = (1 - begin) / len(trouble.KINDS)
    for provider in providers:
        for place, kind in enumerate(chance.sample(trouble.KINDS, len(trouble.KINDS))):
            begins = begin + room * place + chance.uniform(0, room - LASTS)
            yield Fault(int(begins * messages), "trouble", provider=provider, trouble=kind)
            yield Fault(int((begins + LASTS) * messages), "calm", provider=provider)


class Chaos:
    """Executes a plan on a running stage. `progress` returns how many messages have been put."""

    def __init__(
        self,
        stage: StageClient,
        workspace: Workspace,
        faults: list[Fault],
        progress: Callable[[], int],
        bar: Callable[[str, int], Callable[[int], None]],
    ) -> None:
        self._stage = stage
        self._workspace = workspace
        self._faults = faults
        self._progress = progress
        self._show = bar("faults", len(faults))
        self.done: list[Done] = []

    def run(self, stopped: Event) -> None:
        """Execute the faults, each at its time, until `stopped` is set. After the last one, remove the faults
        of all providers."""
        self._stage.disorder_events(SPREAD_SECONDS, DOUBLED)
        for fault in self._faults:
            while self._progress() < fault.at:
                if stopped.is_set():
                    return
                time.sleep(POLL_SECONDS)
            effect = getattr(self, f"_{fault.kind}")(fault)
            self.done.append(Done(fault.kind, effect, time.time()))
            self._show(len(self.done))
        for provider in trouble.PROVIDERS:
            self._stage.trouble(provider, {})

    def _kill(self, fault: Fault) -> str:
        """Send SIGKILL to a function's process, so that no signal handler and no `finally` block runs. Return
        the function."""
        deadline = time.monotonic() + NOBODY_SECONDS
        while time.monotonic() < deadline:
            running = workers(self._stage.running.processes["ministack"].pid)
            for name in fault.functions:
                if pids := running.get(name):
                    with suppress(ProcessLookupError):
                        os.kill(pids[int(fault.place * len(pids))], signal.SIGKILL)
                        return name
            time.sleep(POLL_SECONDS)
        raise RuntimeError(f"No function ran for {NOBODY_SECONDS:.0f} s, so none can be killed.")

    def _pump(self, _: Fault) -> str:
        running = self._stage.running
        lifecycle.start_module(self._workspace, running, "second-pump", "--emulator", running.endpoints.aws)
        return "both streams from their beginning"

    def _day(self, _fault: Fault) -> str:
        self._stage.close_day("mail", time.time() + CLOSED_SECONDS)
        return "mail"

    def _stop(self, _fault: Fault) -> str:
        self._stage.stop_release()
        return "release"

    def _start(self, _fault: Fault) -> str:
        self._stage.start_release()
        return "release"

    def _deploy(self, _: Fault) -> str:
        return f"{replace_functions(self._stage.running.endpoints.aws, self._workspace.assembly)} functions"

    def _trouble(self, fault: Fault) -> str:
        self._stage.trouble(fault.provider, SHARES[fault.trouble])
        return f"{fault.provider} {fault.trouble}"

    def _calm(self, fault: Fault) -> str:
        self._stage.trouble(fault.provider, {})
        return fault.provider


def workers(emulator: int) -> dict[str, list[int]]:
    """Return the processes that run functions, by function; only children of this emulator."""
    command = ["ps", "-axww", "-o", "pid=,ppid=,stat=,command="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return workers_in(listed, emulator)


def workers_in(listed: str, emulator: int) -> dict[str, list[int]]:
    """Return the processes that run functions, by function, from the output of `ps`."""
    workers: dict[str, list[int]] = defaultdict(list)
    for line in listed.splitlines():
        pid, parent, state, command = line.split(maxsplit=3)
        worker = _WORKER.search(command)
        if worker and int(parent) == emulator and not state.startswith("Z"):
            workers[worker[1]].append(int(pid))
    return dict(workers)
