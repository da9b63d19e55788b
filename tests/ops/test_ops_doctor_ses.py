"""The doctor's findings about the plan of SES, and about SPF and DMARC of the senders' domains."""

from collections.abc import Callable
from typing import Any

import dns.resolver
import pytest

from mailroom_ops.doctor.report import Checked
from tests.support.ops import doctor as world
from tests.support.ops.doctor import TEXTS, Answer, Aws, healthy, looked

SPF = 'bounces.example.com  TXT  "v=spf1 include:amazonses.com ~all"'
MX = "bounces.example.com  MX  10 feedback-smtp.us-east-1.amazonses.com"
DMARC = '_dmarc.example.com  TXT  "v=DMARC1; p=none"'
DOMAIN = "bounces.example.com"
PARENT = "_dmarc.example.com"
Findings = Callable[..., list[Checked]]


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> Findings:
    """Return the findings of a check of SES, for a response of AWS and TXT records that differ from those of
    a healthy stage."""

    def find(check: str, responses: dict[str, Answer], **texts: list[str]) -> list[Checked]:
        monkeypatch.setattr("dns.resolver.resolve", world.resolver({**TEXTS, **texts}))
        checked = looked(Aws({**healthy(), **responses}), ["mail"])
        return [finding for finding in checked if finding.check == check]

    return find


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("NONE", "Without a plan of SES, a million mails cost $100"),
        (
            "ESSENTIALS",
            "SES's plan Essentials, a million mails cost $160. Without a plan they cost $100: aws",
        ),
        ("PRO", "cost $220, and $105 a month. Without a plan they cost $100"),
        ("ENTERPRISE", "cost $230, and $500 a month. Without a plan they cost $100"),
    ],
)
def test_the_plan_of_ses_is_reported_with_its_price_and_a_cheaper_one(
    findings: Findings, plan: str, words: str
) -> None:
    account = world.ses_account_of(PricingAttributes={"CurrentPlan": plan})
    finding = findings("account", {"sesv2.GetAccount": account})[-1]
    assert (finding.state, words in finding.sentence) == ("ok", True), finding


def identified(**mail_from: str) -> dict[str, Answer]:
    identity = world.identity(MailFromAttributes=world.mail_from(**mail_from))
    return {"sesv2.GetEmailIdentity": world.identities({"example.com": identity})}


@pytest.mark.parametrize(
    ("responses", "texts", "state", "words", "record"),
    [
        (identified(MailFromDomain=""), {}, "warning", "pass DMARC by DKIM only", f"{MX}, and {SPF}. Then"),
        (identified(MailFromDomainStatus="FAILED"), {}, "warning", "uses a MAIL FROM domain of its own", MX),
        (
            identified(MailFromDomainStatus="PENDING", BehaviorOnMxFailure="REJECT_MESSAGE"),
            {},
            "failed",
            "refuses the mails of example.com",
            MX,
        ),
        ({}, {DOMAIN: ["v=spf1 -all"]}, "warning", "does not have one SPF record that includes SES", SPF),
        ({}, {DOMAIN: TEXTS[DOMAIN] * 2 + ["v=spf1 -all"]}, "warning", "does not have one SPF record", SPF),
        ({}, {DOMAIN: ["unrelated"]}, "warning", "does not have one SPF record", SPF),
        ({}, {PARENT: ["unrelated"]}, "warning", "example.com is without a DMARC record", DMARC),
        ({}, {PARENT: [*TEXTS[PARENT], "v=DMARC1; p=none"]}, "warning", "without a DMARC record", DMARC),
    ],
)
def test_a_missing_or_wrong_dns_record_is_reported_with_the_record_to_add(
    findings: Findings,
    responses: dict[str, Answer],
    texts: dict[str, list[str]],
    state: str,
    words: str,
    record: str,
) -> None:
    (finding,) = [finding for finding in findings("senders", responses, **texts) if finding.state != "ok"]
    assert (finding.state, words in finding.sentence, record in finding.fix) == (state, True, True), finding


@pytest.mark.parametrize(
    "policy",
    [
        "v=spf1 +include:amazonses.com ~all",
        "v=spf1 include:AmazonSES.com. -all",
        "V=SPF1 ?include:amazonses.com",
    ],
)
def test_each_way_to_include_ses_in_an_spf_record_is_valid(findings: Findings, policy: str) -> None:
    checked = findings("senders", {}, **{DOMAIN: [policy]})
    assert {finding.state for finding in checked} == {"ok"}


def test_doctor_reports_the_plan_of_ses_that_the_account_will_have_next(findings: Findings) -> None:
    account = world.ses_account_of(PricingAttributes={"CurrentPlan": "PRO", "NextPlan": "NONE"})
    finding = findings("account", {"sesv2.GetAccount": account})[-1]
    assert "Without a plan of SES" in finding.sentence


def test_doctor_reports_a_domains_own_dmarc_record_although_its_parent_is_the_identity(
    findings: Findings,
) -> None:
    functions = world.with_variables(healthy(), "send-mail", MAIL_SENDERS='["a@news.example.com"]')
    changed = world.with_variables(functions, "send-mail-bulk", MAIL_SENDERS='["a@news.example.com"]')
    texts = {PARENT: [], "_dmarc.news.example.com": ["v=DMARC1; p=none"]}
    sentences = {finding.sentence for finding in findings("senders", changed, **texts)}
    assert "news.example.com has a DMARC record: _dmarc.news.example.com." in sentences


def test_a_domain_is_covered_by_the_dmarc_record_of_its_parent(findings: Findings) -> None:
    response = world.identities({"news.example.com": world.identity()})
    functions = world.with_variables(healthy(), "send-mail", MAIL_SENDERS='["a@news.example.com"]')
    changed = world.with_variables(functions, "send-mail-bulk", MAIL_SENDERS='["a@news.example.com"]')
    sentences = {
        finding.sentence for finding in findings("senders", {**changed, "sesv2.GetEmailIdentity": response})
    }
    assert "news.example.com has a DMARC record: _dmarc.example.com." in sentences


@pytest.mark.parametrize("error", [dns.resolver.LifetimeTimeout, dns.resolver.NoResolverConfiguration])
def test_spf_and_dmarc_are_skipped_if_dns_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def resolve(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("dns.resolver.resolve", resolve)
    checked = [finding for finding in looked(Aws(healthy()), ["mail"]) if finding.check == "senders"]
    assert [finding.state for finding in checked] == ["ok", "ok", "skipped"]
    assert checked[-1].sentence.startswith("SPF and DMARC were not checked, as DNS did not answer: ")


def test_spf_and_dmarc_are_not_checked_on_the_local_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mailroom_ops.doctor.examined_stage._LOOPBACK", {"sts.us-east-1.amazonaws.com"})
    sentences = [finding.sentence for finding in looked(Aws(healthy()), ["mail"])]
    assert "SPF and DMARC are not checked on the local stage, whose domains are not in DNS." in sentences
