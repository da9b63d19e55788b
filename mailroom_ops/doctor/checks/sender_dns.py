"""Checks of the DNS records by which mail providers recognize the mails of a sender's domain: SPF with the
MAIL FROM domain of SES, and DMARC.

Sources: https://docs.aws.amazon.com/ses/latest/dg/mail-from.html,
https://docs.aws.amazon.com/ses/latest/dg/send-email-authentication-dmarc.html, and RFC 9989, section 4.10.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import dns.exception
import dns.resolver

from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning
from mailroom_ops.shared.identities import Identity, domains_of

LOOK_UP_SECONDS = 3
_INCLUDES_SES = re.compile(r"\s[+~?]?include:amazonses\.com\.?(\s|$)", re.IGNORECASE)
_DMARC, _SPF = re.compile(r"v\s*=\s*DMARC1\s*(;|$)"), re.compile(r"v=spf1( |$)", re.IGNORECASE)


def authentication(
    domains: Mapping[str, Identity], addresses: Iterable[str], region: str
) -> Iterator[CheckFinding]:
    """Check SPF for the domains that are identities of SES, and DMARC for the domains of the senders'
    addresses. If DNS does not answer, the rest is skipped."""
    try:
        for domain, identity in domains.items():
            yield _spf(domain, identity.get("MailFromAttributes", {}), region)
        for domain in dict.fromkeys(address.rpartition("@")[2] for address in addresses):
            yield _dmarc(domain)
    except dns.exception.DNSException as error:
        yield skipped(f"SPF and DMARC were not checked, as DNS did not answer: {type(error).__name__}.")


def _spf(domain: str, attributes: Mapping[str, str], region: str) -> CheckFinding:
    mail_from = attributes.get("MailFromDomain") or f"bounces.{domain}"
    mx = f"{mail_from}  MX  10 feedback-smtp.{region}.amazonses.com"
    txt = f'{mail_from}  TXT  "v=spf1 include:amazonses.com ~all"'
    if not attributes.get("MailFromDomain"):
        return warning(
            f"SPF does not cover {domain}, as its mails have a MAIL FROM domain of SES: they pass DMARC by "
            "DKIM only.",
            f"Add to the DNS: {mx}, and {txt}. Then: aws sesv2 put-email-identity-mail-from-attributes "
            f"--email-identity {domain} --mail-from-domain {mail_from}",
        )
    if attributes["MailFromDomainStatus"] != "SUCCESS":
        refuses = attributes["BehaviorOnMxFailure"] == "REJECT_MESSAGE"
        effect = f"refuses the mails of {domain}" if refuses else "uses a MAIL FROM domain of its own"
        sentence = f"SES has not found the MX record of the MAIL FROM domain {mail_from}, and {effect}."
        return (failed if refuses else warning)(sentence, f"Add to the DNS: {mx}")
    policies = [text for text in _texts(mail_from) if _SPF.match(text)]
    # Two SPF records of a domain are an error, so that neither is valid.
    if len(policies) == 1 and _INCLUDES_SES.search(policies[0]):
        return ok(f"SPF covers mails of {domain} by their MAIL FROM domain {mail_from}.")
    return warning(
        f"{mail_from}, the MAIL FROM domain of {domain}, does not have one SPF record that includes SES.",
        f"Its DNS must have one: {txt}",
    )


def _dmarc(domain: str) -> CheckFinding:
    for name in domains_of(domain):
        policies = [text for text in _texts(f"_dmarc.{name}") if _DMARC.match(text)]
        # Several DMARC records of a name are ignored.
        if len(policies) == 1:
            return ok(f"{domain} has a DMARC record: _dmarc.{name}.")
    return warning(
        f"{domain} is without a DMARC record: Gmail and Yahoo refuse bulk mails without one.",
        f'Add to the DNS: _dmarc.{domain}  TXT  "v=DMARC1; p=none"',
    )


def _texts(name: str) -> list[str]:
    """Return the TXT records of a name. Raises DNSException."""
    try:
        answer = dns.resolver.resolve(name, "TXT", lifetime=LOOK_UP_SECONDS)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    return [b"".join(record.strings).decode(errors="replace") for record in answer]
