"""Checks that the providers of text messages, pushes and faxes accept messages, and that channels' secrets
can be read."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pkgutil import resolve_name
from typing import Any

from mailroom import environment
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Fax
from mailroom.clock import epoch
from mailroom.environment import FaxSender
from mailroom.errors import InvalidSecret, NotSent, OutcomeUnknown, RequestFailed
from mailroom.http.provider_api import body_of
from mailroom.message.outcome import NotReady
from mailroom.providers import aws_sms as aws
from mailroom.providers import provider, providers_of
from mailroom.providers import twilio as twilio_sms
from mailroom.providers.look_up import is_masked
from mailroom.providers.twilio.account import TwilioAccount, account_at
from mailroom.providers.twilio_format import client as twilio_client
from mailroom.telemetry import redact
from mailroom_ops.doctor.examined_stage import READ_SECONDS, ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning

_AWS_CONSOLE = "https://console.aws.amazon.com/sms-voice/home"
_TWILIO_CONSOLE = "https://console.twilio.com"
_REDACTED = "Twilio redacts its messages, so after a lost response channels.sms.on_unknown decides."
_HOLD = f'Turn redaction off at {_TWILIO_CONSOLE}, or set channels.sms.on_unknown to "hold": never twice.'


def of_providers(channel: str, check: str) -> Callable[[ExaminedStage], Iterator[CheckFinding]]:
    """Return a check that makes the checks with this name of all providers by which the stage sends."""

    def checked(stage: ExaminedStage) -> Iterator[CheckFinding]:
        rows = [row for row in providers_of(channel).values() if stage.senders(channel, row.variable)]
        places = [row.checks[check] for row in rows if check in row.checks]
        for place in places:
            yield from resolve_name(place)(stage)
        if not places:
            yield skipped(f"This check does not apply to {' and '.join(row.title for row in rows)}.")

    return checked


sms_credentials = of_providers("sms", "credentials")


def twilio(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check the account at Twilio by read-only requests."""
    variables = stage.sender("sms", twilio_sms.PROVIDER.variable)
    arn, base = variables["TWILIO_SECRET_ARN"], variables["SMS_BASE_URL"].rstrip("/")
    put = f"aws secretsmanager put-secret-value --secret-id {stage.prefix}twilio --secret-string file://twilio.json"
    try:
        account = account_at(stage.client("secretsmanager"), arn)
        sending = _get(account, account.login, f"{base}/2010-04-01/Accounts/{{sid}}/Messages.json")
        # An API key cannot read the account; the auth token, which signs callbacks, can.
        account_answer = _get(
            account, (account.account_sid, account.auth_token), f"{base}/2010-04-01/Accounts/{{sid}}.json"
        )
    except InvalidSecret as fault:
        yield failed(f"{fault}.", put)
    except LookupError:
        yield failed("Twilio's secret has no value.", put)
    except RequestFailed as trouble:
        yield failed(f"Twilio cannot be reached: {trouble}.", "Check your network, and sms.base_url.")
    else:
        if sending[0] == 200:
            yield ok("Twilio accepts the credentials for sending.")
            if any(map(_redacted, sending[1].get("messages") or ())):
                yield warning(_REDACTED, _HOLD)
        else:
            reason = _reason(*sending)
            yield failed(f"Twilio refuses the credentials for sending: {reason}.", put)
        yield _own(account_answer, put)


def _get(account: TwilioAccount, login: tuple[str, str], url: str) -> tuple[int, dict[str, Any]]:
    api = twilio_client(*login, account.account_sid, READ_SECONDS)
    answer = api.request("GET", url.format(sid=account.account_sid), params={"PageSize": 50})
    return answer.status_code, body_of(answer.status_code, answer.text)


def _redacted(message: dict[str, Any]) -> bool:
    removed = not message.get("body") and message.get("num_media") == "0"
    return message.get("direction") != "inbound" and (removed or is_masked(message.get("to")))


def _own(answer: tuple[int, dict[str, Any]], put: str) -> CheckFinding:
    status, body = answer
    if status != 200:
        return failed(
            f"Twilio refuses the account's auth token, which signs callbacks: {_reason(*answer)}.",
            put,
        )
    if body.get("status") != "active":
        return failed(f"Twilio's account is {redact(str(body.get('status')))}.", _TWILIO_CONSOLE)
    if body.get("type") == "Trial":
        return warning("Twilio's account is on trial: only verified numbers get messages.", _TWILIO_CONSOLE)
    return ok("Twilio's account is active, and its auth token, which signs callbacks, is valid.")


def _reason(status: int, body: dict[str, Any]) -> str:
    return f"{status}, {redact(str(body.get('message') or 'no reason given')).rstrip('.')}"


def aws_sms(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check whether AWS lets the account send text messages, and its numbers."""
    sms = stage.client("pinpoint-sms-voice-v2")
    attributes = sms.describe_account_attributes()["AccountAttributes"]
    tier = {attribute["Name"]: attribute["Value"] for attribute in attributes}.get("ACCOUNT_TIER")
    if tier == "SANDBOX":
        yield warning("The account's SMS are in AWS's sandbox: only verified numbers get any.", _AWS_CONSOLE)
    else:
        yield ok("AWS lets the account send text messages to everybody.")
    for limit in sms.describe_spend_limits()["SpendLimits"]:
        if limit["Name"] == "TEXT_MESSAGE_MONTHLY_SPEND_LIMIT":
            enforced, ceiling = limit["EnforcedLimit"], limit["MaxLimit"]
            spends = (
                f"Text messages may cost at most ${enforced:,} a month (AWS allows a limit of ${ceiling:,})."
            )
            if enforced <= 1:
                yield warning(f"{spends} This is a new account's limit.", f"Raise it: {_AWS_CONSOLE}")
            else:
                yield ok(spends)
    pages = sms.get_paginator("describe_phone_numbers").paginate()
    variables = stage.sender("sms", aws.PROVIDER.variable)
    yield from _aws_numbers(pages, variables["SMS_SENDER"])


def _aws_numbers(pages: Iterable[Any], sender: str) -> Iterator[CheckFinding]:
    """Check that the numbers of an SMS sender at AWS exist and pass on the texts that they get. `pages` are
    the responses with the account's numbers."""
    name = sender.rpartition("/")[2]
    ids = ("PhoneNumber", "PhoneNumberId", "PoolId")
    numbers = [number for page in pages for number in page["PhoneNumbers"] if name in map(number.get, ids)]
    if name.startswith("rcs-"):
        yield skipped(f"Texts that people send to the RCS agent {name}, such as STOP, are not checked.")
    elif not name.startswith(("+", "phone-", "pool-")):
        yield skipped(f"The sender id {name} gets no texts, so nobody can opt out by STOP to it.")
    elif not numbers:
        yield failed(f"AWS has no number for the sender {name} in this region.", _AWS_CONSOLE)
    for number in numbers:
        if number["TwoWayEnabled"]:
            yield ok(f"AWS passes on texts that people send to {number['PhoneNumber']}, such as STOP.")
        else:
            unread = (
                f"AWS does not pass on texts that people send to {number['PhoneNumber']}, so a STOP to it is "
                "not read."
            )
            yield warning(unread, "Enable two-way SMS, as in: mailroom docs settings")


SOON = timedelta(days=30)
_EXPIRES = "AppleCertificateExpirationDate"


def applications(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check that each platform application exists and is enabled, and that its certificate does not expire
    soon."""
    arns = {
        name: arn
        for variables in stage.senders("push").values()
        for name, arn in json.loads(variables.get("PLATFORM_APPLICATIONS", "{}")).items()
    }
    for name, arn in arns.items():
        answer = stage.call("sns", "get_platform_application_attributes", PlatformApplicationArn=arn)
        if answer is None:
            yield failed(f"The platform application {name} does not exist.", f"Create {arn} in SNS.")
            continue
        attributes = answer["Attributes"]
        if attributes.get("Enabled", "true").lower() != "true":
            fix = (
                "Put valid credentials into it, then: aws sns set-platform-application-attributes "
                f"--platform-application-arn {arn} --attributes Enabled=true"
            )
            yield failed(f"The platform application {name} is disabled.", fix)
        elif _EXPIRES in attributes:
            yield _certificate(stage, name, attributes[_EXPIRES])
        else:
            yield ok(f"The platform application {name} is enabled.")


def _certificate(stage: ExaminedStage, name: str, until: str) -> CheckFinding:
    end, today = datetime.fromtimestamp(epoch(until), UTC), datetime.fromtimestamp(stage.clock(), UTC)
    fix = f"Put a new certificate or token into the platform application {name}."
    if end <= today:
        return failed(f"Apple's certificate of {name} has expired on {end:%Y-%m-%d}.", fix)
    if end - today <= SOON:
        return warning(f"Apple's certificate of {name} expires on {end:%Y-%m-%d}.", fix)
    return ok(f"The platform application {name} is enabled; its certificate expires on {end:%Y-%m-%d}.")


_NOWHERE = "https://mailroom.invalid/doctor.pdf"


def fax_credentials(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Check the fax provider's credentials by the request that the sender makes after a crash: it lists the
    faxes to our own number in the last minute."""
    for variables in stage.senders("fax").values():
        settings = environment.read(FaxSender, variables)
        put = f"aws secretsmanager put-secret-value --secret-id {stage.prefix}fax --secret-string file://fax.json"
        question = Fax(id="doctor", event_type="fax", to=settings.fax_senders[0], pdf_url=_NOWHERE)
        try:
            FaxAdapter.of(settings, provider(settings.fax_provider)).open().look_up(
                question, int(stage.clock() * 1000), ()
            )
        except NotReady as fault:
            yield failed(f"{fault}.".replace("the fax", "The fax", 1), put)
        except NotSent as trouble:
            yield failed(f"{settings.fax_provider} {trouble}.", "Check the setting fax.base_url.")
        except OutcomeUnknown as trouble:
            yield failed(f"{settings.fax_provider} did not answer: {redact(str(trouble)).rstrip('.')}.", put)
        else:
            yield ok(f"{settings.fax_provider} accepts the credentials and lists faxes.")


def secrets_of(stage: ExaminedStage, channel: str) -> Iterator[CheckFinding]:
    """Check that each secret of a channel's senders can be read, for channels without their own checks."""
    arns = {
        arn
        for variables in stage.senders(channel).values()
        for name, arn in variables.items()
        if name.endswith("_SECRET_ARN") and arn
    }
    if not arns:
        yield skipped(f"The senders of {channel} have no secret.")
    for arn in sorted(arns):
        if stage.call("secretsmanager", "get_secret_value", SecretId=arn) is None:
            yield failed(f"The secret {arn} does not exist, or has no value.", stage.deploy)
        else:
            yield ok(f"The secret {arn} has a value.")
