"""Rules of the push channel."""

from collections.abc import Iterator
from itertools import pairwise

from stacks.settings import Settings


def broken_push(settings: Settings) -> Iterator[str]:
    """Rules of the section `push`, where there is one."""
    push = settings.push
    if push is None:
        return
    if not push.platform_applications and not push.topics:
        yield (
            "push.platform_applications: is empty, and so is topics, so a push may go nowhere; name one, or "
            "set push to null and remove channels.push."
        )
    for one, other in pairwise(sorted(push.platform_applications.values())):
        if one == other:
            # A token's mark in the suppression list goes by the application's name.
            yield f"push.platform_applications: {one!r} has two names; use one."
