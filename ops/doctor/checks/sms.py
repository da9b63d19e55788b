"""Whether the provider of text messages would take one."""

from collections.abc import Iterator
from typing import Any

from mailroom.channels.provider import Unconfigured
from mailroom.channels.sms.twilio_account import TwilioAccount, account_at
from mailroom.channels.twilio_api import client as twilio_client
from mailroom.http.https import NotSent, Unclear
from mailroom.http.provider import body_of
from mailroom.telemetry import redact
from ops.doctor.deployed import Function
from ops.doctor.look import READ_SECONDS, Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

_AWS_CONSOLE = "https://console.aws.amazon.com/sms-voice/home"
_TWILIO_CONSOLE = "https://console.twilio.com"


def credentials(look: Look) -> Iterator[Verdict]:
    """The provider's, tried by questions that change nothing."""
    senders = look.senders("sms")
    if not senders:
        yield skipped("No function of the stage sends text messages.")
    for each in senders:
        yield from _twilio(look, each) if each.environment["SMS_PROVIDER"] == "twilio" else _aws(look)


def _twilio(look: Look, function: Function) -> Iterator[Verdict]:
    arn, base = function.environment["TWILIO_SECRET_ARN"], function.environment["SMS_BASE_URL"].rstrip("/")
    put = f"aws secretsmanager put-secret-value --secret-id {look.prefix}twilio --secret-string file://twilio.json"
    try:
        account = account_at(look.client("secretsmanager"), arn)
        sending = _asked(account, account.login, f"{base}/2010-04-01/Accounts/{{sid}}/Messages.json")
        # An API key may not read the account. The token that may is the one that callbacks are signed with.
        own = _asked(
            account, (account.account_sid, account.auth_token), f"{base}/2010-04-01/Accounts/{{sid}}.json"
        )
    except Unconfigured as fault:
        yield failed(f"{fault}.", put)
    except LookupError:
        yield failed("Twilio's secret has no value.", put)
    except (NotSent, Unclear) as trouble:
        yield failed(f"Twilio cannot be asked: {trouble}.", "Check the network from here, and sms.base_url.")
    else:
        yield from _login(sending, put)
        yield from _own(own, put)


def _asked(account: TwilioAccount, login: tuple[str, str], url: str) -> tuple[int, dict[str, Any]]:
    client = twilio_client(*login, account.account_sid, READ_SECONDS)
    answer = client.request("GET", url.format(sid=account.account_sid), params={"PageSize": 1})
    return answer.status_code, body_of(answer.status_code, answer.text)


def _login(answer: tuple[int, dict[str, Any]], put: str) -> Iterator[Verdict]:
    if answer[0] == 200:
        yield ok("Twilio takes the credentials that messages are sent with.")
    else:
        yield failed(f"Twilio refuses the credentials that messages are sent with: {_said(*answer)}.", put)


def _own(answer: tuple[int, dict[str, Any]], put: str) -> Iterator[Verdict]:
    status, body = answer
    if status != 200:
        yield failed(
            f"Twilio refuses the account's token, which its callbacks are signed with: {_said(*answer)}.", put
        )
    elif body.get("status") != "active":
        yield failed(f"Twilio has the account as {redact(str(body.get('status')))}.", _TWILIO_CONSOLE)
    elif body.get("type") == "Trial":
        yield warning("Twilio's account is on trial: only verified numbers get messages.", _TWILIO_CONSOLE)
    else:
        yield ok("Twilio's account is active, and its token is the right one for callbacks.")


def _said(status: int, body: dict[str, Any]) -> str:
    return f"{status}, {redact(str(body.get('message') or 'no reason given')).rstrip('.')}"


def _aws(look: Look) -> Iterator[Verdict]:
    client = look.client("pinpoint-sms-voice-v2")
    attributes = client.describe_account_attributes()["AccountAttributes"]
    tier = {each["Name"]: each["Value"] for each in attributes}.get("ACCOUNT_TIER")
    if tier == "SANDBOX":
        yield warning("AWS has the account's SMS in a sandbox: only verified numbers get any.", _AWS_CONSOLE)
    else:
        yield ok("AWS lets the account send text messages to everybody.")
    for limit in client.describe_spend_limits()["SpendLimits"]:
        if limit["Name"] == "TEXT_MESSAGE_MONTHLY_SPEND_LIMIT":
            yield _limit(limit["EnforcedLimit"], limit["MaxLimit"])


def _limit(enforced: int, most: int) -> Verdict:
    sentence = f"AWS spends at most ${enforced:,} a month on text messages (of ${most:,} that it would)."
    if enforced <= 1:
        return warning(f"{sentence} That is what new accounts have.", f"Raise it: {_AWS_CONSOLE}")
    return ok(sentence)
