"""Whether the providers of text messages, pushes, faxes and webhooks would take one, by the channel."""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import requests

from mailroom import environment
from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Fax
from mailroom.channels.sms.twilio_account import TwilioAccount, account_at
from mailroom.channels.twilio_api import api_of
from mailroom.channels.webhook.standard_webhooks import Signer
from mailroom.clock import epoch
from mailroom.environment import FaxSender
from mailroom.errors import InvalidSecret, NotSent, OutcomeUnknown, RequestFailed
from mailroom.http.provider import body_of
from mailroom.message.outcome import NotReady
from mailroom.recipients.unsubscribe_links import Choice, Tokens
from mailroom.telemetry import redact
from mailroom_ops.doctor.examined_stage import CONNECT_SECONDS, READ_SECONDS, DeployedFunction, ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning

_AWS_CONSOLE = "https://console.aws.amazon.com/sms-voice/home"
_TWILIO_CONSOLE = "https://console.twilio.com"


def sms_credentials(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """The provider's, tried by questions that change nothing."""
    for each in stage.senders("sms"):
        yield from _twilio(stage, each) if each.environment["SMS_PROVIDER"] == "twilio" else _aws(stage)


def _twilio(stage: ExaminedStage, function: DeployedFunction) -> Iterator[CheckFinding]:
    arn, base = function.environment["TWILIO_SECRET_ARN"], function.environment["SMS_BASE_URL"].rstrip("/")
    put = f"aws secretsmanager put-secret-value --secret-id {stage.prefix}twilio --secret-string file://twilio.json"
    try:
        account = account_at(stage.client("secretsmanager"), arn)
        sending = _asked(account, account.login, f"{base}/2010-04-01/Accounts/{{sid}}/Messages.json")
        # An API key may not read the account. The token that may is the one that callbacks are signed with.
        own = _asked(
            account, (account.account_sid, account.auth_token), f"{base}/2010-04-01/Accounts/{{sid}}.json"
        )
    except InvalidSecret as fault:
        yield failed(f"{fault}.", put)
    except LookupError:
        yield failed("Twilio's secret has no value.", put)
    except RequestFailed as trouble:
        yield failed(f"Twilio cannot be asked: {trouble}.", "Check the network from here, and sms.base_url.")
    else:
        if sending[0] == 200:
            yield ok("Twilio takes the credentials that messages are sent with.")
        else:
            said = _said(*sending)
            yield failed(f"Twilio refuses the credentials that messages are sent with: {said}.", put)
        yield _own(own, put)


def _asked(account: TwilioAccount, login: tuple[str, str], url: str) -> tuple[int, dict[str, Any]]:
    response = api_of(login, READ_SECONDS).get(url.format(sid=account.account_sid), {"PageSize": 1})
    return response.status, body_of(response.status, response.text)


def _own(answer: tuple[int, dict[str, Any]], put: str) -> CheckFinding:
    status, body = answer
    if status != 200:
        return failed(
            f"Twilio refuses the account's token, which its callbacks are signed with: {_said(*answer)}.", put
        )
    if body.get("status") != "active":
        return failed(f"Twilio has the account as {redact(str(body.get('status')))}.", _TWILIO_CONSOLE)
    if body.get("type") == "Trial":
        return warning("Twilio's account is on trial: only verified numbers get messages.", _TWILIO_CONSOLE)
    return ok("Twilio's account is active, and its token is the right one for callbacks.")


def _said(status: int, body: dict[str, Any]) -> str:
    return f"{status}, {redact(str(body.get('message') or 'no reason given')).rstrip('.')}"


def _aws(stage: ExaminedStage) -> Iterator[CheckFinding]:
    client = stage.client("pinpoint-sms-voice-v2")
    attributes = client.describe_account_attributes()["AccountAttributes"]
    tier = {each["Name"]: each["Value"] for each in attributes}.get("ACCOUNT_TIER")
    if tier == "SANDBOX":
        yield warning("AWS has the account's SMS in a sandbox: only verified numbers get any.", _AWS_CONSOLE)
    else:
        yield ok("AWS lets the account send text messages to everybody.")
    for limit in client.describe_spend_limits()["SpendLimits"]:
        if limit["Name"] == "TEXT_MESSAGE_MONTHLY_SPEND_LIMIT":
            enforced, most = limit["EnforcedLimit"], limit["MaxLimit"]
            spends = (
                f"AWS spends at most ${enforced:,} a month on text messages (of ${most:,} that it would)."
            )
            if enforced <= 1:
                yield warning(f"{spends} That is what new accounts have.", f"Raise it: {_AWS_CONSOLE}")
            else:
                yield ok(spends)


SOON = timedelta(days=30)
_EXPIRES = "AppleCertificateExpirationDate"


def applications(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """Each platform application: there, on, and its certificate good for a while."""
    found = {
        name: arn
        for each in stage.senders("push")
        for name, arn in json.loads(each.environment.get("PLATFORM_APPLICATIONS", "{}")).items()
    }
    for name, arn in found.items():
        answer = stage.asked("sns", "get_platform_application_attributes", PlatformApplicationArn=arn)
        if answer is None:
            yield failed(f"The platform application {name} is not there.", f"Create {arn} in SNS.")
            continue
        said = answer["Attributes"]
        if said.get("Enabled", "true").lower() != "true":
            fix = (
                "Put valid credentials, then: aws sns set-platform-application-attributes "
                f"--platform-application-arn {arn} --attributes Enabled=true"
            )
            yield failed(f"SNS has turned off the platform application {name}.", fix)
        elif _EXPIRES in said:
            yield _certificate(stage, name, said[_EXPIRES])
        else:
            yield ok(f"The platform application {name} is on.")


def topics(stage: ExaminedStage) -> Iterator[CheckFinding]:
    arns = [arn for each in stage.senders("push") for arn in json.loads(each.environment.get("TOPICS", "[]"))]
    if not arns:
        yield skipped("The stage pushes to no topics.")
    for arn in arns:
        name = arn.rpartition(":")[2]
        if stage.asked("sns", "get_topic_attributes", TopicArn=arn) is None:
            yield failed(f"The topic {name} is not there.", f"aws sns create-topic --name {name}")
        else:
            yield ok(f"The topic {name} is there.")


def _certificate(stage: ExaminedStage, name: str, until: str) -> CheckFinding:
    end, now = datetime.fromtimestamp(epoch(until), UTC), datetime.fromtimestamp(stage.clock(), UTC)
    fix = f"Put a new certificate or token into the platform application {name}."
    if end <= now:
        return failed(f"Apple's certificate of {name} has expired on {end:%Y-%m-%d}.", fix)
    if end - now <= SOON:
        return warning(f"Apple's certificate of {name} expires on {end:%Y-%m-%d}.", fix)
    return ok(f"The platform application {name} is on; its certificate is good until {end:%Y-%m-%d}.")


_NOWHERE = "https://mailroom.invalid/doctor.pdf"
_FOLDER = "doctor"


def fax_credentials(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """The provider's, tried as the sender would after a crash: by asking which faxes our own number got in
    the last minute."""
    for each in stage.senders("fax"):
        settings = environment.read(FaxSender, each.environment)
        put = f"aws secretsmanager put-secret-value --secret-id {stage.prefix}fax --secret-string file://fax.json"
        question = Fax(id="doctor", event_type="fax", to=settings.fax_senders[0], pdf_url=_NOWHERE)
        try:
            FaxAdapter.of(settings).open().look_up(question, int(stage.clock() * 1000), ())
        except NotReady as fault:
            yield failed(f"{fault}.".replace("the fax", "The fax", 1), put)
        except NotSent as trouble:
            yield failed(f"{settings.fax_provider} {trouble}.", "Check fax.base_url.")
        except OutcomeUnknown as trouble:
            yield failed(f"{settings.fax_provider} did not answer: {redact(str(trouble)).rstrip('.')}.", put)
        else:
            yield ok(f"{settings.fax_provider} takes the credentials and lists faxes.")


def fax_media(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """A PDF in the payload bucket, fetched by a URL as the provider gets it; from here, not from there."""
    buckets = {each.environment["PAYLOAD_BUCKET"] for each in stage.senders("fax")}
    return map(_fetched, sorted(buckets))


def _fetched(bucket: str) -> CheckFinding:
    # By the sender's own client: one made otherwise may sign for another host than the provider is given.
    client, key = clients.s3(), f"{_FOLDER}/{secrets.token_hex(8)}.pdf"
    content = secrets.token_bytes(64)
    client.put_object(Bucket=bucket, Key=key, Body=content)
    try:
        place = {"Bucket": bucket, "Key": key}
        url = client.generate_presigned_url("get_object", Params=place, ExpiresIn=60)
        answer = requests.get(url, timeout=(CONNECT_SECONDS, READ_SECONDS), allow_redirects=False)
    except requests.RequestException as trouble:
        return failed(f"The payload bucket cannot be reached from here: {type(trouble).__name__}.", _POLICY)
    finally:
        client.delete_object(Bucket=bucket, Key=key)
    if answer.status_code == 200 and answer.content == content:
        return ok("A PDF in the payload bucket can be fetched by a URL that ends soon.")
    return failed(f"A PDF in the payload bucket cannot be fetched: S3 answers {answer.status_code}.", _POLICY)


_POLICY = "Look at the bucket's policy, and at what stands between here and S3."


def signing_key(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """The key that webhooks and callbacks are signed with, tried on an empty one."""

    def sign(secret: CachedSecret) -> object:
        return Signer(secret, 0, time.time).headers("doctor.example", "msg_doctor", "{}")

    for each in stage.senders("webhook"):
        arn = each.environment["SIGNING_SECRET_ARN"]
        yield _key(stage, arn, "Webhooks", sign, '"$(openssl rand -base64 33)"')


def opt_out_key(stage: ExaminedStage) -> Iterator[CheckFinding]:
    """The key that links for opting out are signed with, tried on a link that leads nowhere."""

    def sign(secret: CachedSecret) -> object:
        return Tokens(secret).sign(Choice("doctor", "doctor"))

    arns = {each.environment.get("UNSUBSCRIBE_SECRET_ARN", "") for each in stage.senders("mail")} - {""}
    if not arns:
        yield skipped("No function of the stage makes links for opting out.")
    for arn in sorted(arns):
        value = """'{"key": "'"$(openssl rand -hex 32)"'"}'"""
        yield _key(stage, arn, "Links for opting out", sign, value)


def _key(
    stage: ExaminedStage, arn: str, what: str, sign: Callable[[CachedSecret], object], value: str
) -> CheckFinding:
    client = stage.client("secretsmanager")
    try:
        sign(CachedSecret(client, arn, time.time))
    except InvalidSecret as fault:
        # The whole ARN: its last part is the secret's name and six random characters, which is no name.
        fix = f"aws secretsmanager put-secret-value --secret-id {arn} --secret-string {value}"
        return failed(f"{what} cannot be signed: {fault}.", fix)
    except client.exceptions.ResourceNotFoundException:
        return _missing(stage, arn)
    return ok(f"{what} can be signed: the key is of the right form.")


def secrets_of(stage: ExaminedStage, channel: str) -> Iterator[CheckFinding]:
    """Whether each secret that a channel's senders use can be read, for channels without checks of their
    own."""
    arns = {
        arn
        for each in stage.senders(channel)
        for name, arn in each.environment.items()
        if name.endswith("_SECRET_ARN") and arn
    }
    if not arns:
        yield skipped(f"The senders of {channel} have no secret.")
    for arn in sorted(arns):
        if stage.asked("secretsmanager", "get_secret_value", SecretId=arn) is None:
            yield _missing(stage, arn)
        else:
            yield ok(f"The secret {arn} has a value.")


def _missing(stage: ExaminedStage, arn: str) -> CheckFinding:
    return failed(f"The secret {arn} does not exist, or has no value.", stage.deploy)
