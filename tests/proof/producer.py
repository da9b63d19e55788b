"""Standard input of a row's producer, a program that puts mails into the row's queue and shows its content.

This module imports only the standard library, because each row's own Python imports it.
"""

import json
import sys
from collections.abc import Callable, Sequence

State = dict[str, str]
"""Texts `waiting` and `failed`. The first contains the names of mails that the system will or may send, the
second the names of mails whose failure the system has recorded."""


def serve(
    put: Callable[[Sequence[str]], object],
    state: Callable[[], State],
    report: Callable[[Sequence[str]], object] = lambda _: None,
) -> None:
    """Carry out each line of standard input: `put NAME...`, `report REFERENCE...` or `state`. Print the state
    after it."""
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "put":
            put(words)
        elif verb == "report":
            report(words)
        print(json.dumps(state()), flush=True)
