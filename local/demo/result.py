"""All that the demo found out."""

from dataclasses import dataclass
from typing import Any

from local.demo.checks.callback_verdict import CallbackVerdict
from local.demo.checks.campaign import CampaignVerdict
from local.demo.checks.faxes import FaxVerdict
from local.demo.checks.feedback import FeedbackVerdict
from local.demo.checks.messages import ChannelVerdict
from local.demo.checks.verdict import Verdict


@dataclass(frozen=True)
class Result:
    """`channels` counts the messages of each channel by their final status, the campaign's not among them;
    `troubles` are failed
    expectations of the stage as a whole, such as a dead letter."""

    mails: Verdict
    sms: ChannelVerdict
    pushes: ChannelVerdict
    faxes: FaxVerdict
    callbacks: CallbackVerdict
    feedback: FeedbackVerdict
    campaign: CampaignVerdict
    channels: dict[str, dict[str, int]]
    troubles: list[str]

    @property
    def failures(self) -> list[str]:
        """Every sentence about what is not as it should be."""
        parts = (self.mails, self.sms, self.pushes, self.faxes, self.callbacks, self.feedback, self.campaign)
        return [*self.troubles, *(sentence for part in parts for sentence in part.failures)]

    def as_json(self) -> dict[str, Any]:
        """`.local/demo.json`: the mails' figures, those of the others under their names, all failures."""
        return {
            **self.mails.as_json(),
            "channels": self.channels,
            "sms": _without_failures(self.sms.as_json()),
            "push": _without_failures(self.pushes.as_json()),
            "faxes": _without_failures(self.faxes.as_json()),
            "callbacks": _without_failures(self.callbacks.as_json()),
            "feedback": _without_failures(self.feedback.as_json()),
            "campaign": _without_failures(self.campaign.as_json()),
            "failures": self.failures,
        }


def _without_failures(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name != "failures"}
