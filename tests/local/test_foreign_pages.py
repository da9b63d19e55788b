"""Whatever page a browser shows, it can neither ask nor change what the local stage's two servers have."""

import http.client
import json
import stat
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import pytest

from mailroom_local.aws import LocalSession, authorization, key, patient
from mailroom_local.providers.http import Request
from mailroom_local.providers.server import ProviderServer
from mailroom_local.providers.upstream import Upstream
from tests.support import ROOT
from tests.support.local.served import served

EVIL = "https://evil.example"
FOREIGN: dict[str, dict[str, str]] = {
    "a form of another site": {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    "a script of another site, by an old browser": {"Origin": EVIL},
    "an image of another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "a page of another port": {"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"},
    "a page of another port, by an old browser": {"Origin": "http://127.0.0.1:3000"},
    "a page in a sandbox": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "a page in a sandbox, by an old browser": {"Origin": "null"},
    "an extension": {"Origin": "moz-extension://2d8a"},
    "a name that was bound to this machine": {"Host": "evil.example"},
    "the same with the port": {"Host": "evil.example:{port}", "Sec-Fetch-Site": "same-origin"},
    "the same with its own origin": {"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"},
    "a bucket of that name": {"Host": "bucket.s3.evil.example:{port}"},
    "a function of that name": {"Host": "abc.lambda-url.us-east-1.evil.example:{port}"},
    "no port": {"Host": "127.0.0.1"},
    "another name of this machine": {"Host": "localhost:{port}"},
}
OWN: dict[str, dict[str, str]] = {
    "a program": {},
    "a URL that was typed": {"Sec-Fetch-Site": "none"},
    "its own page": {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"},
    "its own page, by an old browser": {"Origin": "http://127.0.0.1:{port}"},
    "its own page that tells nobody where it was": {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
}


@pytest.fixture(scope="module")
def servers(url: str) -> Iterator[dict[str, str]]:
    """The URLs of both."""
    with served(ProviderServer(0, url)) as providers:
        yield {"emulator": url, "providers": providers}


def ask(
    url: str, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
) -> tuple[int, dict[str, str]]:
    """The answer's status and headers."""
    port = urlsplit(url).port
    connection = http.client.HTTPConnection("127.0.0.1", port or 80, timeout=10)
    filled = {name: value.replace("{port}", str(port)) for name, value in headers.items()}
    try:
        connection.request(method, path, body, filled)
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


PATHS = {"emulator": "/_ministack/health", "providers": "/inbox"}
both = pytest.mark.parametrize("server", PATHS)


@both
@pytest.mark.parametrize("page", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_both_servers_of_the_local_stage_refuse_the_requests_of_foreign_pages(
    servers: dict[str, str], server: str, page: str, method: str
) -> None:
    status, headers = ask(servers[server], method, PATHS[server], FOREIGN[page])
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control-")]


@both
@pytest.mark.parametrize("page", OWN)
def test_both_servers_of_the_local_stage_answer_requests_of_programs_and_of_the_stages_pages(
    servers: dict[str, str], server: str, page: str
) -> None:
    assert ask(servers[server], "GET", PATHS[server], OWN[page])[0] == 200


@both
def test_the_local_stage_refuses_a_preflight_request_of_a_foreign_page(
    servers: dict[str, str], server: str
) -> None:
    preflight = {"Origin": EVIL, "Access-Control-Request-Method": "POST"}
    status, headers = ask(servers[server], "OPTIONS", "/2015-03-31/functions", preflight)
    assert (status, headers.get("access-control-allow-origin")) == (403, None)


def test_a_foreign_page_cannot_create_a_function(servers: dict[str, str]) -> None:
    function = {
        "FunctionName": "theirs",
        "Runtime": "python3.11",
        "Role": "arn:aws:iam::000000000000:role/r",
        "Handler": "index.handler",
        "Code": {"ZipFile": ""},
    }
    simple = {"Origin": EVIL, "Content-Type": "text/plain"}
    status, _ = ask(
        servers["emulator"], "POST", "/2015-03-31/functions", simple, json.dumps(function).encode()
    )
    assert status == 403
    client = LocalSession().client("lambda", endpoint_url=servers["emulator"], config=patient())
    assert client.list_functions()["Functions"] == []


def test_a_foreign_page_cannot_open_a_websocket(servers: dict[str, str]) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": EVIL,
    }
    assert ask(servers["emulator"], "GET", "/", upgrade)[0] == 403


NAVIGATION = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}


@pytest.mark.parametrize(
    ("headers", "credential", "status"),
    [
        (NAVIGATION, key(), 404),
        (NAVIGATION, "test", 403),
        ({**NAVIGATION, "Sec-Fetch-Mode": "cors"}, key(), 403),
        ({**NAVIGATION, "Host": "evil.example"}, key(), 403),
    ],
    ids=["with the key", "another key", "a script", "another host"],
)
def test_a_browser_may_follow_a_link_to_the_emulator_only_if_the_link_has_the_stages_key(
    servers: dict[str, str], headers: dict[str, str], credential: str, status: int
) -> None:
    path = f"/bucket/file.csv?X-Amz-Credential={credential}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request"
    assert ask(servers["emulator"], "GET", path, headers)[0] == status


def test_a_request_of_a_page_of_the_stage_is_passed_on_to_the_emulator(servers: dict[str, str]) -> None:
    page = {"origin": servers["providers"], "sec-fetch-site": "same-origin"}
    upstream = Upstream(servers["emulator"])
    assert upstream.pass_on(Request("GET", PATHS["emulator"], page, b"")).status == 200
    upstream.close()


LIST = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Type": "application/x-amz-json-1.0"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": authorization("dynamodb").replace(key(), "test")},
        {"Authorization": authorization("dynamodb").replace(key(), key()[:-1])},
        {"Authorization": "AWS4-HMAC-SHA256"},
    ],
    ids=["none", "another", "a part of it", "half a header"],
)
def test_the_emulator_refuses_another_user_of_the_machine_who_lacks_the_stages_key(
    servers: dict[str, str], headers: dict[str, str]
) -> None:
    status, _ = ask(servers["emulator"], "POST", "/", {**LIST, **headers}, b"{}")
    assert status == 403
    refused, _ = ask(servers["emulator"], "GET", "/2015-03-31/functions/", headers)
    assert refused == 403


def test_the_emulator_accepts_the_stages_key_which_only_its_owner_may_read(servers: dict[str, str]) -> None:
    headers = {**LIST, "Authorization": authorization("dynamodb")}
    assert ask(servers["emulator"], "POST", "/", headers, b"{}")[0] == 200
    assert stat.S_IMODE((ROOT / ".local" / "key").stat().st_mode) == 0o600
