"""Routes of the HTTP API, their limits, and their logs."""

import json
from typing import Any

import pytest
from msgspec import structs

from mailroom.providers import signalwire
from tests.support.stacks.refusals import dev_with, refusal_of_setting
from tests.support.stacks.templates import Template, Templates, text_of
from tests.support.stacks.variants import JWT, SCOPES, WORDS, up_to

LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
OWN_URL = "https://<ApiF70053CD>.execute-api.eu-central-1.amazonaws.com"


MESSAGES = {
    *("POST /messages", "GET /messages", "GET /messages/{id}"),
    *("POST /messages/cancel", "POST /messages/{id}/cancel"),
}
PEOPLE = {"GET /people", "PATCH /people"}
LINKS = {f"{method} /unsubscribe/{{token}}" for method in ("GET", "HEAD", "POST")}
BY_RESEND = "POST /callbacks/resend"
BY_TWILIO = {"POST /callbacks/twilio/{reference}", "POST /twilio/inbound"}
CALLBACKS = {*BY_TWILIO, BY_RESEND}


def behind(template: Template, route: dict[str, Any]) -> str:
    """The function that a route leads to."""
    target = route["Target"]["Fn::Join"][1][1]["Ref"]
    integration = template.body["Resources"][target]["Properties"]
    assert (integration["IntegrationType"], integration["PayloadFormatVersion"]) == ("AWS_PROXY", "2.0")
    function = template.body["Resources"][integration["IntegrationUri"]["Fn::GetAtt"][0]]["Properties"]
    name: str = function["FunctionName"]
    return name.removeprefix("mailroom-dev-")


def routes_of(template: Template) -> dict[str, tuple[str, str]]:
    """For each route the function behind it, and who is let in."""
    return {
        route["RouteKey"]: (behind(template, route), route["AuthorizationType"])
        for route in template.all("ApiGatewayV2::Route")
    }


def test_message_routes_require_iam_signatures_but_links_and_callbacks_are_open_to_everybody(
    dev: Templates,
) -> None:
    assert routes_of(dev["api"]) == {
        **dict.fromkeys(MESSAGES | PEOPLE, ("messages-api", "AWS_IAM")),
        **dict.fromkeys({*LINKS, BY_RESEND}, ("unsubscribe", "NONE")),
        **dict.fromkeys(BY_TWILIO, ("twilio-callbacks", "NONE")),
    }
    assert not dev["api"].all("ApiGatewayV2::Authorizer")


def test_message_routes_require_tokens_of_one_issuer_if_the_stage_has_the_setting_jwt(
    otherwise: Templates,
) -> None:
    api = otherwise["api"]
    routes = routes_of(api)
    assert {routes[each] for each in MESSAGES} == {("messages-api", "JWT")}
    assert {routes[each][1] for each in LINKS | CALLBACKS} == {"NONE"}
    (authorizer,) = api.all("ApiGatewayV2::Authorizer")
    assert authorizer["JwtConfiguration"] == {"Issuer": JWT["issuer"], "Audience": JWT["audience"]}
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    (asked,) = {route.get("AuthorizerId", {}).get("Ref") for route in api.all("ApiGatewayV2::Route")} - {None}
    assert api.body["Resources"][asked]["Properties"] == authorizer


def test_a_token_needs_the_scope_of_its_route(otherwise: Templates) -> None:
    routes = otherwise["api"].all("ApiGatewayV2::Route")
    needed = {each["RouteKey"]: each.get("AuthorizationScopes") for each in routes}
    assert needed == {
        "POST /messages": ["mailroom/send"],
        "GET /messages": ["mailroom/read"],
        "GET /messages/{id}": ["mailroom/read"],
        "POST /messages/cancel": ["mailroom/cancel"],
        "POST /messages/{id}/cancel": ["mailroom/cancel"],
        **dict.fromkeys(LINKS | CALLBACKS),
    }


Rights = set[tuple[str, str]]
"""Actions, each with the table for which it is granted."""


def people_of(template: Template) -> tuple[dict[str, Any], Rights]:
    """Return the routes for people with their scopes, and the permissions for the tables of choices."""
    routes = template.all("ApiGatewayV2::Route")
    scopes = {
        each["RouteKey"]: each.get("AuthorizationScopes") for each in routes if each["RouteKey"] in PEOPLE
    }
    rights = {
        (action, resource.rpartition("/mailroom-dev-")[2])
        for action, resources in template.policy("mailroom-dev-messages-api").items()
        for resource in resources
        if resource.endswith(("-preferences", "-suppressions", "-budgets"))
    }
    return scopes, rights


READ = {("dynamodb:Query", "preferences"), ("dynamodb:Query", "suppressions")} | {
    (f"dynamodb:{action}", "budgets") for action in ("GetItem", "UpdateItem")
}
WRITE = {("dynamodb:Query", "preferences"), ("dynamodb:UpdateItem", "preferences")}


@pytest.mark.parametrize(
    ("scopes", "routes", "rights"),
    [
        (None, {}, set()),
        ({}, {}, set()),
        ({"people_read": "p/r"}, {"GET /people": ["p/r"]}, READ),
        ({"people_write": "p/w"}, {"PATCH /people": ["p/w"]}, WRITE),
        (
            {"people_read": "p/r", "people_write": "p/w"},
            {"GET /people": ["p/r"], "PATCH /people": ["p/w"]},
            READ | WRITE,
        ),
    ],
)
def test_an_api_with_tokens_has_a_route_for_people_only_if_the_settings_name_its_scope(
    scopes: dict[str, str] | None, routes: dict[str, Any], rights: Rights
) -> None:
    jwt = {**JWT, "scopes": None if scopes is None else {**SCOPES, **scopes}}
    assert people_of(up_to("api", {"api": {"jwt": jwt}})["api"]) == (routes, rights)


def test_the_function_of_the_api_may_neither_call_ses_nor_read_the_secret_of_a_provider(
    dev: Templates,
) -> None:
    policy = dev["api"].policy("mailroom-dev-messages-api")
    assert not [action for action in policy if action.startswith("ses:")]
    secrets = policy.get("secretsmanager:GetSecretValue", set())
    assert not [name for name in secrets if not name.endswith("search-key-??????")]


def test_an_api_with_iam_signatures_has_both_routes_for_people_and_does_not_need_scopes(
    dev: Templates,
) -> None:
    assert people_of(dev["api"]) == (dict.fromkeys(PEOPLE), READ | WRITE)


def test_a_caller_is_identified_by_a_claim_of_its_token_or_by_its_iam_principal(
    dev: Templates, otherwise: Templates
) -> None:
    given = dev["api"].environment("mailroom-dev-messages-api")
    assert not {"CALLER_CLAIM", "PAYLOAD_PREFIXES"} & given.keys()
    given = otherwise["api"].environment("mailroom-dev-messages-api")
    assert given["CALLER_CLAIM"] == "client_id"
    assert json.loads(given["PAYLOAD_PREFIXES"]) == {"shop": "shop/", "trusted": ""}


def test_the_api_does_not_send_cors_headers_to_other_origins(dev: Templates) -> None:
    assert "CorsConfiguration" not in dev["api"].one("ApiGatewayV2::Api")


def test_api_gateway_may_invoke_each_function_for_its_own_routes_only(dev: Templates) -> None:
    permitted: dict[str, set[str]] = {}
    for each in dev["api"].all("Lambda::Permission"):
        assert each["Principal"] == "apigateway.amazonaws.com"
        function = each["FunctionName"]["Fn::GetAtt"][0]
        name = dev["api"].body["Resources"][function]["Properties"]["FunctionName"]
        path = text_of(each["SourceArn"]).partition(":<ApiF70053CD>/*/*")[2]
        permitted.setdefault(name.removeprefix("mailroom-dev-"), set()).add(path)
    assert permitted == {
        "messages-api": {each.partition(" ")[2] for each in MESSAGES | PEOPLE},
        "unsubscribe": {"/unsubscribe/{token}", "/callbacks/resend"},
        "twilio-callbacks": {"/callbacks/twilio/{reference}", "/twilio/inbound"},
    }


def throttled(template: Template) -> dict[str, tuple[int, int]]:
    """The routes with a throttle of their own: requests a second, and at once."""
    (stage,) = template.all("ApiGatewayV2::Stage")
    return {
        key: (each["ThrottlingRateLimit"], each["ThrottlingBurstLimit"])
        for key, each in stage["RouteSettings"].items()
    }


def test_too_many_requests_on_an_open_route_do_not_reduce_the_rate_for_messages(dev: Templates) -> None:
    assert throttled(dev["api"]) == {
        **dict.fromkeys(LINKS | CALLBACKS, (40, 40)),  # a fifth each of 0.2 x 1000
        "POST /callbacks/twilio/{reference}": (300, 300),
    }
    routes = routes_of(dev["api"])
    assert throttled(dev["api"]).keys() == {key for key, (_, let_in) in routes.items() if let_in == "NONE"}
    (stage,) = dev["api"].all("ApiGatewayV2::Stage")
    others = sum(rate for rate, _ in throttled(dev["api"]).values())
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] + others <= 1_000


def test_a_route_of_a_fax_provider_invokes_the_function_that_the_provider_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = {
        "requests": "tests.support.acme.stack:requests_function",
        "routes": {"/callbacks/fax": "public"},
    }
    monkeypatch.setattr(signalwire, "PROVIDER", structs.replace(signalwire.PROVIDER, **requests))
    api = up_to("api", {})["api"]
    assert routes_of(api)["POST /callbacks/fax"] == ("acme-requests", "NONE")


def test_each_throttled_route_is_created_before_the_api_stage_that_throttles_it(dev: Templates) -> None:
    resources = dev["api"].body["Resources"]
    (stage,) = (each for each in resources.values() if each["Type"] == "AWS::ApiGatewayV2::Stage")
    before = {resources[each]["Properties"].get("RouteKey") for each in stage["DependsOn"]}
    assert throttled(dev["api"]).keys() <= before


def test_the_burst_limit_of_each_throttled_route_is_at_least_one_request() -> None:
    throttles = dev_with("api.requests_per_second", 35).api.throttles
    assert min(each.burst for each in throttles.values()) == 1


def test_the_access_log_of_the_api_expires_and_lacks_paths_queries_and_bodies(dev: Templates) -> None:
    (stage,) = dev["api"].all("ApiGatewayV2::Stage")
    settings = stage["AccessLogSettings"]
    written = json.loads(settings["Format"])
    assert {"requestId", "routeKey", "status", "sourceIp"} <= written.keys()
    for private in ("path", "query", "body", "userAgent", "authorizer"):
        assert private.lower() not in settings["Format"].lower()
    log = dev["api"].body["Resources"][settings["DestinationArn"]["Fn::GetAtt"][0]]["Properties"]
    assert log == {
        **log,
        "LogGroupName": "/aws/vendedlogs/mailroom-dev-api",
        "RetentionInDays": 30,
    }


def test_the_url_that_twilio_signs_equals_the_url_of_the_callbacks_function(dev: Templates) -> None:
    given = dev["api"].environment("mailroom-dev-twilio-callbacks")
    assert given["PUBLIC_URL"] == OWN_URL == dev["api"].output("ApiUrl")
    assert "ExportsOutputRefFeedbackQueue" in given["FEEDBACK_QUEUE_URL"]
    assert "ExportsOutputRefTwilioSecret" in given["TWILIO_SECRET_ARN"]
    told = dev["channels"].environment("mailroom-dev-send-sms")["CALLBACK_URL"]
    assert told.startswith("https://<mailroom-dev-api:ExportsOutputRefApi")
    assert told.endswith(".execute-api.eu-central-1.amazonaws.com/callbacks/twilio")


def test_a_domain_in_the_settings_replaces_the_address_of_the_api_in_links_and_callbacks(
    otherwise: Templates,
) -> None:
    domain = "https://mail.example.com"
    assert otherwise["api"].output("ApiUrl") == domain
    assert otherwise["api"].environment("mailroom-dev-twilio-callbacks")["PUBLIC_URL"] == domain
    channels = otherwise["channels"]
    assert channels.environment("mailroom-dev-send-sms")["CALLBACK_URL"] == f"{domain}/callbacks/twilio"
    assert channels.environment("mailroom-dev-send-mail")["UNSUBSCRIBE_URL"] == f"{domain}/unsubscribe"


def test_the_functions_that_read_sms_replies_get_the_stop_and_start_words_of_the_stage(
    otherwise: Templates, everything: Templates
) -> None:
    by_twilio = otherwise["api"].environment("mailroom-dev-twilio-callbacks")
    by_aws = everything["feedback"].environment("mailroom-dev-feedback")
    for given in (by_twilio, by_aws):
        assert json.loads(given["STOP_WORDS"]) == WORDS["stop_words"]
        assert json.loads(given["START_WORDS"]) == WORDS["start_words"]
    assert "STOP_WORDS" not in otherwise["feedback"].environment("mailroom-dev-feedback")


@pytest.mark.parametrize("name", ["everything", "lean"])
def test_the_api_keeps_twilios_routes_but_not_its_function_or_secret_if_twilio_is_not_used(
    name: str, request: pytest.FixtureRequest
) -> None:
    """API Gateway keeps a route's settings when the route goes, and then refuses each change of its stage."""
    stacks: Templates = request.getfixturevalue(name)
    routes = routes_of(stacks["api"])
    assert routes.keys() == MESSAGES | PEOPLE | LINKS | CALLBACKS
    assert {routes[each] for each in CALLBACKS} == {("unsubscribe", "NONE")}
    functions = {each["FunctionName"] for each in stacks["api"].all("Lambda::Function")}
    assert functions == {"mailroom-dev-messages-api", "mailroom-dev-unsubscribe"}
    assert not stacks["feedback"].all("SecretsManager::Secret")


def test_the_lanes_of_every_channel_are_passed_to_the_api(dev: Templates, lean: Templates) -> None:
    lanes = json.loads(dev["api"].environment("mailroom-dev-messages-api")["LANES"])
    assert lanes == {
        "mail": ["normal", "bulk"],
        **{each: ["normal"] for each in ("sms", "fax", "webhook")},
    }
    few = json.loads(lean["api"].environment("mailroom-dev-messages-api")["LANES"])
    assert few.keys() == {"mail", "chat", "webhook"}


def test_the_settings_set_how_long_the_api_keeps_mailbox_items_and_large_contents(
    dev: Templates, otherwise: Templates
) -> None:
    assert "MAILBOX_TTL_SECONDS" not in dev["api"].environment("mailroom-dev-messages-api")
    given = otherwise["api"].environment("mailroom-dev-messages-api")
    assert given["MAILBOX_TTL_SECONDS"] == str(30 * 86_400)
    assert given["PAYLOAD_TTL_SECONDS"] == str(50 * 86_400)


def test_unsubscribe_links_are_signed_and_checked_with_one_secret_that_aws_generates(dev: Templates) -> None:
    secret = dev["api"].one("SecretsManager::Secret", Name="mailroom-dev-unsubscribe")
    made = secret["GenerateSecretString"]
    assert (made["SecretStringTemplate"], made["GenerateStringKey"], made["PasswordLength"]) == (
        *("{}", "key"),
        44,
    )
    assert made["ExcludePunctuation"] is True
    checked = dev["api"].environment("mailroom-dev-unsubscribe")["UNSUBSCRIBE_SECRET_ARN"]
    assert checked == dev["api"].output("UnsubscribeSecretArn")
    signed = dev["channels"].environment("mailroom-dev-send-mail")["UNSUBSCRIBE_SECRET_ARN"]
    assert "ExportsOutputRefUnsubscribeSecret" in signed
    assert dev["api"].output("UnsubscribeSecretName") == "mailroom-dev-unsubscribe"


def test_the_unsubscribe_links_in_mails_have_the_address_of_the_api(dev: Templates) -> None:
    assert dev["api"].output("UnsubscribeUrl") == f"{OWN_URL}/unsubscribe"
    told = dev["channels"].environment("mailroom-dev-send-mail-bulk")["UNSUBSCRIBE_URL"]
    assert told.endswith(".execute-api.eu-central-1.amazonaws.com/unsubscribe")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("api.jwt.issuer", "http://login.example.com", "'http://login.example.com' should match pattern "),
        ("api.jwt.audience", [], "[] should have at least 1 item after validation, not 0."),
    ],
)
def test_the_error_about_a_wrong_issuer_or_audience_of_tokens_names_the_setting(
    key: str, value: object, said: str
) -> None:
    stages_own = {"api.jwt.issuer": {**JWT, "issuer": value}, "api.jwt.audience": {**JWT, "audience": value}}
    setting = "api.jwt" if key in stages_own else key
    assert refusal_of_setting(setting, stages_own.get(key, value)).startswith(f"mailroom.dev.{key}: {said}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"scopes": {name: SCOPES[name] for name in ("send", "read")}},
            "scopes.cancel: is missing; add it.",
        ),
        ({"scopes": {**SCOPES, "send": "a b"}}, "scopes.send: 'a b' should match pattern "),
        (
            {"caller_claim": ""},
            "caller_claim: '' should have at least 1 character.",
        ),
    ],
)
def test_the_error_about_wrong_scopes_or_a_wrong_claim_of_tokens_names_the_setting(
    changes: dict[str, object], said: str
) -> None:
    assert refusal_of_setting("api.jwt", {**JWT, **changes}).startswith(f"mailroom.dev.api.jwt.{said}")


def refused_prefix(prefixes: dict[str, str]) -> str:
    return refusal_of_setting("api.payload_prefixes", prefixes).removeprefix(
        "mailroom.dev.api.payload_prefixes"
    )


ROLE = "arn:aws:iam::111122223333:role/shop"


@pytest.mark.parametrize(
    "prefix", ["shop", "/", "/shop/", "shop//", "../", "shop/../", "./", "s3://bucket/shop/", "shop /", "ö/"]
)
def test_the_error_about_an_invalid_payload_prefix_names_it_and_its_role(prefix: str) -> None:
    assert refused_prefix({ROLE: prefix}) == (
        f".{ROLE}: {prefix!r} is not a key prefix; use one such as shop/, of letters, digits and !_.*'()-."
    )


def test_the_payload_prefix_that_the_api_itself_uses_is_refused() -> None:
    assert refused_prefix({ROLE: "oversize/"}).startswith(
        f".{ROLE}: 'oversize/' is reserved for messages that are "
    )


@pytest.mark.parametrize("prefix", ["", "shop/", "teams/shop/", "v1.2/(a)/"])
def test_a_valid_payload_prefix_is_accepted(prefix: str) -> None:
    assert dev_with("api.payload_prefixes", {ROLE: prefix}).api.payload_prefixes == {ROLE: prefix}


@pytest.mark.parametrize(
    "caller",
    ["shop", "arn:aws:iam::111122223333:role/teams/shop", "arn:aws:sts::111122223333:assumed-role/a/b"],
)
def test_a_payload_prefix_of_a_caller_that_cannot_sign_by_iam_is_refused(caller: str) -> None:
    assert refused_prefix({caller: "shop/"}) == (
        f": {caller!r} is not the ARN of a role or user; write a role as "
        "arn:aws:iam::<account>:role/<name>, without its path."
    )


def test_the_route_of_the_provider_resend_invokes_a_function_that_may_read_its_secret(
    by_resend: Templates,
) -> None:
    api = by_resend["api"]
    assert routes_of(api)[BY_RESEND] == ("resend-mail-events", "NONE")
    may = api.policy("mailroom-dev-resend-mail-events")
    assert may.keys() == LOG | {"secretsmanager:GetSecretValue", "sqs:SendMessage"}
    (secret,) = may["secretsmanager:GetSecretValue"]
    assert "ResendSecret" in secret
