"""Identities of SES: the address or the domain by which SES lets a sender send."""

from collections.abc import Iterator
from typing import Any

Identity = dict[str, Any]
"""Response of SES to GetEmailIdentity or CreateEmailIdentity."""


def identity_of(ses: Any, address: str) -> tuple[str, Identity | None]:
    """Return the name and the content of the identity that SES uses for an address: the most specific one, as
    a verified domain does not help an address that failed. If there is none, return the address and None."""
    # The parents of the domain cover it too.
    for name in (address, *domains_of(address.rpartition("@")[2])):
        try:
            return name, ses.get_email_identity(EmailIdentity=name)
        except ses.exceptions.NotFoundException:
            continue
    return address, None


def domains_of(domain: str) -> list[str]:
    """Return a domain and its parents, except the top-level domain."""
    labels = domain.split(".")
    return [".".join(labels[index:]) for index in range(len(labels) - 1)]


def dkim_records(domain: str, dkim: Identity) -> Iterator[str]:
    """Yield the DNS records by which SES verifies a domain and signs its mails (Easy DKIM), from an
    identity's DkimAttributes. Yield no record for a domain with its own keys, or that SES has given up:
    https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_DkimAttributes.html."""
    zone = dkim.get("SigningHostedZone") or "dkim.amazonses.com"
    given_up = dkim.get("Status") == "FAILED" or dkim.get("SigningAttributesOrigin") == "EXTERNAL"
    for token in () if given_up else dkim.get("Tokens", ()):
        yield f"  {token}._domainkey.{domain}  CNAME  {token}.{zone}"
