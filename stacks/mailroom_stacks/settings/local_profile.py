"""The times of the stage on this machine: what takes AWS minutes is seen within seconds there."""

from typing import Any

_SENDER = {
    "timeout_seconds": 13,
    "submit_seconds": 8,
    "record_seconds": 2,
    "longest_throttling_seconds": 300,
    "backoff_seconds": 1,
    "backoff_cap_seconds": 20,
    "misconfigured_seconds": 0,
}
_READER = {"timeout_seconds": 20, "longest_throttling_seconds": 300}
_STREAM = {"enabled": False, "retries": 4}
"""The pump reads the streams there, as Lambda does on AWS."""

LOCAL: dict[str, Any] = {
    "channels": {"*": _SENDER},
    "fax": {
        **_SENDER,
        "timeout_seconds": 8,
        "submit_seconds": 4,
        "poll_seconds": 0.3,
        "longest_fax_seconds": 301,
        "visibility_margin_seconds": 2,
        "retry_delay_seconds": 1,
        "retry": {"timeout_seconds": 10},
    },
    "webhook": {
        "timeout_seconds": 20,
        "request_seconds": 5,
        "misconfigured_seconds": 0,
        "delays_seconds": [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 5, 5, 5, 5],
        "retry_after_cap_seconds": 60,
        # The receiver here has no certificate.
        "allowed_schemes": ["https", "http"],
    },
    "feedback": _READER,
    "api": {"shares": {"callbacks": 0.5}, "messages": {"timeout_seconds": 20}},
    "campaigns": {"collect": _READER, "compose": _READER},
    "databases": {"*": {"connect_seconds": 2, "statement_seconds": 6}},
    "dead_letters": {"timeout_seconds": 50, "every_minutes": 5},
    "dispatch": _STREAM,
    "outcomes": _STREAM,
    "lease_margin_seconds": 2,
    "deployment": {"bundle_platform": "host"},
}
"""By section, and by row (`*`) of a table. A stage's own settings go before these."""
