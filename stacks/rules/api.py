"""Rules of the HTTP API."""

import json
import re
from collections.abc import Iterator

from stacks.settings import Api

MAX_PREFIXES_BYTES = 2048
"""Lambda takes 4 KB of environment variables in all."""
_PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(role/[\w+=,.@-]+|user/[!-~]+)")


def broken_api(api: Api) -> Iterator[str]:
    """Rules of the section `api`."""
    for caller in api.payload_prefixes if api.jwt is None else ():
        if not _PRINCIPAL.fullmatch(caller):
            yield (
                f"api.payload_prefixes: {caller!r} is no caller that signs by IAM; write a role as "
                "arn:aws:iam::<account>:role/<name>, without its path, or a user's ARN."
            )
    size = len(json.dumps(api.payload_prefixes))
    if size > MAX_PREFIXES_BYTES:
        yield (
            f"api.payload_prefixes: has {size} bytes as JSON, and the function's environment has room for "
            f"{MAX_PREFIXES_BYTES}; name fewer callers, or shorter prefixes."
        )
