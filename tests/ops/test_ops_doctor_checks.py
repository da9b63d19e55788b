"""The doctor's checks: a healthy stage is without findings, and each fault is found by only one check."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from mailroom.aws import clients
from mailroom.channels.channel import Channel
from mailroom.channels.contracts import CHANNELS
from mailroom.channels.webhook.contract import Webhook
from mailroom.providers import resend
from mailroom_local.providers.fax import FaxLine
from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import SECRET as RESEND_SECRET
from mailroom_local.providers.resend_mail import ResendSimulator
from mailroom_local.providers.signalwire import SignalWireSimulator
from mailroom_local.providers.sms import SmsNetwork, SmsOrder
from mailroom_local.providers.telnyx import TelnyxSimulator
from mailroom_local.providers.twilio import AUTH_TOKEN, REDACTING_SID, TwilioSimulator
from mailroom_ops.costs.configured_lanes import lanes_of
from mailroom_ops.doctor.checks import checks_of
from mailroom_ops.doctor.examined_stage import ExaminedStage, settings_or_trouble
from mailroom_ops.doctor.run import run
from mailroom_stacks.settings.load import load
from tests.support.local.served import served
from tests.support.ops import doctor as world
from tests.support.ops.doctor import PREFIX, Answer, Aws, healthy, looked, stacks, with_variables
from tests.support.stacks.refusals import STAGES

LANES = {lane.queue: lane for lane in lanes_of(world.SETTINGS)}
PROD = load(STAGES, "prod")
POOL = f"pool-{0:032x}"
NUMBER: dict[str, Any] = {
    "PhoneNumberArn": f"arn:aws:sms-voice:eu-central-1:123456789012:phone-number/phone-{0:032x}",
    "PhoneNumberId": f"phone-{0:032x}",
    "PhoneNumber": "+12025550123",
    "Status": "ACTIVE",
    "IsoCountryCode": "US",
    "MessageType": "TRANSACTIONAL",
    "NumberCapabilities": ["SMS"],
    "NumberType": "TOLL_FREE",
    "MonthlyLeasingPrice": "2.00",
    "TwoWayEnabled": True,
    "SelfManagedOptOutsEnabled": False,
    "OptOutListName": "Default",
    "DeletionProtectionEnabled": False,
    "CreatedTimestamp": datetime(2026, 11, 1, tzinfo=UTC),
}
"""Number in a response of DescribePhoneNumbers."""


@pytest.fixture(scope="module")
def network() -> SmsNetwork:
    return SmsNetwork(InboxStore(), clock=lambda: 0.0)


@pytest.fixture(scope="module")
def providers(network: SmsNetwork) -> Iterator[str]:
    inbox = InboxStore()
    line = FaxLine(inbox)
    simulators = (
        TwilioSimulator(network, lambda _: None),
        SignalWireSimulator(line),
        TelnyxSimulator(line),
        ResendSimulator(inbox),
    )
    with served(SimulatorServer(0, *simulators)) as url:
        yield url


@pytest.fixture
def healthy_answers(providers: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """Return AWS's responses about a healthy stage."""
    monkeypatch.setattr(clients, "secretsmanager", lambda: Aws.newest.client("secretsmanager"))
    monkeypatch.setattr("dns.resolver.resolve", world.resolver(world.TEXTS))
    return healthy(providers)


def test_every_check_of_a_healthy_stage_is_ok(healthy_answers: dict[str, Answer]) -> None:
    found = looked(Aws(healthy_answers))
    assert {each.state for each in found} == {"ok"}, [each for each in found if each.state != "ok"]
    assert len({(each.subject, each.check) for each in found}) == 21


def _quota(**changes: float) -> dict[str, Any]:
    usual = {"Max24HourSend": 50_000.0, "MaxSendRate": 14.0, "SentLast24Hours": 10.0}
    return world.ses_account_of(SendQuota={**usual, **changes})


def _mappings(queue: str, **changes: Any) -> Answer:
    return {
        "EventSourceMappings": [
            world.mapping(lane, **(changes if name == queue else {})) for name, lane in LANES.items()
        ]
    }


def _alarms(**changes: Any) -> Answer:
    return {
        "MetricAlarms": [
            world.alarm_description(f"{PREFIX}{name}-dlq-not-empty", **(changes if name == "mail" else {}))
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


PROBLEM = "PROBLEM: Function call failed"


def _without_secret(request: dict[str, Any]) -> dict[str, Any] | str:
    return "ResourceNotFoundException" if request["SecretId"] == "signing" else world.secret_value(request)


def _stopped_fax(request: dict[str, Any]) -> dict[str, Any]:
    return {"ReservedConcurrentExecutions": 0} if request["FunctionName"].endswith("send-fax") else {}


def _dead_faxes(request: dict[str, Any]) -> dict[str, Any]:
    count = "2" if "fax-dlq" in request["QueueUrl"] else "0"
    return {"Attributes": {"ApproximateNumberOfMessagesNotVisible": count}}


def _certificate(until: str) -> Answer:
    return {"Attributes": {"AppleCertificateExpirationDate": until}}


def _applications(**attributes: str) -> Answer:
    return {"Attributes": attributes}


def _concurrency(quota: int) -> Answer:
    return {"AccountLimit": {"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": quota}}


def _identity(**changes: Any) -> Answer:
    return world.identities({"example.com": world.identity(**changes)})


FAULTS: dict[str, list[tuple[Answer, str, str]]] = {
    "events.DescribeEventBus": [
        ("ResourceNotFoundException", "functions, event bus: failed", "There is no bus orders"),
    ],
    "cloudformation.DescribeStacks": [
        ({"Stacks": []}, "stacks, deployed: failed", "Not deployed: mailbox"),
        (world.stacks(api="UPDATE_FAILED"), "stacks, deployed: failed", "UPDATE_FAILED"),
        (world.stacks(api="UPDATE_ROLLBACK_COMPLETE"), "stacks, deployed: warning", "was rolled back"),
        (world.stacks(api="UPDATE_IN_PROGRESS"), "stacks, deployed: warning", "changed"),
    ],
    "dynamodb.ListExports": [
        ({"ExportSummaries": []}, "stacks, second copy: failed", "suppressions has not been exported yet"),
    ],
    "dynamodb.DescribeExport": [
        (world.export(20, S3Bucket="lake"), "stacks, second copy: failed", "has not been exported yet"),
        (world.export(49), "stacks, second copy: failed", "export of preferences began 49 hours ago."),
        (
            world.export(20, "FAILED", FailureMessage="Access denied"),
            "stacks, second copy: failed",
            "has failed: Access denied.",
        ),
    ],
    "sesv2.GetAccount": [
        (world.ses_account_of(ProductionAccessEnabled=False), "mail, account: warning", "sandbox"),
        (world.ses_account_of(SendingEnabled=False), "mail, account: failed", "paused"),
        (world.ses_account_of(EnforcementStatus="PROBATION"), "mail, account: warning", "probation"),
        (world.ses_account_of(EnforcementStatus="SHUTDOWN"), "mail, account: failed", "shutdown"),
        (
            world.ses_account_of(PricingAttributes={}),
            "mail, account: skipped",
            "does not report the account's plan",
        ),
        (_quota(MaxSendRate=0.5), "mail, quota: warning", "may send 1 a second"),
        (_quota(SentLast24Hours=40_000), "mail, quota: warning", "40,000 of 50,000"),
        (_quota(SentLast24Hours=50_000), "mail, quota: failed", "50,000 of 50,000"),
    ],
    "cloudwatch.GetMetricStatistics": [
        (_rates(0.02), "mail, reputation: warning", "2.00% of the mails"),
        (_rates(0.05), "mail, reputation: failed", "5.00% of the mails"),
        (_rates(0.0009, "ComplaintRate"), "mail, reputation: warning", "warning: 0.08%, alarm: 0.10%"),
        (_rates(0.001, "ComplaintRate"), "mail, reputation: failed", "warning: 0.08%, alarm: 0.10%"),
        ({"Datapoints": []}, "mail, reputation: skipped", "too little"),
    ],
    "sesv2.GetEmailIdentity": [
        (world.identities({}), "mail, senders: failed", "is not an identity"),
        (_identity(VerifiedForSendingStatus=False), "mail, senders: failed", "may not send"),
        (_identity(DkimAttributes={"Status": "PENDING"}), "mail, senders: warning", "not signed"),
    ],
    "sesv2.GetConfigurationSet": [
        ("NotFoundException", "mail, configuration: failed", "no configuration set"),
        ({"SendingOptions": {"SendingEnabled": False}}, "mail, configuration: failed", "is paused"),
    ],
    "secretsmanager.GetSecretValue": [
        (_without_secret, "webhook, secrets: failed", "The secret signing does not exist, or has no value"),
        (world.with_secret("twilio", "{}"), "sms, credentials: failed", "Twilio's secret is not"),
        (world.with_secret("fax", '{"project": "local"}'), "fax, credentials: failed", "secret is not"),
    ],
    "sns.GetPlatformApplicationAttributes": [
        (_applications(Enabled="false"), "push, applications: failed", "is disabled"),
        ("NotFound", "push, applications: failed", "does not exist"),
        (_certificate("2026-12-01T00:00:00Z"), "push, applications: warning", "expires on 2026-12-01"),
        (_certificate("2026-11-21T08:59:59Z"), "push, applications: failed", "has expired"),
    ],
    "lambda.ListEventSourceMappings": [
        (_mappings("mail", State="Disabled"), "functions, mappings: failed", "its mapping is disabled"),
        (
            _mappings("mail", LastProcessingResult=PROBLEM),
            "functions, mappings: failed",
            "has trouble with mail",
        ),
    ],
    "lambda.GetAccountSettings": [
        (_concurrency(10), "functions, concurrency: warning", "the account has 10 unreserved of 10"),
        (_concurrency(5000), "functions, concurrency: warning", "the alarm concurrency rings at 800."),
    ],
    "lambda.GetFunctionConcurrency": [
        (_stopped_fax, "functions, concurrency: failed", "send-fax is stopped"),
    ],
    "sqs.GetQueueAttributes": [
        (_dead_faxes, "queues, dead letters: failed", "2 dead letters wait in fax-dlq.fifo"),
    ],
    "s3.ListObjectsV2": [
        ({"Contents": [{"Key": "a"}]}, "queues, given up: failed", "gave up on stream records"),
    ],
    "cloudwatch.DescribeAlarms": [
        (_alarms(AlarmActions=[]), "alarms, notifying: warning", "1 alarm notifies nobody: mailroom"),
        (_alarms(ActionsEnabled=False), "alarms, notifying: warning", "1 alarm notifies nobody"),
        (_alarms(StateValue="ALARM"), "alarms, ringing: failed", "dlq-not-empty rings"),
    ],
    "sns.ListSubscriptionsByTopic": [
        ("NotFound", "alarms, heard: warning", "There is no topic"),
        (_subscriptions(), "alarms, heard: warning", "have no confirmed"),
        (
            _subscriptions("arn:aws:sns:1", "PendingConfirmation"),
            "alarms, heard: warning",
            "Not confirmed yet: 1 by",
        ),
    ],
}
"""Responses of AWS by operation; the check that then finds a fault, its state, and words of its sentence."""

HOUR = int(world.NOW) // 3600
DAYS = [
    ({}, "ok", "0 of the stage's own 40,000 recipients a day are reserved."),
    ({"used_0": 9, f"used_{HOUR}": 7_000, f"bulk_{HOUR}": 6_000}, "ok", "7,000 of the stage's own 40,000"),
    ({f"used_{HOUR}": 36_000, f"bulk_{HOUR}": 36_000}, "warning", "36,000 of the stage's own 40,000"),
    ({"closed_until": int(world.NOW) + 1_800}, "warning", "Bulk waits until about 2026-11-21 09:30:00 UTC."),
]
"""Items of the day's budget; how bad that is, and words of the sentence."""


def test_a_paused_lane_is_a_warning_with_its_reason_and_the_command_that_resumes_it(
    healthy_answers: dict[str, Answer],
) -> None:
    words = "since 2026-11-20 by ada: wrong link"
    healthy_answers["lambda.ListEventSourceMappings"] = _mappings("mail-bulk", State="Disabled")
    healthy_answers["sqs.ListQueueTags"] = {"Tags": {"mailroom:paused": words}}
    (finding,) = [finding for finding in looked(Aws(healthy_answers)) if finding.state != "ok"]
    assert (finding.check, finding.state) == ("mappings", "warning")
    assert finding.sentence == f"mail-bulk is paused {words}."
    assert finding.fix == "mailroom lane resume mail bulk --stage dev"


@pytest.mark.parametrize(
    ("operation", "answer", "expected", "words"),
    [(operation, *fault) for operation, faults in FAULTS.items() for fault in faults],
)
def test_each_fault_of_a_stage_is_reported_by_exactly_one_check_of_the_doctor(
    healthy_answers: dict[str, Answer], operation: str, answer: Answer, expected: str, words: str
) -> None:
    assert operation in healthy_answers
    healthy_answers[operation] = answer
    found = [each for each in looked(Aws(healthy_answers)) if each.state != "ok"]
    assert any(
        expected == f"{each.subject}, {each.check}: {each.state}" and words in each.sentence for each in found
    ), found
    assert len({(each.subject, each.check) for each in found}) == 1, found
    assert all(each.fix for each in found if each.state in {"warning", "failed"})


@pytest.mark.parametrize(
    ("silent", "expected"),
    [
        (
            1,
            [
                ("skipped", "1 of 2 alarms cannot be evaluated, for lack of data"),
                ("ok", "Of 1 alarm, none rings"),
            ],
        ),
        (2, [("skipped", "2 of 2 alarms cannot be evaluated, for lack of data")]),
    ],
)
def test_doctor_does_not_report_an_alarm_without_data_as_ok(
    healthy_answers: dict[str, Answer], silent: int, expected: list[tuple[str, str]]
) -> None:
    states = ["INSUFFICIENT_DATA"] * silent + ["OK"] * (2 - silent)
    alarms = [world.alarm_description(f"{PREFIX}{at}", state) for at, state in enumerate(states)]
    healthy_answers["cloudwatch.DescribeAlarms"] = {"MetricAlarms": alarms}
    found = [each for each in looked(Aws(healthy_answers), ["alarms"]) if each.check == "ringing"]
    assert [(each.state, each.sentence.partition(":")[0].rstrip(".")) for each in found] == expected


@pytest.mark.parametrize(("item", "state", "words"), DAYS)
def test_the_stages_daily_limit_is_reported_with_the_time_at_which_bulk_continues(
    healthy_answers: dict[str, Answer], item: dict[str, int], state: str, words: str
) -> None:
    healthy_answers["dynamodb.GetItem"] = {"Item": {name: {"N": f"{value}"} for name, value in item.items()}}
    (found,) = (each for each in looked(Aws(healthy_answers), ["mail"]) if each.check == "day")
    assert (found.state, words in found.sentence) == (state, True), found
    assert found.fix == ("" if state == "ok" else "See `mailroom docs day-used-up`.")


def test_a_channel_with_one_lane_needs_no_reserve_of_its_daily_limit(
    healthy_answers: dict[str, Answer],
) -> None:
    functions = copy.deepcopy(healthy_answers["lambda.ListFunctions"])
    assert isinstance(functions, dict)
    for function in functions["Functions"]:
        function["Environment"]["Variables"].pop("RESERVE", None)
    healthy_answers["lambda.ListFunctions"] = functions
    assert [each.state for each in looked(Aws(healthy_answers), ["mail"]) if each.check == "day"] == ["ok"]


def test_the_concurrency_of_the_account_is_compared_with_the_maximum_of_the_deployed_stage(
    healthy_answers: dict[str, Answer],
) -> None:
    for number, state, words in (
        (899, "ok", "The stage may run 899 functions at once, besides those of its HTTP API"),
        (900, "warning", "the account has 900 unreserved of 1,000. Others may be throttled."),
    ):
        healthy_answers["cloudformation.DescribeStacks"] = stacks(number)
        (found,) = (
            each for each in looked(Aws(healthy_answers), ["functions"]) if each.check == "concurrency"
        )
        assert found.state == state
        assert words in found.sentence


def test_the_accounts_quota_is_not_compared_with_settings_that_could_not_be_read(
    healthy_answers: dict[str, Answer],
) -> None:
    healthy_answers["lambda.GetAccountSettings"] = _concurrency(5000)
    found = looked(Aws(healthy_answers), ["functions"], "It is gone.")
    assert [each.state for each in found if each.check == "concurrency"] == ["ok"]


def test_a_call_that_aws_forbids_is_a_warning_with_the_missing_action(
    healthy_answers: dict[str, Answer],
) -> None:
    healthy_answers["sesv2.GetAccount"] = "AccessDeniedException"
    found = [each for each in looked(Aws(healthy_answers)) if each.state != "ok"]
    assert {each.check for each in found} == {"account", "quota"}
    assert {each.sentence for each in found} == {"Could not check: the credentials need sesv2:GetAccount."}
    assert {each.state for each in found} == {"warning"}


def test_credentials_without_any_right_produce_a_warning_for_each_check(
    healthy_answers: dict[str, Answer],
) -> None:
    kept = {name: each for name, each in healthy_answers.items() if name == "sts.GetCallerIdentity"}
    forbidden: dict[str, Answer] = dict.fromkeys(healthy_answers, "AccessDenied")
    found = looked(Aws({**forbidden, **kept}))
    states = {(each.subject, each.check): each.state for each in found}
    assert set(states.values()) == {"warning"}


TWILIO = {"account_sid": "AC0123456789abcdef0123456789abcdef", "auth_token": "local"}
WITH_KEY = TWILIO | {"api_key": "SKfedcba9876543210fedcba9876543210", "api_key_secret": "local-key"}


@pytest.mark.parametrize(
    ("secret", "words"),
    [(TWILIO, "for sending: 401, Authenticate"), (WITH_KEY, "token, which signs callbacks: 401")],
)
def test_doctor_reports_credentials_that_twilio_refuses_as_failed(
    healthy_answers: dict[str, Answer], secret: dict[str, str], words: str
) -> None:
    text = json.dumps(secret | {"auth_token": "wrong"})
    healthy_answers["secretsmanager.GetSecretValue"] = world.with_secret("twilio", text)
    found = looked(Aws(healthy_answers), ["sms"])
    assert any(each.state == "failed" and words in each.sentence for each in found), found
    assert "wrong" not in str(found)


def test_an_api_key_of_twilio_without_access_to_the_account_passes_the_checks(
    healthy_answers: dict[str, Answer],
) -> None:
    healthy_answers["secretsmanager.GetSecretValue"] = world.with_secret("twilio", json.dumps(WITH_KEY))
    assert {each.state for each in looked(Aws(healthy_answers), ["sms"])} == {"ok"}


def test_a_twilio_account_with_message_redaction_is_a_warning(
    healthy_answers: dict[str, Answer], network: SmsNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = {"account_sid": REDACTING_SID, "auth_token": AUTH_TOKEN}
    healthy_answers["secretsmanager.GetSecretValue"] = world.with_secret("twilio", json.dumps(secret))
    assert {each.state for each in looked(Aws(healthy_answers), ["sms"])} == {"ok"}
    network.submit(SmsOrder("+16175550160", "+12025550123", body="Your code is 4711"))
    monkeypatch.setattr(network, "clock", lambda: 10.0)
    (found,) = [each for each in looked(Aws(healthy_answers), ["sms"]) if each.state != "ok"]
    assert found.state == "warning"
    assert "channels.sms.on_unknown decides" in found.sentence
    assert 'on_unknown to "hold"' in str(found)


def test_a_provider_that_cannot_be_reached_fails_the_check_of_its_credentials(
    healthy_answers: dict[str, Answer],
) -> None:
    nowhere = "http://127.0.0.1:9"
    gone = with_variables(
        with_variables(healthy_answers, "send-sms", SMS_BASE_URL=nowhere), "send-fax", FAX_BASE_URL=nowhere
    )
    found = [each for each in looked(Aws(gone), ["sms", "fax"]) if each.state != "ok"]
    assert [(each.subject, each.check, each.state) for each in found] == [
        ("sms", "credentials", "failed"),
        ("fax", "credentials", "failed"),
    ]


def test_doctor_checks_the_credentials_of_telnyx_by_a_list_of_its_faxes(
    healthy_answers: dict[str, Answer], providers: str
) -> None:
    telnyx = with_variables(
        healthy_answers, "send-fax", FAX_PROVIDER="telnyx", FAX_BASE_URL=f"{providers}/telnyx"
    )
    found = looked(Aws(telnyx), ["fax"])
    assert found[0].sentence == "telnyx accepts the credentials and lists faxes."
    telnyx["secretsmanager.GetSecretValue"] = world.with_secret("fax", "{}")
    assert looked(Aws(telnyx), ["fax"])[0].state == "failed"


BY_AWS = {"SMS_CONFIGURATION_SET": "mailroom-dev", "TWILIO_SECRET_ARN": ""}
BY_SES = {"CONFIGURATION_SET": "mailroom-dev", "RESEND_SECRET_ARN": ""}


@pytest.fixture
def answers_by_resend(
    healthy_answers: dict[str, Answer], providers: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Answer]:
    """A stage whose mails Resend sends."""
    text = json.dumps(RESEND_SECRET)
    monkeypatch.setitem(world.SECRETS, "resend", text)
    told = {
        "CONFIGURATION_SET": "",
        "RESEND_SECRET_ARN": "resend",
        "RESEND_BASE_URL": f"{providers}/resend",
        "UNSUBSCRIBE_URL": f"{providers}/api/unsubscribe",
    }
    return with_variables(with_variables(healthy_answers, "send-mail", **told), "send-mail-bulk", **told)


def test_resend_is_checked_for_its_key_domains_quota_and_webhook(
    answers_by_resend: dict[str, Answer],
) -> None:
    found = looked(Aws(answers_by_resend), ["mail"])
    assert {(each.check, each.state): each.sentence for each in found} == {
        ("account", "ok"): "Resend accepts the key.",
        ("quota", "ok"): "3 of 50,000 mails are used (Resend's monthly quota).",
        ("day", "ok"): "0 of the stage's own 40,000 recipients a day are reserved.",
        ("reputation", "skipped"): "This check does not apply to Resend.",
        ("senders", "ok"): "mailroom@example.com may send by Resend: example.com is verified.",
        ("configuration", "ok"): "Resend posts the events about the stage's mails to its API.",
    }


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        ({"RESEND_SECRET_ARN": "fax"}, "account", "refuses the key: 400"),
        ({"RESEND_SECRET_ARN": "unsubscribe"}, "account", 'is not {"api_key": "…"}'),
        ({"RESEND_BASE_URL": "http://127.0.0.1:9"}, "account", "cannot be reached"),
        ({"MAIL_SENDERS": '["a@other.example"]'}, "senders", "other.example is not a domain of the account"),
        (
            {"MAIL_SENDERS": '["a@in.example.com"]'},
            "senders",
            "in.example.com is not a domain of the account",
        ),
        ({"UNSUBSCRIBE_URL": "https://other.example/unsubscribe"}, "configuration", "posts no email.bounced"),
    ],
)
def test_doctor_reports_a_wrong_setting_for_resend_as_failed_in_the_check_that_it_concerns(
    answers_by_resend: dict[str, Answer], change: dict[str, str], check: str, words: str
) -> None:
    wrong = with_variables(
        with_variables(answers_by_resend, "send-mail", **change), "send-mail-bulk", **change
    )
    found = looked(Aws(wrong), ["mail"])
    assert [each.check for each in found if each.state == "failed" and words in each.sentence] == [check]


def test_a_stage_with_two_mail_providers_is_checked_at_both(answers_by_resend: dict[str, Answer]) -> None:
    two: dict[str, Any] = copy.deepcopy(answers_by_resend)
    for each in two["lambda.ListFunctions"]["Functions"]:
        if each["FunctionName"].endswith("send-mail-bulk"):
            each["FunctionName"] = each["FunctionName"].replace("-bulk", "-fallback")
            each["Environment"]["Variables"] |= {"BUDGET": "mail-fallback"}
        elif each["FunctionName"].endswith("send-mail"):
            each["Environment"]["Variables"] |= BY_SES
    found = {(each.check, each.sentence) for each in looked(Aws(two), ["mail"])}
    assert found >= {
        ("account", "SES lets the account send to everybody."),
        ("account", "Resend accepts the key."),
        ("senders", "mailroom@example.com may send by SES, as example.com is verified."),
        ("senders", "mailroom@example.com may send by Resend: example.com is verified."),
        ("day", "0 of the stage's own 40,000 recipients a day are reserved."),
        ("day", "0 of the stage's own 40,000 recipients a day at the fallback are reserved."),
        ("configuration", "Sending with the configuration set mailroom-dev is enabled."),
        ("configuration", "Resend posts the events about the stage's mails to its API."),
    }
    assert not [check for check, sentence in found if "does not apply" in sentence]


def test_the_checks_of_a_mail_provider_are_those_of_its_descriptor(
    answers_by_resend: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = {"account": "tests.support.acme.check:mail_account"}
    monkeypatch.setattr(resend, "PROVIDER", structs.replace(resend.PROVIDER, title="Acme", checks=checks))
    findings = {finding.check: finding.sentence for finding in looked(Aws(answers_by_resend), ["mail"])}
    assert findings["account"] == "Acme accepts the token."
    assert {findings[name] for name in ("quota", "reputation", "senders", "configuration")} == {
        "This check does not apply to Acme."
    }


def test_the_quota_check_of_ses_as_second_provider_names_the_setting_of_its_own_section(
    answers_by_resend: dict[str, Answer],
) -> None:
    two: dict[str, Any] = copy.deepcopy(answers_by_resend)
    for each in two["lambda.ListFunctions"]["Functions"]:
        if each["FunctionName"].endswith("send-mail-bulk"):
            each["FunctionName"] = each["FunctionName"].replace("-bulk", "-fallback")
            each["Environment"]["Variables"] |= {**BY_SES, "PACE_SECONDS": "0.001"}
    for each in two["lambda.ListEventSourceMappings"]["EventSourceMappings"]:
        each["FunctionArn"] = each["FunctionArn"].replace("send-mail-bulk", "send-mail-fallback")
    fixes = [each.fix for each in looked(Aws(two), ["mail"]) if each.check == "quota"]
    assert any("channels.mail.fallback.messages_per_second to " in fix for fix in fixes), fixes


@pytest.mark.parametrize("domains", [[], [{"name": "example.com", "status": "pending"}]])
def test_a_domain_that_is_missing_or_unverified_at_resend_is_found(
    answers_by_resend: dict[str, Answer], monkeypatch: pytest.MonkeyPatch, domains: list[dict[str, str]]
) -> None:
    said = {"/domains": {"object": "list", "data": domains}}
    monkeypatch.setattr("mailroom_local.providers.resend_mail._account", lambda _: said)
    found = [each for each in looked(Aws(answers_by_resend), ["mail"]) if each.check == "senders"]
    assert [(each.state, each.fix) for each in found] == [("failed", "Verify it: https://resend.com/domains")]


@pytest.mark.parametrize(
    ("tier", "limit", "states"),
    [("PRODUCTION", 500, ["ok", "ok"]), ("SANDBOX", 1, ["warning", "warning"])],
)
def test_the_account_tier_and_spend_limit_of_aws_text_messages_are_checked(
    healthy_answers: dict[str, Answer], tier: str, limit: int, states: list[str]
) -> None:
    aws = with_variables(healthy_answers, "send-sms", **BY_AWS, SMS_SENDER=NUMBER["PhoneNumber"])
    aws["pinpoint-sms-voice-v2.DescribePhoneNumbers"] = {"PhoneNumbers": [NUMBER]}
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
    assert [each.state for each in looked(Aws(aws), ["sms"])] == [*states, "ok"]


@pytest.mark.parametrize(
    ("sender", "changes", "state", "words"),
    [
        ("+12025550123", {"TwoWayEnabled": False}, "warning", "so a STOP to it is not read"),
        (f"arn:aws:sms-voice:eu-central-1:123456789012:pool/{POOL}", {"PoolId": POOL}, "ok", "such as STOP"),
        (POOL, {}, "failed", f"AWS has no number for the sender {POOL}"),
        ("SHOP", {}, "skipped", "nobody can opt out by STOP"),
        ("rcs-a1b2c3d4", {}, "skipped", "RCS agent rcs-a1b2c3d4"),
    ],
)
def test_doctor_checks_that_numbers_of_the_stage_at_aws_exist_and_pass_on_inbound_texts(
    healthy_answers: dict[str, Answer], sender: str, changes: dict[str, object], state: str, words: str
) -> None:
    aws = with_variables(healthy_answers, "send-sms", **BY_AWS, SMS_SENDER=sender)
    aws["pinpoint-sms-voice-v2.DescribePhoneNumbers"] = {"PhoneNumbers": [NUMBER | changes]}
    aws["pinpoint-sms-voice-v2.DescribeAccountAttributes"] = {"AccountAttributes": []}
    aws["pinpoint-sms-voice-v2.DescribeSpendLimits"] = {"SpendLimits": []}
    *_, last = looked(Aws(aws), ["sms"])
    assert last.state == state, last
    assert words in last.sentence


def test_the_account_of_a_provider_of_texts_is_checked_once_for_all_lanes(
    healthy_answers: dict[str, Answer],
) -> None:
    findings = looked(Aws(healthy_answers), ["sms"])
    functions: Any = healthy_answers["lambda.ListFunctions"]
    (normal,) = [row for row in functions["Functions"] if row["FunctionName"].endswith("send-sms")]
    functions["Functions"].append({**normal, "FunctionName": f"{PREFIX}send-sms-bulk"})
    assert looked(Aws(healthy_answers), ["sms"]) == findings


def test_a_stage_other_than_production_with_unlimited_recipients_is_a_warning(
    healthy_answers: dict[str, Answer],
) -> None:
    functions: Any = healthy_answers["lambda.ListFunctions"]
    for each in functions["Functions"]:
        if "send-mail" in each["FunctionName"]:
            del each["Environment"]["Variables"]["RECIPIENTS_ONLY"]
    (found,) = [each for each in looked(Aws(healthy_answers), ["functions"]) if each.check == "recipients"]
    assert (found.state, found.sentence) == (
        "warning",
        "As in production, these functions send to everybody: send-mail, send-mail-bulk.",
    )
    assert found.fix == (
        "Set mailroom.dev.recipients.only or .redirect_to. If this is production, set "
        "deployment.deletion_protection."
    )


@pytest.mark.parametrize(("bounded", "state"), [(True, "warning"), (False, "ok")])
def test_a_production_stage_with_limited_recipients_is_a_warning(
    healthy_answers: dict[str, Answer], bounded: bool, state: str
) -> None:
    functions: Any = healthy_answers["lambda.ListFunctions"]
    for each in functions["Functions"]:
        if not bounded:
            each["Environment"]["Variables"].pop("RECIPIENTS_ONLY", None)
    (found,) = [
        each for each in looked(Aws(healthy_answers), ["functions"], PROD) if each.check == "recipients"
    ]
    assert found.state == state
    assert ("send only to recipients" in found.sentence) == bounded


def test_a_warning_is_a_failure_if_the_stage_is_protected(healthy_answers: dict[str, Answer]) -> None:
    healthy_answers["sns.ListSubscriptionsByTopic"] = _subscriptions()
    found = looked(Aws(healthy_answers), ["alarms"], PROD)
    assert [each.sentence for each in found if each.state == "failed"] == [
        "The alarms have no confirmed subscription."
    ]


def test_a_stage_that_is_missing_in_cdk_json_is_checked_from_its_deployment(
    healthy_answers: dict[str, Answer],
) -> None:
    found = looked(Aws(healthy_answers), (), settings_or_trouble("moon"))
    others = [each for each in found if each.state != "ok"]
    assert [(each.check, each.state) for each in others] == [
        ("second copy", "skipped"),
        ("recipients", "skipped"),
    ]
    assert "'moon' is unknown" in others[0].sentence


@pytest.mark.parametrize(
    ("value", "state"), [("", "ok"), ("ResourceNotFoundException", "failed"), ("AccessDenied", "warning")]
)
def test_the_secrets_of_a_channel_without_its_own_checks_are_read(
    healthy_answers: dict[str, Answer], value: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHANNELS, "chat", Channel(contract=Webhook, messages="Chats"))
    if value:
        healthy_answers["secretsmanager.GetSecretValue"] = value
    aws = Aws(with_variables(healthy_answers, "send-webhook", CHANNEL="chat"))
    found = run(ExaminedStage(aws, "dev"), [*checks_of("chat"), *checks_of("webhook")])
    assert [(each.subject, each.check, each.state) for each in found] == [
        ("chat", "secrets", state),
        ("webhook", "secrets", "skipped"),
    ]
    assert found[1].sentence == "No function of the stage sends by webhook."


@pytest.mark.parametrize(
    ("bus", "said"),
    [
        ("", "The stage has no event bus."),
        ("arn:aws:events:us-east-1:444455556666:event-bus/x", "belongs to another account"),
    ],
)
def test_the_check_of_an_event_bus_is_skipped_without_a_bus_or_for_another_accounts_bus(
    healthy_answers: dict[str, Answer], bus: str, said: str
) -> None:
    aws = Aws(with_variables(healthy_answers, "outcomes", EVENT_BUS=bus))
    (found,) = (each for each in looked(aws, ["functions"]) if each.check == "event bus")
    assert (found.state, "events.DescribeEventBus" in aws.asked) == ("skipped", False)
    assert said in found.sentence


def test_doctor_reports_the_newest_export_to_the_bucket_of_the_setting_second_copy(
    healthy_answers: dict[str, Answer],
) -> None:
    exports = {
        "3-of-others": world.export(1, S3Bucket="lake"),
        "2-newer": world.export(20, "IN_PROGRESS"),
        "1-older": world.export(44),
    }
    arns = [f"arn:aws:dynamodb:us-east-1:123456789012:export/{name}" for name in exports]
    healthy_answers["dynamodb.ListExports"] = {"ExportSummaries": [{"ExportArn": arn} for arn in arns]}
    healthy_answers["dynamodb.DescribeExport"] = lambda request: exports[
        request["ExportArn"].rpartition("/")[2]
    ]
    findings = [
        finding for finding in looked(Aws(healthy_answers), ["stacks"]) if finding.check == "second copy"
    ]
    assert [(finding.state, finding.sentence) for finding in findings] == [
        ("ok", f"The newest export of {table} began 20 hours ago: in_progress.")
        for table in ("suppressions", "preferences")
    ]


def test_doctor_accepts_a_stage_whose_setting_second_copy_is_off(healthy_answers: dict[str, Answer]) -> None:
    findings = looked(Aws(healthy_answers), ["stacks"], load(STAGES, "dev"))
    assert ("ok", "The setting deployment.second_copy is off.") in [
        (finding.state, finding.sentence) for finding in findings
    ]
