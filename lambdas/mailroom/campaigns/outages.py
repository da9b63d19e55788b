"""Whether a fault is everybody's for the moment, or somebody's for good."""

import sys
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError


def is_outage(error: Exception) -> bool:
    """Whether nobody could have been composed: the network, a database, AWS. Not every OSError is one: that
    something is not found (404) may be true of one person alone."""
    if isinstance(error, (ConnectionError, TimeoutError, BotoCoreError, ClientError)):
        return True
    # Only who has loaded it can have raised its errors, and it takes a while to load.
    psycopg: Any = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.OperationalError)
