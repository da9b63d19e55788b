"""Which addresses a request of ours may go to: public ones, and those of networks that a setting lists.

The tables are IANA's special-purpose registries, written out: `is_global` of `ipaddress` changed its mind
between Python 3.11 and 3.14, and knows nothing of addresses inside addresses.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(each) for each in texts)


# Link-local as a whole, and AWS's own corner of fd00::/8: metadata and credentials (169.254.169.254,
# .170.2, .170.23, fd00:ec2::254, ::23), name and time servers, Lambda's runtime. What answers there speaks
# for the machine that asks; nobody's receiver is there, so no setting opens it.
_NEVER = _networks("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32")
_NOT_PUBLIC = _networks(
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared: carriers' NAT, and some clouds' services
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
    "240.0.0.0/4",  # reserved, broadcast
    "2001::/23",  # IETF protocols: Teredo, benchmarks, ORCHID
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4, given up by RFC 7526
    "3fff::/20",  # documentation
)
# All that IANA gives out for use; loopback, unique local, site-local, multicast, 5f00::/16 lie outside.
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_MAPPED, _NAT64 = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")
_TEREDO, _6TO4, _LOCAL_NAT64 = (IPv6Network(each) for each in ("2001::/32", "2002::/16", "64:ff9b:1::/48"))
_LAST_FOUR = _networks("::/96", "::ffff:0:0:0/96")  # IPv4-compatible, IPv4-translated
_ISATAP = (bytes.fromhex("00005efe"), bytes.fromhex("02005efe"))


class Networks:
    """The rule, with the networks that a setting lets through in spite of it. Raises ValueError for one
    that is none."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = _networks(*allowed)

    def problem(self, text: str) -> str | None:
        """What speaks against an address: the rest of a sentence; None: nothing does."""
        reached = _reached(ip_address(text))
        if any(_in(each, _NEVER) for each in reached):
            return "is link-local or a cloud's metadata service, which no setting allows; use a public host"
        if not all(_in(each, self._allowed) or _public(each) for each in reached):
            return "is not public; use a host on the internet, or have its network put on allowed_networks"
        return None


def _in(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in each for each in networks)


def _public(address: Address) -> bool:
    if _in(address, _NOT_PUBLIC):
        return False
    return isinstance(address, IPv4Address) or address in _GLOBAL_UNICAST


def _reached(address: Address) -> list[Address]:
    """All addresses that a packet for this one may end at: itself, and those it carries inside."""
    if isinstance(address, IPv4Address):
        return [address]
    inside: list[Address] = [IPv4Address(each) for each in _inside(address)]
    # These two are only other spellings of the IPv4 address: the kernel or a NAT gateway sends IPv4.
    return inside if address in _MAPPED or address in _NAT64 else [address, *inside]


def _inside(address: IPv6Address) -> list[bytes]:
    packed = address.packed
    last = packed[12:]
    if address in _MAPPED or address in _NAT64 or _in(address, _LAST_FOUR):
        return [last]
    if address in _6TO4:
        return [packed[2:6]]
    if address in _TEREDO:  # its server, and its client with all bits turned
        return [packed[4:8], bytes(each ^ 0xFF for each in last)]
    if address in _LOCAL_NAT64:  # RFC 6052: which of its forms a network uses cannot be told from outside
        without_u = packed[:8] + packed[9:]
        return [last, *(without_u[start : start + 4] for start in (6, 7, 8))]
    return [last] if packed[8:12] in _ISATAP else []
