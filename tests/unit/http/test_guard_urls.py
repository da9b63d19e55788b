"""The guard parses a URL, or refuses it before it uses the network."""

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailroom.errors import InvalidRequest
from mailroom.http.url_policy import RequestTarget, UrlPolicy

GUARD = UrlPolicy(schemes=["https", "http"], ports=[])


def reason(url: str, guard: UrlPolicy = GUARD) -> str:
    with pytest.raises(InvalidRequest) as refusal:
        guard.read(url)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example.com", RequestTarget("https", "hooks.example.com", 443, "/")),
        ("https://hooks.example.com/", RequestTarget("https", "hooks.example.com", 443, "/")),
        ("https://hooks.example.com?a=1", RequestTarget("https", "hooks.example.com", 443, "/?a=1")),
        ("HTTPS://Hooks.EXAMPLE.com/A/b", RequestTarget("https", "hooks.example.com", 443, "/A/b")),
        (
            "https://hooks.example.com:8443/a?b=c/d?e",
            RequestTarget("https", "hooks.example.com", 8443, "/a?b=c/d?e"),
        ),
        ("http://hooks.example.com/a#part", RequestTarget("http", "hooks.example.com", 80, "/a")),
        ("https://xn--bcher-kva.example/", RequestTarget("https", "xn--bcher-kva.example", 443, "/")),
        ("https://a_b.example/@x:y", RequestTarget("https", "a_b.example", 443, "/@x:y")),
        ("https://203.0.113.7/a", RequestTarget("https", "203.0.113.7", 443, "/a")),
        ("https://[2001:DB8::1]:8443/a", RequestTarget("https", "2001:db8::1", 8443, "/a")),
        ("https://[2001:0db8:0:0:0:0:0:1]/", RequestTarget("https", "2001:db8::1", 443, "/")),
        ("https://7.example/", RequestTarget("https", "7.example", 443, "/")),
        ("https://localhost/", RequestTarget("https", "localhost", 443, "/")),
    ],
)
def test_a_callback_url_is_parsed_into_its_parts(url: str, target: RequestTarget) -> None:
    assert GUARD.read(url) == target


@pytest.mark.parametrize(
    ("target", "header"),
    [
        (RequestTarget("https", "a.example", 443, "/"), "a.example"),
        (RequestTarget("https", "a.example", 80, "/"), "a.example:80"),
        (RequestTarget("http", "a.example", 80, "/"), "a.example"),
        (RequestTarget("https", "2001:db8::1", 8443, "/"), "[2001:db8::1]:8443"),
    ],
)
def test_the_host_header_has_the_port_unless_it_is_the_default_of_the_scheme(
    target: RequestTarget, header: str
) -> None:
    assert target.authority == header


NO_URL = "is not a URL; use one like https://hooks.example.com/path"
NO_HOST = "has no usable host; use one like https://hooks.example.com/path"
ENCODE = (
    "holds a space, control character, backslash or non-ASCII character; percent-encode it, and write a "
    "host's name in its xn-- form"
)
NUMBER = "has a host that ends in a number; write an IPv4 address as 203.0.113.7"
USER = "carries a user's name or password; leave them out and check the signature instead"
PORT = "has no valid port; use one from 1 to 65535, or leave it out with its colon"
BRACKETS = "has a host in brackets that is not an IPv6 address; use one like [2001:db8::1]"


@pytest.mark.parametrize(
    "url", ["", "hooks.example.com", "//hooks.example.com/", "https:/a.example", "https:a"]
)
def test_a_string_that_is_not_a_url_is_refused(url: str) -> None:
    assert reason(url) == NO_URL


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/ b",
        " https://a.example/",
        "https://a.example/\n",
        "https://a.example\r\nHost: b.example/",
        "https://a.ex\tample/",
        "https://a.example/\x00",
        "https://a.example/\x7f",
        "https://a.example\\@127.0.0.1/",
        "https:\\\\127.0.0.1/",
        "https://bücher.example/",
        "https://127。0。0。1/",
        "https://\uff11\uff12\uff17.0.0.1/",
        "https://ⓛocalhost/",
        "https://a.example/\u202e",
    ],
)
def test_a_url_with_a_space_control_character_backslash_or_non_ascii_character_is_refused(url: str) -> None:
    assert reason(url) == ENCODE


@pytest.mark.parametrize("scheme", ["ftp", "file", "gopher", "javascript", "ws", "httpss"])
def test_a_url_with_a_scheme_other_than_https_and_http_is_refused(scheme: str) -> None:
    assert reason(f"{scheme}://a.example/") == f"has the scheme '{scheme}'; use https or http"


def test_a_url_over_http_is_refused_by_default() -> None:
    assert reason("http://a.example/", UrlPolicy()) == "has the scheme 'http'; use https"


@pytest.mark.parametrize(
    "authority",
    ["user@a.example", "user:password@a.example", "@a.example", "a.example:443@127.0.0.1", "a%40b@127.0.0.1"],
)
def test_a_url_with_a_user_name_or_password_is_refused(authority: str) -> None:
    assert reason(f"https://{authority}/") == USER


@pytest.mark.parametrize(
    "port", ["", "0", "00443", "65536", "99999", "-1", "+443", "4 4", "443:80", "https", "0x50"]
)
def test_a_url_with_an_invalid_port_is_refused(port: str) -> None:
    assert reason(f"https://a.example:{port}/") in {PORT, ENCODE}


def test_a_port_that_is_not_allowed_is_refused_even_if_it_is_the_default_of_the_scheme() -> None:
    guard = UrlPolicy(schemes=["https", "http"], ports=[443, 8443])
    assert guard.read("https://a.example:8443/").port == 8443
    for url, port in [
        ("https://a.example:22/", 22),
        ("http://a.example/", 80),
        ("https://a.example:444/", 444),
    ]:
        assert reason(url, guard) == f"has the port {port}; use 443 or 8443"


@pytest.mark.parametrize(
    "authority", ["", ":443", "[::1", "::1]", "::1", "[::1]a.example", "a.example[::1]", "[]x"]
)
def test_a_url_without_a_host_or_with_unbalanced_brackets_is_refused(authority: str) -> None:
    assert reason(f"https://{authority}/") in {NO_HOST, PORT}


@pytest.mark.parametrize(
    "host", ["", "127.0.0.1", "a.example", ":::", "1::2::3", "::1%lo", "::ffff:127.0.0.01"]
)
def test_a_host_in_brackets_that_is_not_an_ipv6_address_is_refused(host: str) -> None:
    expected = "has an IPv6 address with a zone; leave the zone out" if "%" in host else BRACKETS
    assert reason(f"https://[{host}]/") == expected


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "127.0.1", "10.1", "1"),  # short
        *("2130706433", "017700000001", "4294967295", "99999999999"),  # decimal, octal, beyond
        *("0177.0.0.1", "127.0.0.01", "00.0.0.0", "010.0.0.1"),  # octal parts
        *("0x7f000001", "0x7f.0.0.1", "127.0.0.0x1", "0X7F.1", "0x", "a.0x", "0xg.1"),  # hexadecimal
        *("256.0.0.1", "1.2.3.4.5", "1.2.3", "127.0.0.1.1", "a.1", "example.123", "169.254.43518"),
    ],
)
def test_an_ipv4_address_in_another_spelling_is_refused(host: str) -> None:
    assert reason(f"https://{host}/") == NUMBER


@pytest.mark.parametrize(
    "host",
    [
        *("a.example.", "127.0.0.1.", ".a.example", "a..example", "."),
        *("-a.example", "a-.example", "a!b.example", "a%2eb.example", "127.0.0.1%00.a.example", "a*.example"),
        *("a,b.example", "a'b", "a;b.example", "a&b", "{a}", "a=b.example", "~"),
        *("a" * 64 + ".example", ".".join(["a" * 49] * 6)),
    ],
)
def test_a_host_that_is_not_a_dns_name_is_refused(host: str) -> None:
    assert reason(f"https://{host}/").startswith(
        "has a host that is not a DNS name; use one like hooks.example.com"
    )


def test_the_longest_host_name_and_the_longest_url_are_valid_and_a_longer_url_is_refused() -> None:
    name = ".".join(["a" * 49] * 5) + ".aaa"
    assert len(name) == 253
    assert GUARD.read(f"https://{name}/").host == name
    assert GUARD.read(f"https://{'a' * 63}.example/").host == f"{'a' * 63}.example"
    url = "https://a.example/"
    assert GUARD.read(url + "x" * (2000 - len(url)))
    assert reason(url + "x" * (2001 - len(url))) == "has 2001 characters; use at most 2000"


PIECES = [
    *(
        "a.example",
        "b",
        "127.0.0.1",
        "1",
        "0x7f",
        "443",
        "[",
        "]",
        "[::1]",
        "::1",
        "]:443",
        "xn--",
        "-",
        "_",
        ".",
    ),
    *(":", "/", "//", "?", "#", "@", "\\", "%", "%40", "&", "*", " ", "\t", "\n", "é", "user"),
]


@settings(max_examples=300)
@given(st.sampled_from(["https://", "http://", ""]), st.lists(st.sampled_from(PIECES), max_size=6))
def test_the_guard_and_the_standard_library_read_the_same_host_and_port_from_a_url(
    scheme: str, pieces: list[str]
) -> None:
    url = scheme + "".join(pieces)
    try:
        target = GUARD.read(url)
    except InvalidRequest:
        return
    parts = urlsplit(url)
    host = parts.hostname or ""
    assert target.host == (str(ip_address(host)) if ":" in host else host)
    assert target.port == (parts.port or {"https": 443, "http": 80}[parts.scheme])
