"""A stage's dashboard: from top (is anything wrong?) to bottom (why?).

It is made of names alone, so that no stack is tied to another for the sake of being looked at.
"""

import json

from stacks.constructs.alarms import Inventory
from stacks.dashboard.details import campaigns, channels, functions, outside, queues, streams
from stacks.dashboard.promises import top
from stacks.dashboard.widgets import placed
from stacks.settings.stage import Settings

SECTIONS = (top, channels, queues, functions, streams, outside, campaigns)


def dashboard(settings: Settings, has: Inventory) -> str:
    """The body, in which CloudFormation's Sub has to fill in region, account and partition."""
    widgets = [widget for section in SECTIONS for widget in section(settings, has)]
    # Twelve hours; and each graph by the period that it asks for, however long the time shown.
    body = {"start": "-PT12H", "periodOverride": "inherit", "widgets": placed(widgets)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
