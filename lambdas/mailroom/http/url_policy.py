"""Checks of URLs that users have chosen, such as webhook URLs. The result contains the IP addresses to
connect to.

A request to a user's URL must not reach internal hosts (server-side request forgery). So the URL is parsed
strictly here, and later code uses only the parsed parts. The host's name is resolved once, and the connection
is made to the checked addresses, so that another address cannot be returned after the check (DNS rebinding).
"""

import re
import socket
from collections.abc import Callable, Collection, Iterable
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from queue import Empty, SimpleQueue
from threading import Thread

from msgspec import Struct

from mailroom.errors import ConnectError, Invalid, InvalidRequest

MAX_URL = 2000
"""Maximum number of characters of a URL."""
DEFAULT_PORTS = {"https": 443, "http": 80}

_HOST_OF = re.compile(
    r"https?://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:@\[\]]+)(?::[0-9]*)?(?:[/?#][!-~]*)?", re.IGNORECASE
)
_PRINTABLE = re.compile(r"[!-~]+")
_TEXT = re.compile(r"[!-\[\]-~]*")  # printable ASCII without the backslash, which browsers read as a slash
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(?:#.*)?")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::(.*))?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_HOST = 253

Resolve = Callable[[str, float], list[str]]
"""Function that returns all addresses of a host name within a number of seconds. It raises ConnectError."""


def resolve(host: str, seconds: float) -> list[str]:
    """Return the addresses of a host name, resolved by the operating system within `seconds`. Raises
    ConnectError.

    The system's own time-out is longer than a request may take. So a thread calls the system, and if its
    result is late, the thread continues in the background.
    """
    results: SimpleQueue[list[str] | Exception] = SimpleQueue()
    Thread(target=lambda: results.put(_look_up(host)), name="resolve", daemon=True).start()
    try:
        result = results.get(timeout=max(0.0, seconds))
    except Empty:
        raise ConnectError(f"cannot be reached: the name {host} was not resolved in time") from None
    if isinstance(result, OSError):
        raise ConnectError(
            f"cannot be reached: the name {host} does not resolve: {result.strerror}"
        ) from None
    if isinstance(result, Exception):
        raise result
    return result


def _look_up(host: str) -> list[str] | Exception:
    try:
        results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except Exception as error:  # noqa: BLE001 - `resolve` raises it, in the thread that waits
        return error
    return list(dict.fromkeys(str(address[0]) for *_, address in results))


def host_of(url: str) -> str:
    """Return the host of an http or https URL in lower case, or "" if the URL lacks a host.

    The URL is not checked: `UrlPolicy` does that.
    """
    match = _HOST_OF.fullmatch(url)
    host = match[1].lower() if match else ""
    return host if _PRINTABLE.fullmatch(host) else ""


class RequestTarget(Struct, frozen=True):
    """Parts of a checked URL."""

    scheme: str
    host: str
    """Host name for TLS and the Host header. Connections must use `addresses` instead."""
    port: int
    path_and_query: str
    addresses: tuple[str, ...] = ()
    """Checked addresses to connect to; empty in the result of `UrlPolicy.read`."""

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class UrlPolicy:
    """Rules of a stage for the URLs that it may call."""

    def __init__(
        self,
        *,
        schemes: Collection[str] = ("https",),
        ports: Collection[int] = (443,),
        networks: Iterable[str] = (),
        resolve: Resolve = resolve,
    ) -> None:
        """Create the policy. `schemes` and `ports` are the allowed schemes and ports; if `ports` is empty,
        any port is allowed. `networks` (CIDR blocks) are allowed even if they are not public.

        Raises ValueError for an invalid CIDR block.
        """
        self._schemes = [scheme for scheme in schemes if scheme in DEFAULT_PORTS]
        self._ports = ports
        self._networks = _networks(*networks)
        self._resolve = resolve

    def read(self, url: str) -> RequestTarget:
        """Return the parts of a URL without resolving its host, so that `addresses` is empty. Raises
        InvalidRequest."""
        if len(url) > MAX_URL:
            raise InvalidRequest(f"has {len(url)} characters; use at most {MAX_URL}")
        if not _TEXT.fullmatch(url):
            raise InvalidRequest(
                "holds a space, control character, backslash or non-ASCII character; percent-encode it, "
                "and write a host's name in its xn-- form"
            )
        match = _URL.fullmatch(url)
        if match is None:
            raise InvalidRequest("is not a URL; use one like https://hooks.example.com/path")
        scheme, authority, path = match[1].lower(), match[2], match[3]
        if scheme not in self._schemes:
            raise InvalidRequest(f"has the scheme {scheme!r:.20}; use {' or '.join(self._schemes)}")
        host, port = self._authority(authority, DEFAULT_PORTS[scheme])
        return RequestTarget(scheme, host, port, path if path.startswith("/") else f"/{path}")

    def validate(self, field: str, url: str | None) -> None:
        """Raise Invalid for the attribute `field` if the URL is invalid, whatever its host's addresses are.
        Only `check` checks the addresses."""
        if url is not None:
            try:
                self.read(url)
            except InvalidRequest as fault:
                raise Invalid(field, str(fault)) from None

    def check(self, url: str, seconds: float) -> RequestTarget:
        """Return the parts of a URL, after resolving its host within `seconds` and checking each address.

        Raises InvalidRequest, or ConnectError if a later try may succeed.
        """
        target = self.read(url)
        literal = ":" in target.host or _NUMBER.fullmatch(target.host.rpartition(".")[2])
        addresses = [target.host] if literal else self._resolve(target.host, seconds)
        if not addresses:
            raise ConnectError(f"cannot be reached: the name {target.host} has no address")
        for address in addresses:
            # One forbidden address makes the whole name invalid, because the name's owner chose all its
            # addresses. The error does not quote the address: the URL's author may read the error, and must
            # not learn the addresses of internal names.
            problem = self._problem(address)
            if problem is not None:
                raise InvalidRequest(
                    f"{target.host} {problem}" if literal else f"an address of {target.host} {problem}"
                )
        return RequestTarget(target.scheme, target.host, target.port, target.path_and_query, tuple(addresses))

    def _authority(self, authority: str, default_port: int) -> tuple[str, int]:
        if "@" in authority:
            raise InvalidRequest(
                "carries a user's name or password; leave them out and check the signature instead"
            )
        match = _AUTHORITY.fullmatch(authority)
        if match is None:
            raise InvalidRequest("has no usable host; use one like https://hooks.example.com/path")
        if match[2] is not None and not (_PORT.fullmatch(match[2]) and int(match[2]) < 65536):
            raise InvalidRequest("has no valid port; use one from 1 to 65535, or leave it out with its colon")
        port = default_port if match[2] is None else int(match[2])
        if self._ports and port not in self._ports:
            raise InvalidRequest(f"has the port {port}; use {' or '.join(map(str, sorted(self._ports)))}")
        return _host(match[1].lower()), port

    def _problem(self, text: str) -> str | None:
        """Return the reason why an address is refused, as the predicate of a sentence, or None if the address
        is allowed."""
        address = ip_address(text)
        if _in(address, _IPV4_IN_IPV6):
            address = IPv4Address(address.packed[12:])
        if _in(address, _NEVER):
            return "is link-local or a cloud's metadata service, which is never allowed; use a public host"
        if _in(address, _CARRIERS) or address.packed[8:12] in _ISATAP:
            return "contains an IPv4 address, as in 6to4 and Teredo, which is never allowed; use that address"
        if _in(address, _NOT_PUBLIC) and not _in(address, self._networks):
            return "is not public; use a host on the internet, or add its network to allowed_networks"
        return None


def _host(text: str) -> str:
    """Return a host in a form that all URL parsers interpret in the same way. Raises InvalidRequest."""
    if text.startswith("["):
        return _ipv6(text[1:-1])
    labels = text.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # No valid domain name ends in a number, but resolvers read such texts (127.1, 0x7f.1, 2130706433 and
        # 0177.0.0.1) as IPv4 addresses.
        try:
            return str(IPv4Address(text))
        except AddressValueError:
            raise InvalidRequest(
                "has a host that ends in a number; write an IPv4 address as 203.0.113.7"
            ) from None
    if len(text) > _MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidRequest(
            "has a host that is not a DNS name; use one like hooks.example.com, of labels of up to 63 "
            f"letters, digits and hyphens, {_MAX_HOST} characters in all, with no dot at its end"
        )
    return text


def _ipv6(text: str) -> str:
    """Return an IPv6 address in its canonical form. Any complete form is valid, because all parsers interpret
    it in the same way."""
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise InvalidRequest(
            "has a host in brackets that is not an IPv6 address; use one like [2001:db8::1]"
        ) from None
    if address.scope_id is not None:
        raise InvalidRequest("has an IPv6 address with a zone; leave the zone out")
    return str(address)


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# Link-local addresses, and AWS's part of fd00::/8. Services at these addresses trust every caller on the
# machine: metadata and credentials (169.254.169.254, .170.2, .170.23, fd00:ec2::254, ::23), name servers,
# time servers, and Lambda's runtime. A receiver never has such an address, so no setting allows these
# networks.
_NEVER = _networks("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32")
_NOT_PUBLIC = _networks(
    "0.0.0.0/8",  # addresses of "this network", which mean the machine itself
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared: carriers' NAT, and services of some clouds
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",  # IETF protocols
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # 6to4 relays
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved addresses, and the broadcast address
    "2001::/23",  # IETF protocols: benchmarks, ORCHID
    "2001:db8::/32",  # documentation
    "3fff::/20",  # documentation
    # All networks outside 2000::/3, from which IANA assigns every public address: among others loopback,
    # unique local, link-local, site-local, multicast, and 5f00::/16.
    "::/3",
    "4000::/2",
    "8000::/1",
)
# Networks of IPv4-mapped and NAT64 addresses. These are other spellings of IPv4 addresses, to which the
# kernel or a NAT gateway sends the packets.
_IPV4_IN_IPV6 = _networks("::ffff:0:0/96", "64:ff9b::/96")
# Networks of other IPv6 addresses that contain an IPv4 address: IPv4-compatible (without ::/104, which has
# ::1), IPv4-translated, NAT64 with a network's own prefix, Teredo, and 6to4. Relays and routers may forward
# packets to the contained address. No receiver has such an address.
_CARRIERS = (
    *IPv6Network("::/96").address_exclude(IPv6Network("::/104")),
    *_networks("::ffff:0:0:0/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"),
)
_ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))
"""Bytes 9 to 12 of ISATAP addresses, which contain an IPv4 address, in any network."""


def _in(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)
