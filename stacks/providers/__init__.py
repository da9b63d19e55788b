"""What a channel's sender needs for its provider, beside its queue, the ledger and the payloads.

A channel that needs anything has a file here, named like its `event_type`, with a function `needs`.
"""

from importlib import import_module
from importlib.util import find_spec

from aws_cdk import Stack

from stacks.providers.around import Around
from stacks.providers.needs import Needs

__all__ = ["Around", "Needs", "needs_of"]

OURS = ("around", "needs")
"""Files here that are no channel's."""


def needs_of(event_type: str, stack: Stack, around: Around) -> Needs:
    """The needs of a channel; none where its provider is reached with what every sender has."""
    name = f"{__name__}.{event_type}"
    if event_type in OURS or find_spec(name) is None:
        return Needs()
    needed: Needs = import_module(name).needs(stack, around)
    return needed
