"""How fast the deployed senders go."""

from ops.doctor.look import Look


def deployed_rate(look: Look, channel: str) -> float | None:
    """Messages a second of a channel, all lanes together: workers by the wait before each submit. None: no
    sender keeps to a rate."""
    workers = {each.function: each.concurrency for each in look.mappings}
    rates = []
    for each in look.senders(channel):
        pace = float(each.environment.get("PACE_SECONDS", "0"))
        together = workers.get(each.name)
        if pace > 0 and together:
            rates.append(together / pace)
    return sum(rates) if rates else None
