"""Checks of `doctor`, in the order of the report. The checks of a channel are named in its descriptor."""

from collections.abc import Callable, Iterator
from pkgutil import resolve_name

from msgspec import Struct

from mailroom.channels.contracts import CHANNELS
from mailroom_ops.doctor.checks import channels, functions, queues, stacks
from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, skipped

Run = Callable[[ExaminedStage], Iterator[CheckFinding]]


class Check(Struct, frozen=True):
    """Check of a stage. `run` may raise errors of AWS."""

    subject: str
    name: str
    run: Run


def checks_of(channel: str) -> Iterator[Check]:
    """Yield the checks of a channel. If its descriptor names none, the only check reads the channel's
    secrets."""
    places = CHANNELS[channel].checks
    rows: dict[str, Run] = {name: resolve_name(place) for name, place in (places or {}).items()}
    if places is None:
        rows = {"secrets": lambda stage: channels.secrets_of(stage, channel)}
    yield from (Check(channel, name, _where_sent(channel, run)) for name, run in rows.items())


def _where_sent(channel: str, run: Run) -> Run:
    """Return a check that is skipped if the stage does not send by the channel."""

    def checked(stage: ExaminedStage) -> Iterator[CheckFinding]:
        if stage.senders(channel):
            yield from run(stage)
        else:
            yield skipped(f"No function of the stage sends by {channel}.")

    return checked


CHECKS: tuple[Check, ...] = (
    Check("stacks", "deployed", stacks.deployed),
    Check("stacks", "second copy", stacks.second_copy),
    *(check for channel in CHANNELS for check in checks_of(channel)),
    Check("functions", "mappings", functions.mappings),
    Check("functions", "concurrency", functions.concurrency),
    Check("functions", "event bus", functions.event_bus),
    Check("functions", "recipients", functions.recipients),
    Check("queues", "dead letters", queues.dead_letters),
    Check("queues", "given up", queues.given_up),
    Check("alarms", "notifying", queues.alarms_notify),
    Check("alarms", "heard", queues.alarms_heard),
    Check("alarms", "ringing", queues.alarms_ringing),
)

SUBJECTS = tuple(dict.fromkeys(each.subject for each in CHECKS))
"""Values of the option `--only`."""
