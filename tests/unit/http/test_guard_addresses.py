"""The addresses to which the guard allows a request."""

import pytest

from mailroom.errors import ConnectError, InvalidRequest
from mailroom.http.url_policy import RequestTarget, UrlPolicy

PUBLIC = ["203.0.114.7", "93.184.215.14", "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1"]
PUBLIC_6 = [
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
    "2a00:1450:4001::1",
    "2600::1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]
NOT_PUBLIC = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "100.100.100.200"),
    *(
        "127.0.0.1",
        "127.255.255.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.170",
        "192.0.2.1",
    ),
    *("192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1"),
    *("203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
]
NOT_PUBLIC_6 = [
    *("::", "::1", "::2", "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "ff0e::1", "5f00::1", "4000::1"),
    *(
        "100::1",
        "2001:db8::1",
        "3fff::1",
        "3fff:fff::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:1ff::1",
    ),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:7f00:1", "::ffff:0.0.0.0"),  # mapped
    *("64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::c0a8:1"),  # NAT64
    *("64:ff9b:2::1", "::0.0.0.9"),
]
NEVER = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.169.253",
    "169.254.0.1",
    "169.254.255.255",
]
NEVER_6 = [
    *("fd00:ec2::254", "fd00:ec2::23", "fd00:ec2::253", "fe80::1", "febf::1", "::ffff:169.254.169.254"),
    *("64:ff9b::169.254.169.254", "64:ff9b::a9fe:aa02"),
]
CARRIERS = [
    *("::10.0.0.1", "::8.8.8.8", "::169.254.169.254", "::1.0.0.0", "::255.255.255.255"),  # compatible
    *("::ffff:0:10.0.0.1", "::ffff:0:8.8.8.8", "::ffff:0:169.254.169.254"),  # translated
    *("64:ff9b:1::1", "64:ff9b:1:808:8:800::", "64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::"),
    *("64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0"),  # NAT64 of a network's own
    *("2002:0a00:0001::1", "2002:7f00:1::", "2002:808:808::1", "2002:a9fe:a9fe::1"),  # 6to4
    *("2001:0:808:808::f7f7:f7f7", "2001:0:0a00:1::f7f7:f7f7", "2001:0:808:808::80ff:fffe"),  # Teredo
    *("2001:0:a9fe:a9fe::1", "2001:0:808:808::5601:5601"),
    *("2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "2606:4700::5efe:169.254.169.254"),
    *("2606:4700::5efe:8.8.8.8", "fd12::5efe:10.0.0.1", "fd12::200:5efe:8.8.8.8"),  # ISATAP
]


def url_of_address(address: str) -> str:
    return f"https://[{address}]/" if ":" in address else f"https://{address}/"


def no_resolver(host: str, seconds: float) -> list[str]:
    raise AssertionError(f"{host} was resolved")


def target_of(*addresses: str, networks: tuple[str, ...] = ()) -> RequestTarget:
    """Return the target of a name with these addresses."""
    return UrlPolicy(networks=networks, resolve=lambda _host, _seconds: [*addresses]).check(
        "https://a.example/x", 5
    )


def reason(*addresses: str, networks: tuple[str, ...] = ()) -> str:
    with pytest.raises(InvalidRequest) as refusal:
        target_of(*addresses, networks=networks)
    return str(refusal.value)


NOT_PUBLIC_SENTENCE = (
    "an address of a.example is not public; use a host on the internet, "
    "or add its network to allowed_networks"
)
NEVER_SENTENCE = (
    "an address of a.example is link-local or a cloud's metadata service, which is never allowed; "
    "use a public host"
)
CARRIER_SENTENCE = (
    "an address of a.example contains an IPv4 address, as in 6to4 and Teredo, which is never allowed; "
    "use that address"
)
EVERYTHING = ("0.0.0.0/0", "::/0", "169.254.169.254/32", "fd00:ec2::254/128")


@pytest.mark.parametrize("address", PUBLIC + PUBLIC_6)
def test_a_public_ip_address_is_allowed_behind_a_host_name_and_as_a_literal_in_a_url(address: str) -> None:
    assert target_of(address).addresses == (address,)
    assert len(UrlPolicy(resolve=no_resolver).check(url_of_address(address), 5).addresses) == 1


@pytest.mark.parametrize("address", NOT_PUBLIC + NOT_PUBLIC_6)
def test_an_ip_address_that_is_not_public_is_refused_behind_a_host_name_and_as_a_literal_in_a_url(
    address: str,
) -> None:
    assert reason(address) == NOT_PUBLIC_SENTENCE
    with pytest.raises(InvalidRequest):
        UrlPolicy(resolve=no_resolver).check(url_of_address(address), 5)


@pytest.mark.parametrize("address", NEVER + NEVER_6)
def test_link_local_and_metadata_addresses_are_refused_whatever_networks_are_allowed(address: str) -> None:
    assert reason(address) == NEVER_SENTENCE
    assert reason(address, networks=EVERYTHING) == NEVER_SENTENCE


@pytest.mark.parametrize("address", CARRIERS)
def test_an_ip_address_that_embeds_another_address_is_refused_whatever_networks_are_allowed(
    address: str,
) -> None:
    assert reason(address) == CARRIER_SENTENCE
    assert reason(address, networks=(*EVERYTHING, f"{address}/128")) == CARRIER_SENTENCE
    with pytest.raises(InvalidRequest):
        UrlPolicy(resolve=no_resolver).check(url_of_address(address), 5)


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        (
            "10.20.0.0/16",
            ["10.20.0.1", "::ffff:10.20.0.1", "64:ff9b::10.20.0.1"],
            ["10.21.0.1"],
        ),
        ("127.0.0.0/8", ["127.0.0.1"], ["::1", "10.0.0.1"]),
        ("::1/128", ["::1"], ["::2", "127.0.0.1"]),
        ("fd12::/16", ["fd12::1"], ["fd13::1", "10.0.0.1"]),
    ],
)
def test_a_private_ip_address_is_allowed_only_if_it_is_in_an_allowed_network(
    network: str, inside: list[str], outside: list[str]
) -> None:
    for each in inside:
        assert target_of(each, networks=(network,)).addresses == (each,)
    for each in outside:
        assert reason(each, networks=(network,)) == NOT_PUBLIC_SENTENCE


def test_a_host_name_is_refused_if_one_of_its_ip_addresses_is_not_public() -> None:
    for at in range(3):
        addresses = ["8.8.8.8", "1.1.1.1"]
        addresses.insert(at, "10.0.0.1")
        assert reason(*addresses) == NOT_PUBLIC_SENTENCE
    assert target_of("8.8.8.8", "2600::1").addresses == ("8.8.8.8", "2600::1")


def test_the_refusal_of_a_host_name_does_not_quote_its_private_ip_address() -> None:
    assert "10.0.0.1" not in reason("10.0.0.1")


def test_a_host_name_without_an_ip_address_causes_a_connection_error_and_not_an_invalid_request() -> None:
    with pytest.raises(ConnectError, match=r"the name a\.example has no address"):
        target_of()


def test_the_check_of_a_url_calls_the_resolver_once_with_the_remaining_time() -> None:
    asked = []

    def resolve(host: str, seconds: float) -> list[str]:
        asked.append((host, seconds))
        return ["8.8.8.8"]

    UrlPolicy(resolve=resolve).check("https://A.example/", 7.5)
    assert asked == [("a.example", 7.5)]


@pytest.mark.parametrize("network", ["10.0.0.1/8", "ten", "10.0.0.0/33", ""])
def test_a_url_policy_with_an_invalid_network_cannot_be_created(network: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear|has host bits"):
        UrlPolicy(networks=[network])
