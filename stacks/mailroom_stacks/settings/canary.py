"""Numbers and rules of the canary, a mail to the provider's test address every few minutes."""

from collections.abc import Iterator, Mapping

from mailroom.providers import provider
from mailroom_stacks.settings.channels import Channel, Mail
from mailroom_stacks.settings.monitoring import Monitoring
from mailroom_stacks.settings.recipients import Recipients


def canary_faults(
    monitoring: Monitoring, channels: Mapping[str, Channel], mail: Mail, recipients: Recipients | None
) -> Iterator[str]:
    """Yield violations of the rules for a stage whose setting `monitoring.canary` is true."""
    address = provider(mail.provider).test_address
    if "mail" not in channels:
        yield "monitoring.canary: sends mails, but channels.mail is missing; add channels.mail, or use false."
        return
    if not address:
        yield f"monitoring.canary: {mail.provider} has no test address; use false."
        return
    limits = [limit for _, limit in channels["mail"].days]
    if limits and min(limits) <= monitoring.canaries_a_day:
        yield (
            f"monitoring.canary: sends {monitoring.canaries_a_day} mails a day, but channels.mail.per_day "
            f"allows only {min(limits)}; raise per_day, or use false."
        )
    if recipients and {address, address.partition("@")[2]}.isdisjoint(recipients.only):
        yield (
            f"monitoring.canary: sends to {address}, which recipients.only does not contain; add it, "
            "or use false."
        )
