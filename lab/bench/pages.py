"""How long each page of the console takes, over a stage with many messages on the emulator."""

import http.client
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from lab import size
from lab.bench.emulator import PUT_BATCH, WORKSPACE, client, running_stage
from mailroom.aws.dynamo_values import image_of
from mailroom.clock import iso
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import LEDGER, MAILBOX, State

MESSAGES, FAILED = size(100_000, 500), size(1_000, 5)
ROUNDS = size(15, 1)
THREADS = 4
PAGES = {
    "overview": "/",
    "message": "/message?id=m-7&channel=mail",
    "mail in its frame": "/message/mail?id=m-7&channel=mail",
    "resend": "/message/resend?id=m-0&channel=mail",
    "repair": "/message/repair?id=m-7&channel=mail",
    "failures": "/failures",
    # A look into a queue polls it for a second, and is asked for.
    "dead letters": "/dead-letters",
    "campaigns": "/campaigns",
    "runs": "/campaigns?campaign=weekly-followers",
    "form": "/send?channel=mail",
    "inbox": "/inbox",
}


def measure() -> dict[str, Any]:
    """The median, and the longest, of each page's milliseconds after its first time."""
    with running_stage(lambda _: None, console=True) as running:
        running.processes["pump"].stop()  # or each message would be worked on
        _fill(running)
        return {"console_messages": MESSAGES, "console_ms": _measured(str(lifecycle.console_url(WORKSPACE)))}


def _fill(running: State) -> None:
    dynamodb = client("dynamodb", running)
    now = time.time()
    mail = {"event_type": "mail", "email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace"}
    for id_ in ("m-0", "m-7"):
        dynamodb.put_item(TableName=MAILBOX, Item=image_of({"id": id_, **mail}))

    def put(first: int) -> None:
        items = [_item(number, now) for number in range(first, first + PUT_BATCH)]
        requests = [{"PutRequest": {"Item": image_of(each)}} for each in items]
        dynamodb.batch_write_item(RequestItems={LEDGER: requests})

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(put, range(0, MESSAGES, PUT_BATCH)))


def _item(number: int, now: float) -> dict[str, Any]:
    """A message as the ledger has it; each hundredth has failed."""
    ended = int((now - number / 100) * 1000)
    item = {
        "id": f"m-{number}",
        "event_type": "mail",
        "status": "delivered",
        "to": "ada@example.com",
        "attempts": 1,
        "provider": "ses",
        "provider_id": f"ses-{number}",
        "startedAt": ended - 100,
        "completedAt": ended,
        "updatedAt": iso(ended / 1000),
        "history": [{"at": ended, "status": "sent"}],
    }
    if number % (MESSAGES // FAILED) == 0:
        error = {"code": "rejected", "message": "550 no"}
        item |= {"status": "failed", "error": error, "failed_on": f"{iso(ended / 1000)[:10]}#mail"}
    return item


def _measured(url: str) -> dict[str, list[float]]:
    parts = urlsplit(url)
    home = parts.path.rstrip("/")
    connection = http.client.HTTPConnection(parts.netloc)
    _, cookie = _get(connection, f"{home}/?{parts.query}", {})
    headers = {"Cookie": cookie.partition(";")[0]}
    found = {}
    for name, path in PAGES.items():
        _get(connection, home + path, headers)  # makes the clients
        times = [_get(connection, home + path, headers)[0] for _ in range(ROUNDS)]
        found[name] = [round(1000 * statistics.median(times), 1), round(1000 * max(times), 1)]
    connection.close()
    return found


def _get(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> tuple[float, str]:
    """Seconds until the page is there whole, and the cookie that it sets."""
    began = time.perf_counter()
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    reply.read()
    took = time.perf_counter() - began
    if reply.status != 200:
        raise RuntimeError(f"{path} answered {reply.status}")
    return took, reply.headers.get("Set-Cookie", "")
