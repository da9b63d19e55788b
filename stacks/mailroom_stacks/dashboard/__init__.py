"""A stage's dashboard: from top (is anything wrong?) to bottom (why?).

It is made of names alone, so that no stack is tied to another for the sake of being looked at.
"""

import json
from collections.abc import Mapping, Sequence

from mailroom_stacks.constructs.function import FunctionSpec
from mailroom_stacks.constructs.stream import StreamWork
from mailroom_stacks.constructs.worker import Work
from mailroom_stacks.dashboard.details import campaigns, channels, functions, outside, queues, streams, waits
from mailroom_stacks.dashboard.promises import top
from mailroom_stacks.dashboard.widgets import placed
from mailroom_stacks.settings.stage import Settings


def dashboard(settings: Settings, specs: Sequence[FunctionSpec], alarms: Mapping[str, str]) -> str:
    """The body, in which CloudFormation's Sub has to fill in region, account and partition. `alarms` has the
    kind of each, by name."""
    reading = [each for each in specs if isinstance(each, Work)]
    widgets = [
        *top(settings, reading, alarms),
        *channels(settings, reading),
        *queues(settings, reading),
        *waits(settings),
        *functions(settings, specs),
        *streams(settings, [each.function for each in specs if isinstance(each, StreamWork)]),
        *outside(settings),
        *campaigns(settings, reading),
    ]
    # Twelve hours; and each graph by the period that it asks for, however long the time shown.
    body = {"start": "-PT12H", "periodOverride": "inherit", "widgets": placed(widgets)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
