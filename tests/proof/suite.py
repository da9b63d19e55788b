"""Runs rows of the table: each is killed at each point, five times, and the worst run counts."""

import os
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from queue import Empty, SimpleQueue

from lab import SHORT, size
from mailroom_local.processes import StartError
from tests.proof.rows import LANES, servers
from tests.proof.ses import SesServer
from tests.proof.trial import COLUMNS, Lane, Row, Unjudged

RUNS = int(os.environ.get("RUNS") or size(5, 1))
ROWS_AT_ONCE = 6
_ENDING = threading.Event()
Counts = dict[str, int]
Result = Counts | str
"""Counts of a row, or the reason why the row cannot be judged."""
Places = SimpleQueue[tuple[int, int]]


def count_rows(rows: Mapping[str, Row]) -> dict[str, Result]:
    """Return the result of each row."""
    logs = Path(tempfile.mkdtemp(prefix="mailroom-proof-logs-"))
    ses = SesServer()
    threads = ThreadPoolExecutor(ROWS_AT_ONCE)
    try:
        results = list(threads.map(lambda name: _count(rows[name], ses, logs / name), rows))
    finally:
        _ENDING.set()  # an interrupted run makes no more trials
        threads.shutdown(cancel_futures=True)
        _ENDING.clear()
        ses.close()
    if not any(isinstance(result, str) for result in results):
        shutil.rmtree(logs)
    return dict(zip(rows, results, strict=True))


def _count(row: Row, ses: SesServer, logs: Path) -> Result:
    number = size(LANES, 1)
    try:
        with ExitStack() as stack:
            ports = stack.enter_context(servers(row, number))
            lanes = [Lane(row, ses, ports, str(place), logs / str(place)) for place in range(number)]
            for lane in lanes:
                stack.callback(lane.close)
            points = lanes[0].points()
            # The short form stops each worker once, at a point where no mail has to wait for a time-out.
            stops = [points - 1] if SHORT else range(points)
            places: Places = SimpleQueue()
            for place in product(range(RUNS), stops):
                places.put(place)
            with ThreadPoolExecutor(number) as threads:
                runs = worst(
                    pair for pairs in threads.map(lambda lane: _trials(lane, places), lanes) for pair in pairs
                )
    except (StartError, Unjudged) as reason:
        return str(reason)
    print(f"{row.label}: {runs}", file=sys.stderr, flush=True)
    return runs


def _trials(lane: Lane, places: Places) -> list[tuple[int, Counter[str]]]:
    """Make the trials of `places` until none is left. Return the number of the run and the result of each."""
    results = []
    while not _ENDING.is_set():
        try:
            run, stop = places.get_nowait()
        except Empty:
            break
        results.append((run, lane.trial(stop)))
    return results


def worst(results: Iterable[tuple[int, Counter[str]]]) -> Counts:
    """Return the highest count of each column among the runs."""
    runs: dict[int, Counter[str]] = {}
    for run, counts in results:
        runs.setdefault(run, Counter()).update(counts)
    return {column: max(counts[column] for counts in runs.values()) for column in COLUMNS}
