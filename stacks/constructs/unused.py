"""What no function uses of the packages: a bundle has a size to keep, and a cold start unpacks it."""

import shutil
from pathlib import Path

# Twilio's client that does not block: no function awaits.
ASYNC = (
    *("aiohttp", "aiohttp-*", "aiohttp_retry*", "aiosignal*", "aiohappyeyeballs*"),
    *("attr", "attrs*", "frozenlist*", "multidict*", "propcache*", "yarl*"),
)
UNUSED = (
    *ASYNC,
    # A class for every resource of Twilio's, 23 MB: without them its client still signs and sends requests.
    "twilio/rest/*/",
    # Voice menus, and access tokens for browsers with what makes them.
    *("twilio/twiml", "twilio/jwt", "jwt", "pyjwt-*"),
    # Short numbers (112, 911) can be neither parsed nor dialled from abroad.
    "phonenumbers/shortdata/region_*",
)
"""Globs below the folder that packages are installed into; one line to change for a package that is used
after all. An ending slash means folders alone."""


def prune(packages: Path) -> None:
    """Delete what is unused from the folder `packages`."""
    for pattern in UNUSED:
        for found in list(packages.glob(pattern)):
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink()
