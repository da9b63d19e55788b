"""What a plan, and a cost, assume where nobody says otherwise. All are seconds."""

BETWEEN = 0.1
"""From one invocation of a function to its next."""
_LATENCY = 0.1
_LATENCIES = {"sms": 0.3, "webhook": 0.3, "fax": 60.0}
"""Of channels whose messages take another time in their sender. A fax's is its whole call."""
LATENCIES_IN_WORDS = ", ".join([f"{_LATENCY:g}", *(f"{name} {each:g}" for name, each in _LATENCIES.items())])


def latency_of(channel: str) -> float:
    """Of a message in its channel's sender: the provider's answer and the ledger's writes."""
    return _LATENCIES.get(channel, _LATENCY)
