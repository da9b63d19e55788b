"""The bottom of the dashboard: SES's judgement, endpoints, callers, campaigns."""

from collections.abc import Iterator

from stacks.constructs.inventory import Inventory
from stacks.dashboard.promises import alarm_arn
from stacks.dashboard.widgets import Mark, Widget, expression, found, graph, heading, metric, ringing
from stacks.settings.stage import Settings

FAILING_HOSTS = (
    'filter message = "an endpoint keeps failing" | stats count(*) as tries by host | sort tries desc'
)
ANSWERS = (
    "stats count(*) as requests, max(responseLatency) as slowest_ms by routeKey, status | sort requests desc"
)


def outside(settings: Settings, has: Inventory) -> Iterator[Widget]:
    """What do others say?"""
    yield heading(
        "Outside", "SES's judgement of the account; endpoints that keep failing; the API's answers."
    )
    rates = settings.monitoring.ses
    yield _rate("Bounce", rates.bounce_rate_warning, rates.bounce_rate)
    yield _rate("Complaint", rates.complaint_rate_warning, rates.complaint_rate)
    sender = settings.name("send-webhook")
    yield found("Endpoints that keep failing: tries", f"/aws/lambda/{sender}", FAILING_HOSTS, width=12)
    callbacks = [
        metric("Mailroom", name, {"service": "send-webhook", "stage": settings.stage})
        for name in ("CallbacksDelivered", "WebhooksFailing")
    ]
    yield graph("Callbacks", callbacks, stat="Sum", width=12)
    for api in has.apis:
        yield ringing(f"{api.name}: answered 5xx", alarm_arn(settings.name("api-5xx")), width=12)
        yield found(f"{api.name}: answers", api.log_group, ANSWERS, width=12)


def campaigns(settings: Settings, has: Inventory) -> Iterator[Widget]:
    """How far are they? Nothing where the stage has none."""
    works = [queue.function for queue in has.queues if queue.short in ("collect", "audience")]
    if not works:
        return
    yield heading(
        "Campaigns", f"People found and messages put; `mailroom campaign list --stage {settings.stage}`."
    )
    for function in works:
        search = f'{{Mailroom,service,stage}} service="{function}" stage="{settings.stage}"'
        counted = expression(f"SEARCH('{search}', 'Sum', 300)", id="counted")
        yield graph(f"{function}: what it counts", [counted], stat="Sum", width=12)


def _rate(of: str, warning: float, alarm: float) -> Widget:
    marks = [Mark("warning", warning), Mark("alarm", alarm)]
    line = metric("AWS/SES", f"Reputation.{of}Rate", {})
    return graph(f"SES: {of.lower()} rate", [line], stat="Average", marks=marks, width=12, period=3600)
