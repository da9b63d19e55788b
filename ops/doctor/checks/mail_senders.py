"""Whether the stage's senders may be used, and whether what they send is signed."""

from collections.abc import Iterator
from email.utils import parseaddr
from typing import Any

from ops.doctor.checks.mail_account import NO_MAIL
from ops.doctor.deployed import json_of
from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

_CONSOLE = "https://console.aws.amazon.com/ses/home#/identities"
Identity = dict[str, Any]


def senders(look: Look) -> Iterator[Verdict]:
    """Each sender's identity: its address's, its domain's, or a domain's above that."""
    addresses = _addresses(look)
    if not addresses:
        yield skipped(NO_MAIL)
    yield from _as_written(look, addresses)
    asked: dict[str, Identity | None] = {}
    for address in addresses:
        names = (address, *_domains(address.rpartition("@")[2]))
        for name in names:
            if name not in asked:
                asked[name] = _identity(look, name)
        # SES takes the most specific one there is: an address that failed is not saved by its domain.
        name = next((each for each in names if asked[each] is not None), "")
        yield _verified(address, name, asked[name] if name else None)
    for name, identity in asked.items():
        if identity is not None and "@" not in name:
            yield from _domain(name, identity)


def _addresses(look: Look) -> list[str]:
    senders = (each.environment.get("MAIL_SENDERS", "[]") for each in look.senders("mail"))
    found = (parseaddr(sender)[1] for text in senders for sender in json_of(text))
    return list(dict.fromkeys(found))


def _as_written(look: Look, deployed: list[str]) -> Iterator[Verdict]:
    settings = look.written.settings
    if settings is None or not deployed:
        return
    written = [parseaddr(sender)[1] for sender in settings.mail.senders]
    if set(written) != set(deployed):
        yield warning(
            f"The settings have the senders {', '.join(written)}; deployed are {', '.join(deployed)}.",
            look.deploy,
        )


def _domains(domain: str) -> Iterator[str]:
    """The domain, and those above it that could be somebody's own."""
    labels = domain.split(".")
    for at in range(len(labels) - 1):
        yield ".".join(labels[at:])


def _identity(look: Look, name: str) -> Identity | None:
    client = look.client("sesv2")
    try:
        identity: Identity = client.get_email_identity(EmailIdentity=name)
    except client.exceptions.NotFoundException:
        return None
    return identity


def _verified(address: str, name: str, identity: Identity | None) -> Verdict:
    if identity is None:
        domain = address.rpartition("@")[2]
        return failed(
            f"{address} is no identity of SES's here, and neither is its domain: no mail of it is sent.",
            f"aws sesv2 create-email-identity --email-identity {domain}",
        )
    if identity.get("VerifiedForSendingStatus"):
        return ok(f"{address} may send, as {name} is verified.")
    state = identity.get("VerificationStatus", "not verified").lower()
    return failed(f"{address} may not send: the identity {name} is {state}.", f"Verify it: {_CONSOLE}/{name}")


def _domain(name: str, identity: Identity) -> Iterator[Verdict]:
    dkim = identity.get("DkimAttributes", {})
    if dkim.get("SigningEnabled") and dkim.get("Status") == "SUCCESS":
        yield ok(f"Mails of {name} are signed (DKIM).")
    else:
        yield warning(
            f"Mails of {name} are not signed by it (DKIM: {dkim.get('Status', 'not set up')}): large mail "
            "providers refuse or hide them.",
            f"Put the CNAME records into its DNS: {_CONSOLE}/{name}",
        )
    yield _mail_from(name, identity.get("MailFromAttributes", {}))


def _mail_from(name: str, attributes: dict[str, str]) -> Verdict:
    domain, status = attributes.get("MailFromDomain"), attributes.get("MailFromDomainStatus")
    if not domain:
        return warning(
            f"{name} has no MAIL FROM domain of its own: SPF speaks for amazonses.com, not for you.",
            f"aws sesv2 put-email-identity-mail-from-attributes --email-identity {name} "
            f"--mail-from-domain bounce.{name}",
        )
    if status == "SUCCESS":
        return ok(f"Bounces of {name} go to its own MAIL FROM domain.")
    sentence = f"The MAIL FROM domain {domain} is not usable: {status}."
    fix = f"Put its MX and TXT records into the DNS: {_CONSOLE}/{name}"
    rejects = attributes.get("BehaviorOnMxFailure") == "REJECT_MESSAGE"
    return failed(f"{sentence} Mails are refused for it.", fix) if rejects else warning(sentence, fix)
