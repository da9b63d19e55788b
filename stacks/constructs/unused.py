"""What no function uses of the packages: a bundle has a size to keep, and a cold start unpacks it."""

import shutil
from pathlib import Path

# Twilio's client that does not block: no function awaits.
ASYNC = (
    *("aiohttp", "aiohttp-*", "aiohttp_retry*", "aiosignal*", "aiohappyeyeballs*"),
    *("attr", "attrs*", "frozenlist*", "multidict*", "propcache*", "yarl*"),
)
ALWAYS = (
    *ASYNC,
    # A class for every resource of Twilio's, 23 MB: without them its client still signs and sends requests.
    "twilio/rest/*/",
    # Voice menus, and access tokens for browsers with what makes them.
    *("twilio/twiml", "twilio/jwt", "jwt", "pyjwt-*"),
    # Short numbers (112, 911) can be neither parsed nor dialled from abroad.
    "phonenumbers/shortdata/region_*",
)
# Two thirds of powertools: Swagger's page, for browsers.
PAGE = ("aws_lambda_powertools/event_handler/openapi/swagger_ui/swagger-ui*",)
UTILITIES = "__init__|jmespath_utils"
"""What every function imports of powertools' utilities."""
UNCOMPILED = rf"aws_lambda_powertools/(event_handler/|utilities/(?!{UTILITIES}))"
UNCOMPILED_OF_API = rf"aws_lambda_powertools/utilities/(?!{UTILITIES}|data_classes|typing|metadata)"
BY_HANDLER = {
    # Of Twilio's package it takes what checks a signature, which needs nothing but the standard library.
    "twilio_callbacks": (
        *("twilio/rest", "twilio/http", "twilio/base", "twilio/auth_strategy", "twilio/credential"),
        *("requests*", "urllib3*", "certifi*", "idna*", "charset_normalizer*"),
    ),
}
"""Globs below the folder that packages are installed into; one line to change for a package that is used
after all. An ending slash means folders alone."""


def unused(handler: str) -> tuple[str, ...]:
    """The globs of what the function of `handler` does not use."""
    page = () if handler == "messages_api" else PAGE
    return (*ALWAYS, *page, *BY_HANDLER.get(handler, ()))


def uncompiled(handler: str) -> str:
    """A pattern of the paths whose bytecode the function of `handler` has no use for."""
    return UNCOMPILED_OF_API if handler == "messages_api" else UNCOMPILED


def prune(packages: Path, patterns: tuple[str, ...]) -> None:
    """Delete what `patterns` match from the folder `packages`."""
    for pattern in patterns:
        for found in list(packages.glob(pattern)):
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink()
