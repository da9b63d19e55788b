"""Who signs in to the console of a team, with which right, and who does not."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from moto import mock_aws

from mailroom_ops.console.open_id import Roles
from mailroom_ops.console.team import CALLBACK, READING, SESSION, SIGN_IN
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.repair import RepairStage
from tests.support.ops.team import (
    CLIENT,
    FUTURE,
    ISSUER,
    NAVIGATION,
    OWN,
    PAST,
    TEAM_HOST,
    FakeProvider,
    TeamBrowser,
    key,
)

NOW = 1_763_733_600.0
TENANT = "https://login.microsoftonline.com/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0"
GOOGLE = {
    "azp": CLIENT,
    "sub": "110169484474386276334",
    "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q",
    "hd": "example.com",
    "email": "Ada@Example.com",
    "email_verified": True,
    "name": "Ada",
    "picture": "https://p",
}
ENTRA = {
    "nbf": PAST,
    "name": "Ada",
    "oid": "00000000-0000-0000-66f3-3332eca7ea81",
    "rh": "0.",
    "tid": "9122040d",
    "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
    "uti": "fqiBqXLPj0eQa82S-IYFAA",
    "ver": "2.0",
    "preferred_username": "ada@example.com",
    "email": "chosen@example.com",
    "roles": ["Desk"],
}
OKTA = {
    "ver": 1,
    "jti": "ID.4eAWJOCMB3SX8XewDfVR",
    "amr": ["pwd"],
    "idp": "00ok1u7AsAkrwdZL3z0g",
    "auth_time": PAST,
    "email": "ada@example.com",
    "preferred_username": "ada@example.com",
    "groups": ["Everyone", "desk"],
}
COGNITO = {
    "cognito:groups": ["desk"],
    "cognito:username": "ada",
    "token_use": "id",
    "origin_jti": "9",
    "event_id": "6",
    "email_verified": True,
    "email": "ada@example.com",
    "auth_time": PAST,
    "at_hash": "U",
}
KEYCLOAK = {
    "typ": "ID",
    "azp": CLIENT,
    "sid": "0b",
    "acr": "1",
    "at_hash": "U",
    "email_verified": False,
    "preferred_username": "ada",
    "email": "ada@example.com",
    "name": "Ada",
    "groups": ["/desk"],
}
REAL: dict[str, tuple[str, dict[str, Any], Roles]] = {
    "google": ("https://accounts.google.com", GOOGLE, Roles("groups", ("@example.com",), ())),
    "google-address": ("https://accounts.google.com", GOOGLE, Roles("groups", ("ada@example.com",), ())),
    "entra": (TENANT, ENTRA, Roles("roles", ("Desk",), ())),
    "okta": ("https://example.okta.com", OKTA, Roles("groups", ("desk",), ())),
    "cognito": (
        "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab1",
        COGNITO,
        Roles("cognito:groups", ("desk",), ()),
    ),
    "keycloak": ("https://sso.example.com/realms/main", KEYCLOAK, Roles("groups", ("/desk",), ())),
}
"""Issuers, claims as in the documentation of each provider, and roles."""
DESK: dict[str, Any] = {"groups": ["desk"]}
LEADS: dict[str, Any] = {"groups": ["leads"]}


@pytest.fixture
def browser() -> Iterator[TeamBrowser]:
    """A browser at the console of a stage without messages."""
    with mock_aws(), in_memory_dynamodb():
        yield TeamBrowser(RepairStage().session, clock=lambda: NOW)


def signed_in(browser: TeamBrowser) -> bool:
    """Return whether the browser gets a page, by its script, which needs no data."""
    return browser.get("/assets/console.js").status == 200


@pytest.mark.parametrize("name", REAL)
def test_a_person_signs_in_with_the_documented_claims_of_each_identity_provider(
    browser: TeamBrowser, name: str
) -> None:
    issuer, claims, browser.roles = REAL[name]
    browser.provider = FakeProvider(issuer)
    browser.restart()
    reply = browser.sign_in("/messages?status=failed", **claims)
    assert (reply.status, reply.headers["location"]) == (303, "/messages?status=failed")
    assert signed_in(browser)
    assert SIGN_IN not in browser.cookies


def test_the_identity_provider_gets_the_code_verifier_and_the_secret_of_the_client(
    browser: TeamBrowser,
) -> None:
    browser.provider.secret = "s+cr/t"
    browser.sign_in(**DESK)
    (fields,) = browser.provider.asked
    assert fields["redirect_uri"] == OWN + CALLBACK
    assert len(fields["code_verifier"]) >= 43
    assert fields["code_verifier"] != browser.provider.challenge
    assert "client_id" not in fields
    assert browser.provider.headers[0]["Authorization"] == "Basic bWFpbHJvb20tY29uc29sZTpzJTJCY3IlMkZ0"


def test_the_token_request_of_a_client_without_a_secret_contains_the_clients_id(browser: TeamBrowser) -> None:
    browser.sign_in(**DESK)
    assert browser.provider.asked[0]["client_id"] == CLIENT
    assert "Authorization" not in browser.provider.headers[0]


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"groups": []},
        {"groups": None},
        {"groups": "des"},
        {"groups": {"desk": 1}},
        {"groups": [["desk"]]},
        {"email": "ada@example.com", "email_verified": True},
        {"groups": ["@example.com"]},
        {"groups": ["eve@example.org"]},
        {"email": "eve@example.org"},
        {"email": "eve@example.org", "email_verified": "true"},
        {"email": "eve@example.org", "email_verified": False},
        {"email": "eve@example.org.evil.example", "email_verified": True},
    ],
    ids=str,
)
def test_a_person_without_a_role_gets_no_session(browser: TeamBrowser, claims: dict[str, Any]) -> None:
    browser.roles = Roles("groups", ("desk", "eve@example.org"), ("@example.org",))
    browser.restart()
    reply = browser.sign_in(**claims)
    assert (reply.status, SESSION in browser.cookies) == (403, False)
    assert "console.roles" in reply.words
    assert not signed_in(browser)


def test_a_role_for_a_google_domain_requires_an_account_of_that_domain(browser: TeamBrowser) -> None:
    issuer, claims, browser.roles = REAL["google"]
    browser.provider = FakeProvider(issuer)
    browser.restart()
    for hd in (None, "other.example"):
        assert browser.sign_in(**{**claims, "hd": hd}).status == 403


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"claims": {"aud": "another"}}, "InvalidAudienceError"),
        ({"claims": {"aud": None}}, "MissingRequiredClaimError"),
        ({"claims": {"aud": [CLIENT, "another"], "azp": "another"}}, "another client"),
        ({"claims": {"iss": "https://evil.example"}}, "InvalidIssuerError"),
        ({"claims": {"iss": f"{ISSUER}/"}}, "InvalidIssuerError"),
        ({"claims": {"exp": PAST}}, "ExpiredSignatureError"),
        ({"claims": {"exp": None}}, "MissingRequiredClaimError"),
        ({"claims": {"iat": FUTURE}}, "ImmatureSignatureError"),
        ({"claims": {"nbf": FUTURE}}, "ImmatureSignatureError"),
        ({"claims": {"sub": None}}, "MissingRequiredClaimError"),
        ({"claims": {"nonce": "of-another"}}, "another sign-in"),
        ({"claims": {"nonce": None}}, "MissingRequiredClaimError"),
        ({"signed_with": key("forged")}, "InvalidSignatureError"),
        ({"signed_with": key("older")}, "InvalidSignatureError"),
        ({"algorithm": "none"}, "InvalidAlgorithmError"),
        ({"algorithm": "HS256", "signed_with": "x" * 32}, "InvalidAlgorithmError"),
        ({"algorithm": "RS512"}, "InvalidAlgorithmError"),
        ({"status": 500}, "no token"),
    ],
    ids=str,
)
def test_a_sign_in_with_an_invalid_id_token_is_refused_with_the_reason(
    browser: TeamBrowser, change: dict[str, Any], reason: str
) -> None:
    path = browser.begin()
    browser.provider.claims = {**LEADS, **change.pop("claims", {})}
    for name, value in change.items():
        setattr(browser.provider, name, value)
    reply = browser.get(path, NAVIGATION)
    assert (reply.status, SESSION in browser.cookies) == (403, False)
    assert reason in reply.words
    assert "Sign in" in reply.words


def test_a_refused_sign_in_deletes_its_cookie(browser: TeamBrowser) -> None:
    browser.provider.algorithm = "none"
    assert browser.sign_in(**DESK).status == 403
    assert browser.cookies == {}


def test_a_sign_in_is_refused_if_the_providers_configuration_is_that_of_another_issuer(
    browser: TeamBrowser,
) -> None:
    browser.provider.issuer = "https://evil.example"
    reply = browser.post("/sign-in?to=/", {})
    assert (reply.status, browser.cookies) == (403, {})


def test_the_callback_url_of_a_sign_in_works_only_once(browser: TeamBrowser) -> None:
    path = browser.begin()
    secret = dict(browser.cookies)
    browser.provider.claims = DESK
    assert browser.get(path, NAVIGATION).status == 303
    session = browser.cookies[SESSION]
    assert browser.get(path, NAVIGATION).status == 403
    browser.cookies = secret  # a copy of the cookie does not help, because the provider's code is used up
    assert browser.get(path, NAVIGATION).status == 403
    assert browser.cookies.get(SESSION) != session


@pytest.mark.parametrize("change", ["state=", "state=guessed", "state=%C3%BC", "code=code-1"], ids=str)
def test_a_sign_in_with_a_missing_or_wrong_state_is_refused_without_a_token_request(
    browser: TeamBrowser, change: str
) -> None:
    path = browser.begin()
    query = parse_qs(urlsplit(path).query)
    rest = f"code={query['code'][0]}&" if change.startswith("state") else ""
    assert browser.get(f"{CALLBACK}?{rest}{change}", NAVIGATION).status == 403
    assert browser.provider.asked == []


def test_a_sign_in_is_refused_in_a_browser_that_did_not_begin_it(browser: TeamBrowser) -> None:
    other = TeamBrowser(browser.session, clock=lambda: NOW)
    path = browser.begin()
    other.begin()
    assert other.get(path, NAVIGATION).status == 403
    other.cookies = {}
    reply = other.get(path, NAVIGATION)
    assert reply.status == 403
    assert "ten minutes" in reply.words


def test_an_error_of_the_identity_provider_is_shown_with_escaped_html(browser: TeamBrowser) -> None:
    state = parse_qs(urlsplit(browser.begin()).query)["state"][0]
    reply = browser.get(f"{CALLBACK}?state={state}&error=<b>denied", NAVIGATION)
    assert reply.status == 403
    assert "&lt;b&gt;denied" in reply.text


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "/nowhere",
        "",
        "//evil.example/messages?x",
    ],
)
def test_a_sign_in_does_not_redirect_to_another_host_or_an_unknown_page(
    browser: TeamBrowser, to: str
) -> None:
    assert browser.sign_in(to, **DESK).headers["location"] == "/"


def test_a_sign_in_replaces_a_session_cookie_that_existed_before(browser: TeamBrowser) -> None:
    browser.cookies[SESSION] = "fixed"
    browser.sign_in(**DESK)
    assert browser.cookies[SESSION] != "fixed"
    browser.cookies[SESSION] = "fixed"
    assert not signed_in(browser)


def test_a_sign_out_ends_the_session_for_each_copy_of_its_cookie(browser: TeamBrowser) -> None:
    browser.sign_in(**DESK)
    copy = dict(browser.cookies)
    assert signed_in(browser)
    assert browser.post("/sign-out", {}).status == 200
    assert browser.cookies == {}
    browser.cookies = copy
    assert not signed_in(browser)


def test_a_session_ends_after_eight_hours_or_if_the_settings_that_decide_on_rights_change(
    browser: TeamBrowser,
) -> None:
    browser.sign_in(**DESK)
    browser.clock = lambda: NOW + 8 * 3600 - 1
    browser.restart()
    assert signed_in(browser)
    browser.clock = lambda: NOW + 8 * 3600
    browser.restart()
    assert not signed_in(browser)
    browser.clock = lambda: NOW
    browser.rules = "others"
    browser.restart()
    assert not signed_in(browser)


def test_a_session_is_stored_without_its_cookie_and_ends_if_its_item_is_deleted(browser: TeamBrowser) -> None:
    browser.sign_in(**DESK)
    dynamodb = browser.session.client("dynamodb")
    (item,) = dynamodb.scan(TableName="mailroom-dev-deeds")["Items"]
    assert browser.cookies[SESSION] not in f"{item}"
    dynamodb.delete_item(
        TableName="mailroom-dev-deeds", Key={name: item[name] for name in ("found_by", "asked_at")}
    )
    assert not signed_in(browser)


def test_a_page_of_the_teams_console_reads_the_session_from_dynamodb_once(
    browser: TeamBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.sign_in(**DESK)
    calls: list[str] = []
    dynamodb = browser.session.client("dynamodb")
    original = type(dynamodb)._make_api_call  # type: ignore[attr-defined]

    def counted(client: Any, name: str, request: Any) -> Any:
        calls.append(name)
        return original(client, name, request)

    monkeypatch.setattr(type(dynamodb), "_make_api_call", counted)
    assert signed_in(browser)
    assert calls == ["GetItem"]


def test_every_page_offers_a_person_without_a_session_to_sign_in_and_to_come_back_to_it(
    browser: TeamBrowser,
) -> None:
    for page in READING:
        reply = browser.get(f"{page.path}?id=a", NAVIGATION)
        assert (reply.status, "Sign in" in reply.words) == (403, True)
        assert "/sign-in?to=%2F" in reply.text
        assert f"/sign-in?to={page.path.replace('/', '%2F')}%3Fid%3Da" in reply.text


def test_a_browser_without_a_session_gets_the_style_sheet_of_the_console_but_not_another_file(
    browser: TeamBrowser,
) -> None:
    style = "/assets/console.css"
    assert f'<link rel="stylesheet" href="{style}">' in browser.get("/").text
    assert browser.get(style).status == 200
    for path in ("/assets/console.js", "/assets/../messages", f"{style}/../../messages", f"{style}/messages"):
        assert browser.get(path).status == 403


def test_a_link_of_another_site_may_open_a_page_but_nothing_else(browser: TeamBrowser) -> None:
    browser.sign_in(**DESK)
    assert browser.get("/people", NAVIGATION).status == 200
    for change in ({"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}, {"host": "evil.example"}):
        assert browser.get("/people", {**NAVIGATION, **change}).status == 403
    for headers in ({"origin": "https://evil.example"}, NAVIGATION, {}, {"origin": "null"}):
        for path in ("/sign-out", "/sign-in", "/messages"):
            assert browser.post(path, {}, headers).status == 403
    assert signed_in(browser)


def test_hostile_query_parameters_do_not_cause_a_server_error(browser: TeamBrowser) -> None:
    browser.sign_in(**DESK)
    session = dict(browser.cookies)
    texts = [
        "",
        "\x00",
        "%",
        "ü" * 300,
        "sealed-",
        "sealed-zz",
        "../../etc/passwd",
        "' OR 1=1",
        "x" * 3_000,
        "\ud7ff",
    ]
    names = ["q", "id", "cursor", "since", "recipient", "queue", "state", "code", "to", "campaign"]
    paths = [*("/people", "/message/mail", CALLBACK, "/sign-in")]
    statuses = []
    for path in paths:
        for name in names:
            for text in texts:
                browser.cookies = dict(session)
                ask = browser.post if path == "/sign-in" else browser.get
                query = {name: text}
                reply = ask(path, query) if path == "/sign-in" else browser.get(path, **query)
                statuses.append(reply.status)
    assert len(statuses) == 400
    assert max(statuses) < 500


HOSTILE = (
    b"\xff",
    b"q=\xc3",
    b"list=%00",
    b"list=" + b"%0A" * 2_000,
    b"q=sealed-zz",
    b"&&=&q",
    b"list=id,event_type%0A",
)


@pytest.mark.parametrize("path", ["/messages", "/people", "/selected"])
@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: str(body[:12]))
def test_a_hostile_form_gets_no_server_error(browser: TeamBrowser, path: str, body: bytes) -> None:
    browser.sign_in(**DESK)
    own = {"origin": OWN, "sec-fetch-site": "same-origin"}
    assert browser.ask("POST", path, own, body).status < 500


def test_a_request_whose_host_header_also_has_a_port_is_refused(browser: TeamBrowser) -> None:
    assert browser.get("/", {"host": f"{TEAM_HOST}:443"}).status == 403
