"""Whether somebody would hear, and what rings."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

TOPIC = "alarms"
_SHOWN = 5


def there(look: Look) -> Iterator[Verdict]:
    """An alarm for each dead-letter queue, at least; and actions on all."""
    names = {each["AlarmName"] for each in look.alarms}
    letters = (name.removesuffix(".fifo") for name in look.queues)
    needed = [f"{look.prefix}{name}-not-empty" for name in letters if name.endswith("-dlq")]
    lacking = [name for name in needed if name not in names]
    if lacking:
        yield failed(f"These alarms are missing: {_listed(lacking)}.", look.deploy)
    elif names:
        yield ok(f"{len(names)} alarms are there, one for each dead-letter queue among them.")
    silent = [
        each["AlarmName"]
        for each in look.alarms
        if not (each.get("ActionsEnabled") and each.get("AlarmActions"))
    ]
    if silent:
        yield _graver(look)(
            f"{len(silent)} alarms ring without anybody hearing: {_listed(silent)}.",
            f"{look.deploy}; those turned off: aws cloudwatch enable-alarm-actions",
        )


def heard(look: Look) -> Iterator[Verdict]:
    """Who has subscribed to the topic of the alarms, and has confirmed it."""
    client, arn = look.client("sns"), look.arn("sns", f"{look.prefix}{TOPIC}")
    try:
        found = look.pages("sns", "list_subscriptions_by_topic", "Subscriptions", TopicArn=arn)
    except client.exceptions.NotFoundException:
        yield _graver(look)(f"There is no topic {look.prefix}{TOPIC}.", look.deploy)
        return
    pending = [each for each in found if not each["SubscriptionArn"].startswith("arn:")]
    confirmed = [each for each in found if each not in pending]
    subscribe = (
        f"aws sns subscribe --topic-arn {arn} --protocol email --notification-endpoint you@example.com"
    )
    if pending:
        yield warning(
            f"Not confirmed yet: {_protocols(pending)}.",
            "Follow the link in the mail that SNS sent; it is good for two days, then subscribe anew.",
        )
    if confirmed:
        yield ok(f"Who hears the alarms: {_protocols(confirmed)}.")
    else:
        yield _graver(look)("Nobody hears the alarms.", subscribe)


def ringing(look: Look) -> Iterator[Verdict]:
    """What rings now."""
    ringing = [each for each in look.alarms if each["StateValue"] == "ALARM"]
    for each in ringing:
        name, description = each["AlarmName"], each.get("AlarmDescription", "")
        verdict = warning if name.endswith("-warning") else failed
        yield verdict(f"{name} rings.", _page(description))
    if not look.alarms:
        yield skipped("There are no alarms.")
    elif not ringing:
        yield ok("No alarm rings.")


def _graver(look: Look) -> Any:
    """What a protected stage fails for, others are warned of: nobody watches a stage for trying things."""
    return failed if look.protected else warning


def _page(description: str) -> str:
    _, found, page = description.rpartition("See docs/")
    return f"See docs/{page}" if found else description


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _protocols(subscriptions: list[dict[str, Any]]) -> str:
    # Where to, nobody has to see: that are addresses and numbers.
    counts = Counter(each["Protocol"] for each in subscriptions)
    return ", ".join(f"{count} by {protocol}" for protocol, count in sorted(counts.items()))
