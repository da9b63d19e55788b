"""The doctor's checks: a healthy stage has nothing, and each fault is found by its own check alone."""

import json
from collections.abc import Iterator
from datetime import datetime
from email.utils import format_datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mailroom.aws import clients
from mailroom.channels.channel import Channel
from mailroom.channels.contracts import CHANNELS
from mailroom.channels.webhook.contract import Webhook
from mailroom_local.providers.fax import FaxLine
from mailroom_local.providers.http import Reply
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import SECRET as RESEND_SECRET
from mailroom_local.providers.resend_mail import ResendSimulator
from mailroom_local.providers.signalwire import SignalWireSimulator
from mailroom_local.providers.sms import SmsNetwork
from mailroom_local.providers.telnyx import TelnyxSimulator
from mailroom_local.providers.twilio import TwilioSimulator
from mailroom_ops.doctor.checks import checks_of
from mailroom_ops.doctor.checks.stacks import clock_finding
from mailroom_ops.doctor.examined_stage import ConfiguredStage, ExaminedStage
from mailroom_ops.doctor.run import run
from tests.support.ops import doctor as world
from tests.support.ops.doctor import PREFIX, Answer, Aws, changed, healthy, looked
from tests.support.stacks.refusals import OURS

LANES = {each.queue: each for each in ConfiguredStage.read("dev", OURS).lanes}
EVENTS = ["SEND", "DELIVERY", "BOUNCE", "REJECT", "RENDERING_FAILURE", "DELIVERY_DELAY"]


@pytest.fixture(scope="module")
def providers() -> Iterator[str]:
    inbox = InboxStore()
    line = FaxLine(inbox)
    simulators = (
        TwilioSimulator(SmsNetwork(inbox), lambda _: None),
        SignalWireSimulator(line),
        TelnyxSimulator(line),
        ResendSimulator(inbox, lambda _: Reply(204, b"")),
    )
    with world.served(*simulators) as url:
        yield url


@pytest.fixture
def answers(providers: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """A healthy stage's; its bucket gives what was put there, and AWS has the right time."""
    found = healthy(providers)
    for service in ("secretsmanager", "s3"):
        monkeypatch.setattr(clients, service, partial(_newest, service))
    put: list[bytes] = []

    def content(_: int) -> bytes:
        put.append(b"pdf")
        return put[-1]

    monkeypatch.setattr("mailroom_ops.doctor.checks.channels.secrets.token_bytes", content)
    monkeypatch.setattr("requests.get", lambda url, **_: _http(url, put))
    return found


def _newest(service: str) -> Any:
    return Aws.newest.client(service)


def _http(url: str, put: list[bytes]) -> Any:
    if "payloads" in url:
        return SimpleNamespace(status_code=200, content=put[-1])
    date = format_datetime(datetime.fromtimestamp(world.NOW).astimezone(), usegmt=False)
    return _Dated({"Date": date})


class _Dated(SimpleNamespace):
    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__(headers=headers)

    def __enter__(self) -> "_Dated":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_a_healthy_stage_is_ok_in_all_that_is_looked_at(answers: dict[str, Answer]) -> None:
    found = looked(Aws(answers))
    assert {each.state for each in found} == {"ok"}, [each for each in found if each.state != "ok"]
    assert len({(each.subject, each.check) for each in found}) == 30


def test_a_mapping_that_invokes_an_alias_is_known_as_its_functions(answers: dict[str, Answer]) -> None:
    mappings = [world.mapping(lane) for lane in LANES.values()]
    aliased = [{**mapping, "FunctionArn": f"{mapping['FunctionArn']}:live"} for mapping in mappings]
    answers["lambda.ListEventSourceMappings"] = {"EventSourceMappings": aliased}
    assert {finding.state for finding in looked(Aws(answers))} == {"ok"}
    answers["lambda.GetFunctionConcurrency"] = lambda asked: (
        {"ReservedConcurrentExecutions": 0} if asked["FunctionName"] == f"{PREFIX}send-fax" else {}
    )
    (finding,) = [finding for finding in looked(Aws(answers)) if finding.state != "ok"]
    assert finding.sentence.startswith("send-fax is stopped")


def _quota(**changes: float) -> dict[str, Any]:
    usual = {"Max24HourSend": 50_000.0, "MaxSendRate": 14.0, "SentLast24Hours": 10.0}
    return world.account(SendQuota={**usual, **changes})


def _mappings(queue: str, **changes: Any) -> Answer:
    return {
        "EventSourceMappings": [
            world.mapping(lane, **(changes if name == queue else {})) for name, lane in LANES.items()
        ]
    }


def _stacks(**states: str) -> Answer:
    parts = (
        "mailbox",
        "feedback",
        "api",
        "channels",
        "webhook",
        "routing",
        "dead-letters",
        "monitoring",
        "fax",
    )
    return {"Stacks": [world.stack(f"{PREFIX}{each}", states.get(each, "CREATE_COMPLETE")) for each in parts]}


def _alarms(**changes: Any) -> Answer:
    return {
        "MetricAlarms": [
            world.alarm(f"{PREFIX}{name}-dlq-not-empty", **(changes if name == "mail" else {}))
            for name in LANES
        ]
    }


def _rates(share: float, kind: str = "BounceRate") -> Answer:
    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        of = share if asked["MetricName"] == f"Reputation.{kind}" else 0.0
        return {"Datapoints": [{"Timestamp": datetime(2026, 11, 21), "Average": of}]}

    return answer


def _subscriptions(*arns: str) -> Answer:
    return {"Subscriptions": [{"SubscriptionArn": arn, "Protocol": "email"} for arn in arns]}


FAULTS: list[tuple[str, Answer, str, str, str, str]] = [
    (
        "apigatewayv2.GetRoutes",
        {"Items": []},
        *("stacks", "routes", "failed", "settings of routes that are gone: POST /twilio/inbound"),
    ),
    (
        "apigatewayv2.GetApis",
        {"Items": []},
        *("stacks", "routes", "skipped", "has no HTTP API"),
    ),
    (
        "events.DescribeEventBus",
        "ResourceNotFoundException",
        *("functions", "event bus", "failed", "There is no bus orders"),
    ),
    (
        "cloudformation.DescribeStacks",
        {"Stacks": []},
        "stacks",
        "deployed",
        "failed",
        "Not deployed: mailbox",
    ),
    (
        "cloudformation.DescribeStacks",
        _stacks(api="UPDATE_FAILED"),
        "stacks",
        "deployed",
        "failed",
        "UPDATE_FAILED",
    ),
    (
        "cloudformation.DescribeStacks",
        _stacks(api="UPDATE_ROLLBACK_COMPLETE"),
        *("stacks", "deployed", "warning", "went back"),
    ),
    (
        "cloudformation.DescribeStacks",
        _stacks(api="UPDATE_IN_PROGRESS"),
        "stacks",
        "deployed",
        "warning",
        "changed",
    ),
    (
        "sesv2.GetAccount",
        world.account(ProductionAccessEnabled=False),
        "mail",
        "account",
        "warning",
        "sandbox",
    ),
    ("sesv2.GetAccount", world.account(SendingEnabled=False), "mail", "account", "failed", "paused"),
    (
        "sesv2.GetAccount",
        world.account(EnforcementStatus="PROBATION"),
        "mail",
        "account",
        "warning",
        "probation",
    ),
    (
        "sesv2.GetAccount",
        world.account(EnforcementStatus="SHUTDOWN"),
        "mail",
        "account",
        "failed",
        "shutdown",
    ),
    ("sesv2.GetAccount", _quota(MaxSendRate=0.5), "mail", "quota", "warning", "would send 1 mails a second"),
    ("sesv2.GetAccount", _quota(SentLast24Hours=40_000), "mail", "quota", "warning", "40,000 of 50,000"),
    ("sesv2.GetAccount", _quota(SentLast24Hours=50_000), "mail", "quota", "failed", "50,000 of 50,000"),
    ("cloudwatch.GetMetricStatistics", _rates(0.02), "mail", "reputation", "warning", "2.00% of the mails"),
    ("cloudwatch.GetMetricStatistics", _rates(0.05), "mail", "reputation", "failed", "5.00% of the mails"),
    ("cloudwatch.GetMetricStatistics", {"Datapoints": []}, "mail", "reputation", "skipped", "too little"),
    ("sesv2.GetEmailIdentity", world.identities({}), "mail", "senders", "failed", "is not an identity"),
    (
        "sesv2.GetEmailIdentity",
        world.identities({"example.com": world.identity(VerifiedForSendingStatus=False)}),
        *("mail", "senders", "failed", "may not send"),
    ),
    (
        "sesv2.GetEmailIdentity",
        world.identities({"example.com": world.identity(DkimAttributes={"Status": "PENDING"})}),
        *("mail", "senders", "warning", "not signed"),
    ),
    (
        "sesv2.GetEmailIdentity",
        world.identities({"example.com": world.identity(MailFromAttributes=None)}),
        *("mail", "senders", "warning", "no MAIL FROM domain"),
    ),
    (
        "sesv2.GetConfigurationSet",
        "NotFoundException",
        "mail",
        "configuration set",
        "failed",
        "no configuration set",
    ),
    (
        "sesv2.GetConfigurationSet",
        world.configuration_set(SendingOptions={"SendingEnabled": False}),
        *("mail", "configuration set", "failed", "is paused"),
    ),
    (
        "sesv2.GetConfigurationSet",
        world.configuration_set(SuppressionOptions={"SuppressedReasons": ["BOUNCE"]}),
        *("mail", "configuration set", "warning", "not suppress for COMPLAINT"),
    ),
    (
        "sesv2.GetConfigurationSetEventDestinations",
        {"EventDestinations": [world.destination(EVENTS)]},
        *("mail", "events", "failed", "sends no events of type COMPLAINT"),
    ),
    (
        "sesv2.GetConfigurationSetEventDestinations",
        {"EventDestinations": [world.destination([*EVENTS, "COMPLAINT"], "arn:aws:sns:us-east-1:1:other")]},
        *("mail", "events", "failed", "gets no events about mails sent with"),
    ),
    (
        "secretsmanager.GetSecretValue",
        world.with_secret("unsubscribe", '{"key": "short"}'),
        *("mail", "opt-out key", "failed", "cannot be signed"),
    ),
    (
        "secretsmanager.GetSecretValue",
        world.with_secret("signing", "c2hvcnQ="),
        *("webhook", "signing key", "failed", "cannot be signed"),
    ),
    (
        "secretsmanager.GetSecretValue",
        world.with_secret("twilio", "{}"),
        *("sms", "credentials", "failed", "Twilio's secret is not"),
    ),
    (
        "secretsmanager.GetSecretValue",
        world.with_secret("fax", '{"project": "local"}'),
        *("fax", "credentials", "failed", "secret is not"),
    ),
    (
        "sns.GetPlatformApplicationAttributes",
        {"Attributes": {"Enabled": "false"}},
        *("push", "applications", "failed", "turned off"),
    ),
    ("sns.GetPlatformApplicationAttributes", "NotFound", "push", "applications", "failed", "is not there"),
    (
        "sns.GetPlatformApplicationAttributes",
        {"Attributes": {"AppleCertificateExpirationDate": "2026-12-01T00:00:00Z"}},
        *("push", "applications", "warning", "expires on 2026-12-01"),
    ),
    (
        "sns.GetPlatformApplicationAttributes",
        {"Attributes": {"AppleCertificateExpirationDate": "2026-11-21T08:59:59Z"}},
        *("push", "applications", "failed", "has expired"),
    ),
    ("sns.GetTopicAttributes", "NotFound", "push", "topics", "failed", "news is not there"),
    (
        "lambda.ListEventSourceMappings",
        _mappings("mail", State="Disabled"),
        *("functions", "mappings", "failed", "send-mail does not read mail: its mapping is disabled"),
    ),
    (
        "lambda.ListEventSourceMappings",
        _mappings("mail", LastProcessingResult="PROBLEM: Function call failed"),
        *("functions", "mappings", "failed", "has trouble with mail"),
    ),
    (
        "lambda.GetAccountSettings",
        {"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}},
        *("functions", "concurrency", "warning", "the account has 10 of 10"),
    ),
    (
        "lambda.GetAccountSettings",
        {"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}},
        *("functions", "concurrency", "warning", "10 functions at once, monitoring.concurrency_quota is"),
    ),
    (
        "lambda.GetAccountSettings",
        {"AccountLimit": {"ConcurrentExecutions": 5000, "UnreservedConcurrentExecutions": 5000}},
        *(
            "functions",
            "concurrency",
            "warning",
            "5,000 functions at once, monitoring.concurrency_quota is",
        ),
    ),
    (
        "lambda.GetFunctionConcurrency",
        lambda asked: {"ReservedConcurrentExecutions": 0} if asked["FunctionName"].endswith("fax") else {},
        *("functions", "concurrency", "failed", "send-fax is stopped"),
    ),
    (
        "sqs.GetQueueAttributes",
        lambda asked: {
            "Attributes": {
                "ApproximateNumberOfMessagesNotVisible": "2" if "fax-dlq" in asked["QueueUrl"] else "0"
            }
        },
        *("queues", "dead letters", "failed", "2 dead letters wait in fax-dlq.fifo"),
    ),
    ("s3.ListObjectsV2", {"Contents": [{"Key": "a"}]}, "queues", "given up", "failed", "gave up on messages"),
    ("cloudwatch.DescribeAlarms", {"MetricAlarms": []}, "alarms", "there", "failed", "alarms are missing"),
    (
        "cloudwatch.DescribeAlarms",
        _alarms(AlarmActions=[]),
        "alarms",
        "there",
        "warning",
        "notify nobody: mailroom",
    ),
    (
        "cloudwatch.DescribeAlarms",
        _alarms(ActionsEnabled=False),
        "alarms",
        "there",
        "warning",
        "notify nobody",
    ),
    (
        "cloudwatch.DescribeAlarms",
        _alarms(StateValue="ALARM"),
        "alarms",
        "ringing",
        "failed",
        "dlq-not-empty rings",
    ),
    ("sns.ListSubscriptionsByTopic", "NotFound", "alarms", "heard", "warning", "There is no topic"),
    ("sns.ListSubscriptionsByTopic", _subscriptions(), "alarms", "heard", "warning", "Nobody hears"),
    (
        "sns.ListSubscriptionsByTopic",
        _subscriptions("arn:aws:sns:1", "PendingConfirmation"),
        *("alarms", "heard", "warning", "Not confirmed yet: 1 by email"),
    ),
    ("dynamodb.ListTables", {"TableNames": []}, "tables", "protection", "failed", "no tables"),
    (
        "dynamodb.DescribeTimeToLive",
        {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
        *("tables", "expiry", "warning", "for ever"),
    ),
]
"""What AWS answers otherwise; which check finds it, how bad it is, and words of its sentence."""

HOUR = int(world.NOW) // 3600
DAYS = [
    ({}, "ok", "0 of the stage's own 40,000 recipients a day are used."),
    ({"used_0": 9, f"used_{HOUR}": 7_000, f"bulk_{HOUR}": 6_000}, "ok", "7,000 of the stage's own 40,000"),
    ({f"used_{HOUR}": 36_000, f"bulk_{HOUR}": 36_000}, "warning", "36,000 of the stage's own 40,000"),
    ({"closed_until": int(world.NOW) + 1_800}, "warning", "Bulk waits until about 2026-11-21 09:30:00 UTC."),
]
"""Items of the day's budget; how bad that is, and words of the sentence."""

BESIDE = {
    ("cloudwatch.DescribeAlarms", "there"): {"ringing"},
    ("lambda.GetAccountSettings", "concurrency"): set[str](),
    ("dynamodb.ListTables", "protection"): {"expiry"},
}
"""Further checks that then have nothing to look at."""


def test_a_paused_lane_is_a_warning_with_the_words_of_its_pause_and_the_command_that_resumes_it(
    answers: dict[str, Answer],
) -> None:
    words = "since 2026-11-20 by ada: wrong link"
    answers["lambda.ListEventSourceMappings"] = _mappings("mail-bulk", State="Disabled")
    answers["sqs.ListQueueTags"] = {"Tags": {"mailroom:paused": words}}
    (finding,) = [finding for finding in looked(Aws(answers)) if finding.state != "ok"]
    assert (finding.check, finding.state) == ("mappings", "warning")
    assert finding.sentence == f"mail-bulk is paused {words}."
    assert finding.fix == "mailroom lane resume mail bulk --stage dev"


@pytest.mark.parametrize(("asked", "answer", "subject", "check", "state", "words"), FAULTS)
def test_each_fault_is_found_by_its_own_check_alone(
    answers: dict[str, Answer], asked: str, answer: Answer, subject: str, check: str, state: str, words: str
) -> None:
    assert asked in answers
    answers[asked] = answer
    found = [each for each in looked(Aws(answers)) if each.state != "ok"]
    own = [each for each in found if (each.subject, each.check) == (subject, check)]
    assert any(each.state == state and words in each.sentence for each in own), own
    others = {each.check for each in found} - {check}
    assert others <= BESIDE.get((asked, check), set()), found
    assert all(each.fix for each in own if each.state in {"warning", "failed"})


@pytest.mark.parametrize(
    ("silent", "expected"),
    [
        (1, [("skipped", "1 of 2 alarms are not evaluated"), ("ok", "None of 1 alarms rings")]),
        (2, [("skipped", "2 of 2 alarms are not evaluated")]),
    ],
)
def test_an_alarm_that_is_not_evaluated_is_never_among_those_that_do_not_ring(
    answers: dict[str, Answer], silent: int, expected: list[tuple[str, str]]
) -> None:
    states = ["INSUFFICIENT_DATA"] * silent + ["OK"] * (2 - silent)
    alarms = [world.alarm(f"{PREFIX}{at}", state) for at, state in enumerate(states)]
    answers["cloudwatch.DescribeAlarms"] = {"MetricAlarms": alarms}
    found = [each for each in looked(Aws(answers), ["alarms"]) if each.check == "ringing"]
    assert [(each.state, each.sentence.partition(":")[0].rstrip(".")) for each in found] == expected


@pytest.mark.parametrize(("item", "state", "words"), DAYS)
def test_the_stages_own_day_is_said_with_the_time_until_which_bulk_waits(
    answers: dict[str, Answer], item: dict[str, int], state: str, words: str
) -> None:
    answers["dynamodb.GetItem"] = {"Item": {name: {"N": f"{value}"} for name, value in item.items()}}
    (found,) = (each for each in looked(Aws(answers), ["mail"]) if each.check == "day")
    assert (found.state, words in found.sentence) == (state, True), found
    assert found.fix == ("" if state == "ok" else "See `mailroom docs day-used-up`.")


def test_a_new_accounts_quota_is_to_be_set_so_that_its_alarm_can_ring(answers: dict[str, Answer]) -> None:
    limits = {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
    answers["lambda.GetAccountSettings"] = {"AccountLimit": limits}
    found = [each for each in looked(Aws(answers), ["functions"]) if "concurrency_quota" in each.sentence]
    assert [(each.state, each.sentence) for each in found] == [
        (
            "warning",
            "Lambda lets the account run 10 functions at once, monitoring.concurrency_quota is 1,000: the "
            "alarm concurrency rings at 800.",
        )
    ]
    assert "Set mailroom.dev.monitoring.concurrency_quota to 10" in found[0].fix


def test_the_accounts_quota_is_not_held_against_settings_that_could_not_be_read(
    answers: dict[str, Answer],
) -> None:
    limits = {"ConcurrentExecutions": 5000, "UnreservedConcurrentExecutions": 5000}
    answers["lambda.GetAccountSettings"] = {"AccountLimit": limits}
    found = looked(Aws(answers), ["functions"], ConfiguredStage(trouble="It is gone."))
    assert [each.state for each in found if each.check == "concurrency"] == ["ok"]


def test_what_aws_forbids_is_a_warning_that_names_the_action(answers: dict[str, Answer]) -> None:
    answers["sesv2.GetAccount"] = "AccessDeniedException"
    found = [each for each in looked(Aws(answers)) if each.state != "ok"]
    assert {each.check for each in found} == {"account", "quota"}
    assert {each.sentence for each in found} == {"Could not check: needs sesv2:GetAccount."}
    assert {each.state for each in found} == {"warning"}


def test_who_may_do_nothing_hears_so_of_each_check(answers: dict[str, Answer]) -> None:
    kept = {name: each for name, each in answers.items() if name == "sts.GetCallerIdentity"}
    forbidden: dict[str, Answer] = dict.fromkeys(answers, "AccessDenied")
    found = looked(Aws({**forbidden, **kept}))
    states = {(each.subject, each.check): each.state for each in found}
    assert states.pop(("clock", "this machine's")) == "ok"
    assert states.pop(("stacks", "settings")) == "ok"
    assert set(states.values()) == {"warning"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '{"account_sid": "AC0123456789abcdef0123456789abcdef", "auth_token": "wrong"}',
            "with: 401, Authenticate",
        ),
        (
            '{"account_sid": "AC0123456789abcdef0123456789abcdef", "auth_token": "wrong", '
            '"api_key": "SKfedcba9876543210fedcba9876543210", "api_key_secret": "local-key"}',
            "token, which its callbacks are signed with: 401",
        ),
    ],
)
def test_credentials_that_twilio_refuses_are_found(answers: dict[str, Answer], text: str, words: str) -> None:
    answers["secretsmanager.GetSecretValue"] = world.with_secret("twilio", text)
    found = looked(Aws(answers), ["sms"])
    assert any(each.state == "failed" and words in each.sentence for each in found), found
    assert "wrong" not in str(found)


def test_an_api_key_that_may_not_see_the_account_is_good(answers: dict[str, Answer]) -> None:
    text = (
        '{"account_sid": "AC0123456789abcdef0123456789abcdef", "auth_token": "local", '
        '"api_key": "SKfedcba9876543210fedcba9876543210", "api_key_secret": "local-key"}'
    )
    answers["secretsmanager.GetSecretValue"] = world.with_secret("twilio", text)
    assert {each.state for each in looked(Aws(answers), ["sms"])} == {"ok"}


def test_a_provider_that_cannot_be_reached_is_found(answers: dict[str, Answer]) -> None:
    nowhere = "http://127.0.0.1:9"
    gone = changed(changed(answers, "send-sms", SMS_BASE_URL=nowhere), "send-fax", FAX_BASE_URL=nowhere)
    found = [each for each in looked(Aws(gone), ["sms", "fax"]) if each.state != "ok"]
    assert [(each.subject, each.check, each.state) for each in found] == [
        ("sms", "credentials", "failed"),
        ("fax", "credentials", "failed"),
    ]


def test_telnyx_is_asked_in_its_own_words(answers: dict[str, Answer], providers: str) -> None:
    telnyx = changed(answers, "send-fax", FAX_PROVIDER="telnyx", FAX_BASE_URL=f"{providers}/telnyx")
    found = looked(Aws(telnyx), ["fax"])
    assert found[0].sentence == "telnyx takes the credentials and lists faxes."
    telnyx["secretsmanager.GetSecretValue"] = world.with_secret("fax", "{}")
    assert looked(Aws(telnyx), ["fax"])[0].state == "failed"


@pytest.fixture
def by_resend(
    answers: dict[str, Answer], providers: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Answer]:
    """A stage whose mails Resend sends."""
    text = json.dumps(RESEND_SECRET)
    monkeypatch.setitem(world.SECRETS, "resend", text)
    told = {
        "RESEND_SECRET_ARN": "resend",
        "RESEND_BASE_URL": f"{providers}/resend",
        "UNSUBSCRIBE_URL": f"{providers}/api/unsubscribe",
    }
    return changed(changed(answers, "send-mail", **told), "send-mail-bulk", **told)


def test_resend_is_asked_for_its_key_domains_quota_and_webhook(by_resend: dict[str, Answer]) -> None:
    found = looked(Aws(by_resend), ["mail"])
    assert {(each.check, each.state): each.sentence for each in found} == {
        ("account", "ok"): "Resend takes the key.",
        ("quota", "ok"): "3 of 50,000 mails are used (monthly quota).",
        ("day", "ok"): "0 of the stage's own 40,000 recipients a day are used.",
        ("reputation", "skipped"): "Resend sends the stage's mails, and has no such thing.",
        ("senders", "ok"): "mailroom@example.com may send: example.com is verified.",
        ("configuration set", "skipped"): "Resend sends the stage's mails, and has no such thing.",
        ("events", "ok"): "Resend posts the events about the stage's mails to its API.",
        ("opt-out key", "ok"): "Links for opting out can be signed: the key is of the right form.",
    }


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        ({"RESEND_SECRET_ARN": "fax"}, "account", "refuses the key: 400"),
        ({"RESEND_SECRET_ARN": "unsubscribe"}, "account", 'is not {"api_key": "…"}'),
        ({"RESEND_BASE_URL": "http://127.0.0.1:9"}, "account", "cannot be reached"),
        ({"MAIL_SENDERS": '["a@other.example"]'}, "senders", "other.example is no domain of the account"),
        ({"MAIL_SENDERS": '["a@in.example.com"]'}, "senders", "in.example.com is no domain of the account"),
        ({"UNSUBSCRIBE_URL": "https://other.example/unsubscribe"}, "events", "posts no email.bounced"),
    ],
)
def test_what_is_wrong_at_resend_is_found(
    by_resend: dict[str, Answer], change: dict[str, str], check: str, words: str
) -> None:
    wrong = changed(changed(by_resend, "send-mail", **change), "send-mail-bulk", **change)
    found = looked(Aws(wrong), ["mail"])
    assert [each.check for each in found if each.state == "failed" and words in each.sentence] == [check]


@pytest.mark.parametrize("domains", [[], [{"name": "example.com", "status": "pending"}]])
def test_a_domain_that_resend_has_not_or_not_yet_verified_is_found(
    by_resend: dict[str, Answer], monkeypatch: pytest.MonkeyPatch, domains: list[dict[str, str]]
) -> None:
    said = {"/domains": {"object": "list", "data": domains}}
    monkeypatch.setattr("mailroom_local.providers.resend_mail._account", lambda _: said)
    found = [each for each in looked(Aws(by_resend), ["mail"]) if each.check == "senders"]
    assert [(each.state, each.fix) for each in found] == [("failed", "Verify it: https://resend.com/domains")]


@pytest.mark.parametrize(
    ("tier", "limit", "states"),
    [("PRODUCTION", 500, ["ok", "ok"]), ("SANDBOX", 1, ["warning", "warning"])],
)
def test_aws_says_whether_it_would_send_text_messages(
    answers: dict[str, Answer], tier: str, limit: int, states: list[str]
) -> None:
    aws = changed(answers, "send-sms", SMS_PROVIDER="aws")
    aws["pinpoint-sms-voice-v2.DescribeAccountAttributes"] = {
        "AccountAttributes": [{"Name": "ACCOUNT_TIER", "Value": tier}]
    }
    aws["pinpoint-sms-voice-v2.DescribeSpendLimits"] = {
        "SpendLimits": [
            {
                "Name": "TEXT_MESSAGE_MONTHLY_SPEND_LIMIT",
                "EnforcedLimit": limit,
                "MaxLimit": 1000,
                "Overridden": False,
            }
        ]
    }
    assert [each.state for each in looked(Aws(aws), ["sms"])] == states


def test_a_pdf_is_fetched_by_a_url_that_the_senders_own_client_signs(
    answers: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    signing = SimpleNamespace(
        put_object=lambda **_: None,
        delete_object=lambda **_: None,
        generate_presigned_url=lambda *_, **__: "https://signed.by.the.sender",
    )
    fetched: list[str] = []

    def get(url: str, **_: Any) -> SimpleNamespace:
        fetched.append(url)
        return SimpleNamespace(status_code=200, content=b"pdf")

    monkeypatch.setattr(clients, "s3", lambda: signing)
    monkeypatch.setattr("requests.get", get)
    found = [each for each in looked(Aws(answers), ["fax"]) if each.check == "media"]
    assert ([each.state for each in found], fetched) == (["ok"], ["https://signed.by.the.sender"])


def test_a_pdf_that_cannot_be_fetched_is_found_and_deleted_all_the_same(
    answers: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("requests.get", lambda *_, **__: SimpleNamespace(status_code=403, content=b""))
    aws = Aws(answers)
    found = [each for each in looked(aws, ["fax"]) if each.check == "media"]
    assert [(each.state, "S3 answers 403" in each.sentence) for each in found] == [("failed", True)]
    assert aws.asked.count("s3.DeleteObject") == 1


def test_a_stage_that_is_not_production_and_may_reach_everybody_is_warned_of(
    answers: dict[str, Answer],
) -> None:
    functions: Any = answers["lambda.ListFunctions"]
    for each in functions["Functions"]:
        if "send-mail" in each["FunctionName"]:
            del each["Environment"]["Variables"]["RECIPIENTS_ONLY"]
    (found,) = [each for each in looked(Aws(answers), ["functions"]) if each.check == "recipients"]
    assert (found.state, found.sentence) == (
        "warning",
        "Messages reach everybody, as in production: send-mail, send-mail-bulk.",
    )
    assert found.fix == (
        "Set mailroom.dev.recipients.only or .redirect_to. If this is production, set "
        "deployment.deletion_protection."
    )


@pytest.mark.parametrize(("bounded", "state"), [(True, "warning"), (False, "ok")])
def test_production_that_may_not_reach_everybody_is_warned_of(
    answers: dict[str, Answer], bounded: bool, state: str
) -> None:
    functions: Any = answers["lambda.ListFunctions"]
    for each in functions["Functions"]:
        if not bounded:
            each["Environment"]["Variables"].pop("RECIPIENTS_ONLY", None)
    settings = ConfiguredStage.read("prod").settings
    checked = looked(Aws(answers), ["functions"], ConfiguredStage(settings, [], ""))
    (found,) = [each for each in checked if each.check == "recipients"]
    assert found.state == state
    assert ("reach only those" in found.sentence) == bounded


def test_a_protected_stage_fails_where_others_are_warned(answers: dict[str, Answer]) -> None:
    settings = ConfiguredStage.read("prod").settings
    assert settings is not None
    answers["sns.ListSubscriptionsByTopic"] = _subscriptions()
    answers["dynamodb.DescribeTable"] = {
        "Table": {"TableStatus": "ACTIVE", "DeletionProtectionEnabled": False}
    }
    answers["dynamodb.DescribeContinuousBackups"] = {
        "ContinuousBackupsDescription": {"ContinuousBackupsStatus": "DISABLED"}
    }
    found = looked(Aws(answers), ["alarms", "tables"], ConfiguredStage(settings, [], ""))
    assert [each.sentence for each in found if each.state == "failed"] == [
        "Nobody hears the alarms.",
        f"{PREFIX}ledger is not protected from deletion.",
        f"{PREFIX}ledger cannot be taken back to an earlier time.",
    ]


@pytest.mark.parametrize(
    ("kind", "share", "state", "words"),
    [
        ("BounceRate", 0.019, "ok", "from 2.00%, 5.00%"),
        ("ComplaintRate", 0.0009, "warning", "from 0.08%, 0.10%"),
        ("ComplaintRate", 0.001, "failed", "from 0.08%, 0.10%"),
    ],
)
def test_the_reputation_is_held_against_the_rates_at_which_alarms_ring(
    answers: dict[str, Answer], kind: str, share: float, state: str, words: str
) -> None:
    answers["cloudwatch.GetMetricStatistics"] = _rates(share, kind)
    stage = ConfiguredStage.read("dev")
    (finding,) = [each for each in looked(Aws(answers), ["mail"], stage) if words in each.sentence]
    assert finding.state == state


def test_a_stage_that_cdk_json_does_not_have_is_looked_at_all_the_same(answers: dict[str, Answer]) -> None:
    found = looked(Aws(answers), (), ConfiguredStage.read("moon"))
    others = [each for each in found if each.state != "ok"]
    assert {(each.check, each.state) for each in others} == {
        ("settings", "skipped"),
        ("recipients", "skipped"),
    }
    assert "'moon' is unknown" in others[0].sentence


@pytest.mark.parametrize(
    ("ahead", "state", "words"),
    [
        (0.4, "ok", "to 1 s"),
        (-60, "ok", "to 60 s"),
        (61, "warning", "61 s ahead"),
        (-300, "warning", "300 s behind"),
        (301, "failed", "301 s ahead"),
    ],
)
def test_a_clock_may_be_off_by_a_minute(ahead: float, state: str, words: str) -> None:
    verdict = clock_finding(ahead)
    assert (verdict.state, words in verdict.sentence) == (state, True)


@pytest.mark.parametrize(
    ("function", "variable", "name", "state"),
    [
        ("send-webhook", "SIGNING_SECRET_ARN", "webhook-signing", "c2hvcnQ="),
        ("send-webhook", "SIGNING_SECRET_ARN", "webhook-signing", None),
        ("send-mail", "UNSUBSCRIBE_SECRET_ARN", "unsubscribe", '{"key": "short"}'),
        ("send-mail", "UNSUBSCRIBE_SECRET_ARN", "unsubscribe", None),
    ],
)
def test_a_secret_is_named_as_secrets_manager_finds_it(
    answers: dict[str, Answer], function: str, variable: str, name: str, state: str | None
) -> None:
    arn = f"arn:aws:secretsmanager:us-east-1:123456789012:secret:{PREFIX}{name}-AbC123"

    def secret(asked: dict[str, Any]) -> dict[str, Any] | str:
        found = world.secret({**asked, "SecretId": "signing"} if asked["SecretId"] == arn else asked)
        if asked["SecretId"] != arn or isinstance(found, str):
            return found
        return "ResourceNotFoundException" if state is None else {**found, "SecretString": state}

    answers["secretsmanager.GetSecretValue"] = secret
    found = looked(Aws(changed(answers, function, **{variable: arn})), ["mail", "webhook"])
    (bad,) = (each for each in found if each.state == "failed")
    assert f" {arn} " in (bad.sentence if state is None else bad.fix)


def test_what_is_not_deployed_is_mended_by_the_command_that_knows_the_cdks_version(
    answers: dict[str, Answer],
) -> None:
    answers["cloudformation.DescribeStacks"] = {"Stacks": []}
    fixes = [each.fix for each in looked(Aws(answers), ["stacks"]) if each.check == "deployed"]
    assert fixes == ["mailroom deploy --stage dev"]


@pytest.mark.parametrize(
    ("value", "state"), [("", "ok"), ("ResourceNotFoundException", "failed"), ("AccessDenied", "warning")]
)
def test_a_channel_that_names_no_checks_has_its_secrets_read(
    answers: dict[str, Answer], value: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHANNELS, "chat", Channel(contract=Webhook, messages="Chats"))
    if value:
        answers["secretsmanager.GetSecretValue"] = value
    aws = Aws(changed(answers, "send-webhook", CHANNEL="chat"))
    found = run(ExaminedStage(aws, "dev"), [*checks_of("chat"), *checks_of("webhook")]).checked
    assert [(each.subject, each.check, each.state) for each in found] == [
        ("chat", "secrets", state),
        ("webhook", "signing key", "skipped"),
    ]
    assert found[1].sentence == "No function of the stage sends by webhook."


@pytest.mark.parametrize(
    ("bus", "said"),
    [
        ("", "The stage puts no events."),
        ("arn:aws:events:us-east-1:444455556666:event-bus/x", "belongs to another account"),
    ],
)
def test_no_bus_or_another_accounts_is_not_asked_for(answers: dict[str, Answer], bus: str, said: str) -> None:
    aws = Aws(changed(answers, "outcomes", EVENT_BUS=bus))
    (found,) = (each for each in looked(aws, ["functions"]) if each.check == "event bus")
    assert (found.state, "events.DescribeEventBus" in aws.asked) == ("skipped", False)
    assert said in found.sentence
