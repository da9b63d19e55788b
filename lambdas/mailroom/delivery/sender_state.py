"""Everything of a sender that outlives a batch: settings, clients, caches and memories."""

from collections.abc import Sequence
from typing import Generic

from mailroom.clock import backoff
from mailroom.delivery.adapter import Adapter, M, R
from mailroom.delivery.other_provider import OtherProviderChoice
from mailroom.delivery.waiting.day import Day
from mailroom.delivery.waiting.halted_run import HaltedRun
from mailroom.delivery.waiting.provider_refusals import ProviderRefusals, UndecidedRefusals
from mailroom.delivery.waiting.reason import WaitReason
from mailroom.delivery.waiting.window import ClosedWindow
from mailroom.delivery.worker import QueueRecord, Tools
from mailroom.environment import Sender
from mailroom.errors import Invalid
from mailroom.ledger.contents import Contents
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.run_states import RunStates
from mailroom.ledger.waits import Waits
from mailroom.message.message import Message
from mailroom.recipients.choices import AllowedRecipients, Choices


class SenderState(Generic[M, R]):
    """State of a sender that outlives a batch. The attempts of a batch may run in several threads."""

    payload_is_content = False
    """Whether the payload is the content for the provider (true), or JSON with further attributes of the
    message (false)."""

    def __init__(
        self,
        settings: Sender,
        adapter: Adapter[M, R],
        tools: Tools,
        *,
        choices: Choices | None = None,
        line_seconds: float | None = None,
    ) -> None:
        """Create the state of one sender.

        `choices`: suppression list and opt-outs, if the recipients are people. `line_seconds`: a look-up by
        telephone number for a try may also find messages to the same number that were submitted up to this
        many seconds before that try; None if look-ups do not search by number.
        """
        self.settings = settings
        self.adapter = adapter
        self.contracts = {settings.channel: adapter.contract}
        self.tools = tools
        self.choices = choices
        self.line_seconds = line_seconds
        self.claims_together = line_seconds is None and settings.on_unknown != "hold"
        """Whether one call may claim all first attempts of a batch. A crash then leaves the outcome of all
        these attempts unknown, so a sender with `on_unknown: hold` would hold all their messages. And a
        look-up by telephone number could mistake a message that was not sent for a similar message that was
        sent."""
        only = settings.recipients_only
        self.allowed = (
            None if only is None else AllowedRecipients(settings.channel, only, settings.redirect_to)
        )
        client = tools.once or tools.dynamodb
        self.waits = Waits(client, settings.ledger_table, settings.ledger_ttl_seconds, tools.clock)
        self.contents = Contents(tools.dynamodb, settings.contents_table)
        self.runs = RunStates(tools.dynamodb, settings.runs_table, tools.clock)
        """States of campaign runs, with a cache."""
        self.other = OtherProviderChoice(settings.other_provider, tools.clock)
        """Choice between the channel's two providers, with the latest refusals."""
        self.undecided = UndecidedRefusals()
        """Refusals whose cause is not known yet."""
        self.window = ClosedWindow(settings)
        self.day = Day(settings, tools)
        """The day's budget, with the rest of its last grant."""
        # If another provider takes the messages that this one refuses, no message waits for this one.
        closes = settings.bulk and not self.other.is_fallback
        refusals = [ProviderRefusals(tools)] if closes else []
        runs = [HaltedRun(PAUSED, "WaitsForRun"), HaltedRun(RUN_UNKNOWN, "WaitsForUnknownRun")]
        self.reasons: Sequence[WaitReason] = [*runs, self.window, *refusals, self.day]
        """Reasons to wait, in the order of asking. The day is last: only messages that need not wait for
        another reason reserve a part of it."""

    def retry_wait(self, receives: int, minimum: float = 0) -> float:
        """Return the seconds until the next try after receive number `receives`. The wait grows with each
        receive, has a random part, and lasts at least `minimum` seconds if possible.

        The wait is never longer than the maximum wait of the settings, because the queue's retention is
        derived from that maximum.
        """
        cap = self.settings.backoff_cap_seconds
        wait = backoff(receives, self.settings.backoff_seconds, cap, self.tools.jitter)
        return max(min(minimum, cap), wait)

    def retried(self, message: Message, record: QueueRecord) -> None:
        """Handle a message that the provider did not accept, or that could not be submitted, before it is
        retried. The method is empty unless a channel's subclass overrides it."""

    def attribute(self, fault: Invalid) -> str:
        """Return the invalid attribute, without an index."""
        return fault.attribute(self.adapter.contract.__struct_encode_fields__)
