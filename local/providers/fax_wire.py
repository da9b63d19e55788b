"""What the simulated fax providers' answers have in common."""

import json
from datetime import UTC, datetime
from typing import Any

from local.providers.http import Reply


def json_reply(status: int, value: Any, headers: dict[str, str] | None = None) -> Reply:
    """An answer as the providers write it."""
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def iso(seconds: float) -> str:
    """Epoch seconds as the providers write them: whole seconds, UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(text: str) -> float:
    """The other way round. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
