"""The answer of `init`: settings that changed, and the next steps."""

from collections.abc import Iterator
from email.utils import parseaddr

from msgspec import Struct

from mailroom_stacks.settings.settings import Settings


class Step(Struct, frozen=True):
    """A step for people: the reason, and the command or the place."""

    why: str
    how: str


class Initialized(Struct, frozen=True):
    """The result for one stage."""

    stage: str
    written: bool
    """Whether cdk.json has changed."""
    changes: list[str]
    """Settings of the former section that were changed or removed, with their former values."""
    next: list[Step]


def next_steps(settings: Settings) -> Iterator[Step]:
    """List the steps up to a deployed stage. `doctor`, the last of them, names further ones."""
    stage = settings.stage
    if "mail" in settings.channels:
        yield from _verified_senders(settings)
    if not settings.monitoring.emails and not settings.monitoring.urls:
        yield Step(
            "Nobody hears of alarms. Name an address.",
            f"mailroom init --stage {stage} --set monitoring.emails=you@example.com",
        )
    yield Step("Write the templates, and see that all fits together.", f"mailroom synth --stage {stage}")
    yield Step("Once for each account and region.", f"mailroom bootstrap --stage {stage}")
    yield Step("Deploy, with AWS credentials in the environment.", f"mailroom deploy --stage {stage}")
    yield Step(
        "See what is missing: credentials of providers, confirmations, quotas.",
        f"mailroom doctor --stage {stage}",
    )
    if not settings.deployment.deletion_protection and settings.deployment.removal == "retain":
        yield Step(
            "When the first deployment has worked, protect the tables, and deploy again.",
            f"mailroom init --stage {stage} --set deployment.deletion_protection=true",
        )
    if settings.items.unknown == "allow":
        yield Step(
            "An attribute that nothing uses, such as a misspelt variable, changes nothing. To fail such a "
            "message instead:",
            f"mailroom init --stage {stage} --set items.unknown=refuse",
        )


def _verified_senders(settings: Settings) -> Iterator[Step]:
    addresses = [parseaddr(sender)[1] for sender in settings.mail.senders]
    if settings.mail.provider == "resend":
        for domain in sorted({address.rpartition("@")[2] for address in addresses}):
            yield Step(f"Resend has to verify the domain {domain}.", "https://resend.com/domains")
        return
    for address in addresses:
        yield Step(
            f"SES has to verify {address}, or its domain, in the region that you deploy to.",
            f"aws sesv2 create-email-identity --email-identity {address}",
        )
