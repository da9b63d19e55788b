"""What the simulated providers tell later: held back, and let go."""

import urllib.request

from local.aws import Endpoints


def hold_back(endpoints: Endpoints) -> None:
    """No events and no callbacks from now on."""
    _post(f"{endpoints.providers}/events/pause")


def let_go(endpoints: Endpoints) -> None:
    """All that was held back, and what comes."""
    _post(f"{endpoints.providers}/events/resume")


def _post(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, method="POST")  # noqa: S310 - the stage's own
    opener.open(request, timeout=30).close()
