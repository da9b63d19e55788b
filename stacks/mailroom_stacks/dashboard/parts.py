"""The second dashboard: the parts of a stage, for finding the cause of a problem."""

from functools import partial

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import IConstruct

from mailroom_stacks.constructs.function import function_metric, function_specs
from mailroom_stacks.constructs.http_api import access_log
from mailroom_stacks.constructs.stage_alarm import counted
from mailroom_stacks.constructs.worker import IN_FLIGHT_MOST, Work, queue_metric
from mailroom_stacks.dashboard import widgets
from mailroom_stacks.dashboard.metrics import StageMetrics, of_kind
from mailroom_stacks.dashboard.widgets import FULL
from mailroom_stacks.release import FUNCTION
from mailroom_stacks.settings.settings import Settings

FAILING_HOSTS = (
    'filter message = "an endpoint keeps failing" | stats count(*) as tries by host | sort tries desc'
)
RESPONSES = (
    "stats count(*) as requests, max(responseLatency) as slowest_ms by routeKey, status | sort requests desc"
)
SQS_LIMIT = cloudwatch.HorizontalAnnotation(value=IN_FLIGHT_MOST, label="SQS's limit")
HEIGHT = 6
graph = partial(widgets.graph, height=HEIGHT)


def parts(stage: IConstruct, settings: Settings) -> list[list[cloudwatch.IWidget]]:
    """Return the rows of widgets: functions, streams and waits, queues, and requests from and to other
    systems."""
    metrics = StageMetrics(stage, settings)
    specs = function_specs(stage)
    works = [spec for spec in specs if isinstance(spec, Work)]
    running = [
        function_metric(settings, spec.function, "ConcurrentExecutions", "Maximum").with_(label=spec.function)
        for spec in specs
    ]
    waiting = [
        queue_metric(settings, work.queue_name, "ApproximateNumberOfMessagesVisible").with_(label=work.queue)
        for work in works
    ]
    lost = [alarm.by_name for alarm in of_kind(stage, "gave-up", "dropped")]
    (server_errors,) = of_kind(stage, "api-5xx")
    released = counted(settings, FUNCTION, "Released").with_(label="released")
    delivered = counted(settings, "send-webhook", "CallbacksDelivered").with_(label="delivered")
    failing = of_kind(stage, "webhooks-failing")
    failing_log = f"/aws/lambda/{settings.name('send-webhook')}"
    campaigns = [work.function for work in works if work.queue in ("collect", "audience")]
    rows: list[list[cloudwatch.IWidget]] = [
        [
            graph("Functions: errors", of_kind(stage, "errors")),
            graph("Functions at once", running),
            graph("Functions at once, of the whole account", of_kind(stage, "concurrency")),
        ],
        [graph("Failed messages by channel and reason", metrics.failed_by_reason(), width=24, stacked=True)],
        [
            graph("Streams: behind, % of the alarm", metrics.shares("iterator-age"), lines=[FULL]),
            cloudwatch.AlarmStatusWidget(
                title="Streams: records given up or dropped", alarms=lost, width=8, height=HEIGHT
            ),
            graph("Waits: ms late (left), released (right)", of_kind(stage, "release-late"), [released]),
        ],
        [
            graph("Queues: waiting", waiting, stacked=True),
            graph("Queues: in flight", of_kind(stage, "in-flight-many"), lines=[SQS_LIMIT]),
            graph("Callbacks: delivered (left), failing for long (right)", [delivered], failing),
        ],
        [
            # The widget shows the alarm instead of its metric, because the metric has a dimension whose value
            # only the API's stack has.
            cloudwatch.AlarmWidget(title="API: 5xx", alarm=server_errors.by_name, width=8, height=HEIGHT),
            _query("API: responses by route", access_log(settings), RESPONSES),
            _query("Callbacks: endpoints that keep failing", failing_log, FAILING_HOSTS),
        ],
    ]
    if campaigns:
        rows.append([graph("Campaigns", metrics.counts(campaigns), width=24)])
    return rows


def _query(title: str, log_group: str, query: str) -> cloudwatch.LogQueryWidget:
    """Build a widget with the results of a query of CloudWatch Logs Insights."""
    return cloudwatch.LogQueryWidget(
        title=title, log_group_names=[log_group], query_string=query, width=8, height=HEIGHT
    )
