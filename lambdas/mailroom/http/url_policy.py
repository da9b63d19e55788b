"""The guard in front of every URL that somebody else chose: from its text to the addresses to connect to.

A request made for others must not reach what only we can reach. So the text is read here once, strictly,
and everything after works with the parts; a name is resolved once, and whoever connects takes the
addresses that were checked and no name, so that a name cannot change its meaning in between.
"""

import re
from collections.abc import Collection, Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from msgspec import Struct

from mailroom.errors import Invalid
from mailroom.http.networks import Networks
from mailroom.http.resolver import Resolve, Unresolved, resolve
from mailroom.http.url import MAX_URL

DEFAULT_PORTS = {"https": 443, "http": 80}

_TEXT = re.compile(r"[!-\[\]-~]*")  # printable ASCII without the backslash, which browsers read as a slash
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(?:#.*)?")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::(.*))?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_HOST = 253


class Refused(Exception):
    """The URL is at fault, now and at every later try; the sentence says what would be right."""


class Target(Struct, frozen=True):
    """Where a request goes. `host` is for TLS and the Host header alone: connect to an address."""

    scheme: str
    host: str
    port: int
    path_and_query: str
    addresses: tuple[str, ...] = ()

    @property
    def authority(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class Guard:
    """The rules of a stage. `ports` empty: any port; `networks`: open though they are not public."""

    def __init__(
        self,
        *,
        schemes: Collection[str] = ("https",),
        ports: Collection[int] = (443,),
        networks: Iterable[str] = (),
        resolve: Resolve = resolve,
    ) -> None:
        self._schemes = [each for each in schemes if each in DEFAULT_PORTS]
        self._ports = ports
        self._networks = Networks(networks)
        self._resolve = resolve

    def read(self, url: str) -> Target:
        """The URL's parts, still without addresses; nothing is asked of the network. Raises Refused."""
        if len(url) > MAX_URL:
            raise Refused(f"has {len(url)} characters; use at most {MAX_URL}")
        if not _TEXT.fullmatch(url):
            raise Refused(
                "holds a space, control character, backslash or one beyond ASCII; percent-encode it, "
                "and write a host's name in its xn-- form"
            )
        found = _URL.fullmatch(url)
        if found is None:
            raise Refused("is not a URL; use one like https://hooks.example.com/path")
        scheme, authority, rest = found[1].lower(), found[2], found[3]
        if scheme not in self._schemes:
            raise Refused(f"has the scheme {scheme!r:.20}; use {' or '.join(self._schemes)}")
        host, port = self._authority(authority, DEFAULT_PORTS[scheme])
        return Target(scheme, host, port, rest if rest.startswith("/") else f"/{rest}")

    def admit(self, field: str, url: str | None) -> None:
        """Raise Invalid for a URL that can never be sent to; its host's addresses are checked when it is."""
        if url is not None:
            try:
                self.read(url)
            except Refused as fault:
                raise Invalid(field, str(fault)) from None

    def check(self, url: str, seconds: float) -> Target:
        """The target with its addresses, every one of them checked; `seconds` is the time to resolve in.

        Raises Refused, and Unresolved where it may go well later.
        """
        target = self.read(url)
        literal = ":" in target.host or _NUMBER.fullmatch(target.host.rpartition(".")[2])
        addresses = [target.host] if literal else self._resolve(target.host, seconds)
        if not addresses:
            raise Unresolved(f"the name {target.host} has no address")
        for each in addresses:
            # One bad address among good ones refuses the name: its owner chose them all. The address is not
            # quoted: the sentence may reach whoever wrote the URL, and our inner names are not theirs to map.
            problem = self._networks.problem(each)
            if problem is not None:
                raise Refused(
                    f"{target.host} {problem}" if literal else f"an address of {target.host} {problem}"
                )
        return Target(target.scheme, target.host, target.port, target.path_and_query, tuple(addresses))

    def _authority(self, authority: str, default_port: int) -> tuple[str, int]:
        if "@" in authority:
            raise Refused("carries a user's name or password; leave them out and check the signature instead")
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            raise Refused("has no usable host; use one like https://hooks.example.com/path")
        if found[2] is not None and not (_PORT.fullmatch(found[2]) and int(found[2]) < 65536):
            raise Refused("has a port that is none; use one from 1 to 65535, or leave it out with its colon")
        port = default_port if found[2] is None else int(found[2])
        if self._ports and port not in self._ports:
            raise Refused(f"has the port {port}; use {' or '.join(map(str, sorted(self._ports)))}")
        return _host(found[1].lower()), port


def _host(text: str) -> str:
    """A host in the one spelling that means the same to everybody."""
    if text.startswith("["):
        return _ipv6(text[1:-1])
    labels = text.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # No name ends in a number. Resolvers read 127.1, 0x7f.1, 2130706433 and 0177.0.0.1 as addresses.
        try:
            return str(IPv4Address(text))
        except AddressValueError:
            raise Refused("has a host that ends in a number; write an IPv4 address as 203.0.113.7") from None
    if len(text) > _MAX_HOST or not all(_LABEL.fullmatch(each) for each in labels):
        raise Refused(
            "has a host that is no DNS name; use one like hooks.example.com, of labels of up to 63 letters, "
            f"digits and hyphens, {_MAX_HOST} characters in all, with no dot at its end"
        )
    return text


def _ipv6(text: str) -> str:
    """Any full spelling is taken: they have one meaning, and it is our own spelling that is used."""
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise Refused("has a host in brackets that is no IPv6 address; use one like [2001:db8::1]") from None
    if address.scope_id is not None:
        raise Refused("has an IPv6 address with a zone; leave the zone out")
    return str(address)
