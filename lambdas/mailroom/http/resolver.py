"""Looking a host's name up, within a time of our own."""

import socket
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

Resolve = Callable[[str, float], list[str]]
"""All addresses of a name, found within so many seconds. Raises Unresolved."""


class Unresolved(Exception):
    """The name has no address now: the names' servers may be at fault, so it may have one later."""


def resolve(host: str, seconds: float) -> list[str]:
    """The system's answer. It is asked in a thread of its own, for it keeps no time-out but its own, which is
    longer than a request may take; a thread that is given up ends with that."""
    answer: SimpleQueue[list[str] | Exception] = SimpleQueue()
    Thread(target=lambda: answer.put(_ask(host)), name="resolve", daemon=True).start()
    try:
        found = answer.get(timeout=max(0.0, seconds))
    except Empty:
        raise Unresolved(f"the name {host} was not resolved in time") from None
    if isinstance(found, OSError):
        raise Unresolved(f"the name {host} does not resolve: {found.strerror}") from None
    if isinstance(found, Exception):
        raise found
    return found


def _ask(host: str) -> list[str] | Exception:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except Exception as error:  # noqa: BLE001 - raised where somebody waits for it
        return error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
