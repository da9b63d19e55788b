"""Flame graphs of the sender by py-spy: warm, and its cold start. Each library's share is read off the graph.

A sample counts while its thread holds Python's lock: the wait for an answer does not count, nor does what the
kernel does for sockets and files.
"""

import ctypes
import importlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import PICTURES, REPOSITORY, TOOLS
from bench.flames import merged, percent
from bench.functions import clean, context, queue_batch
from bench.latency import stand_ins

_SPY = (str(TOOLS / "py-spy"), "record", "--gil", "--nolineno", "--format", "flamegraph", "--output")
_RATE = ("--rate", "250")
"""Each sample stops the process: at a higher rate, what has deep stacks would seem to take longer."""
_COLD = (
    *_RATE,
    *("--", sys.executable, "-c"),
    "import os, send_mail; from bench.functions import context, queue_batch; "
    "print(send_mail.handler(queue_batch(0), context()), flush=True); os._exit(0)",
)
_TAKEN = "{'batchItemFailures': []}"
"""What a start prints: py-spy succeeds even if what it looks at does not."""
_STARTS = 30
_PTRACER, _ANY = 0x59616D61, ctypes.c_ulong(-1)
"""Arguments of Linux's prctl: without them, a process may look only into its children."""


def measure() -> dict[str, Any]:
    """Draw both; how many samples each has, and the shares in percent."""
    samples: dict[str, Counter[str]] = {}
    with stand_ins((0, 0, 0)) as url, TemporaryDirectory() as folder:
        path = f"{REPOSITORY}:{REPOSITORY / 'lambdas'}"
        variables = clean(AWS_ENDPOINT_URL=url, SUBMITS_AT_ONCE="1", PYTHONPATH=path)
        drawn = str(Path(folder) / "drawn.svg")
        warm, cold = (sys.executable, "-m", "bench.profile", drawn), (*_SPY, drawn, *_COLD)
        for name, command, runs in (("warm", warm, 1), ("cold", cold, _STARTS)):
            graphs = []
            for _ in range(runs):
                done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
                if name == "cold" and _TAKEN not in done.stdout:
                    raise RuntimeError(done.stderr)
                graphs.append(Path(drawn).read_text())
            graph, samples[name] = merged(graphs)
            (PICTURES / f"send_mail_{name}.svg").write_text(graph)
    return {
        "profile_samples": {name: each.total() for name, each in samples.items()},
        "profile_percent": {name: percent(each) for name, each in samples.items()},
    }


def _warm(graph: str) -> None:
    """Send mails in this process, which has sent some before, for as long as py-spy looks."""
    handler = importlib.import_module("send_mail").handler
    handler(queue_batch(0), context())
    ctypes.CDLL(None).prctl(_PTRACER, _ANY)
    spy = subprocess.Popen(
        [*_SPY, graph, "--pid", str(os.getpid()), *_RATE, "--duration", "40"], stdout=subprocess.DEVNULL
    )
    first = 0
    while spy.poll() is None:
        first += 10
        if handler(queue_batch(first), context())["batchItemFailures"]:
            raise RuntimeError("a record came back; the graph would be wrong")
    sys.exit(spy.returncode)


if __name__ == "__main__":
    _warm(sys.argv[1])
