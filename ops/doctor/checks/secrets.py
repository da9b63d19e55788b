"""The keys that are made and read by Mailroom alone: there, and of a form that signs."""

import time
from collections.abc import Iterator

from mailroom.aws.secret import Secret
from mailroom.channels.webhook.signing import Signer, UnusableKey
from mailroom.recipients.unsubscribe_links import Choice, InvalidSigningKey, Tokens
from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped


def signing_key(look: Look) -> Iterator[Verdict]:
    """What webhooks and callbacks are signed with, tried on an empty one."""
    senders = look.senders("webhook")
    if not senders:
        yield skipped("No function of the stage sends webhooks.")
    for each in senders:
        arn = each.environment["SIGNING_SECRET_ARN"]
        try:
            Signer(_secret(look, arn), 0, time.time).headers("doctor.example", "msg_doctor", "{}")
        except UnusableKey as fault:
            yield failed(f"Webhooks cannot be signed: {fault}.", _put(arn, '"$(openssl rand -base64 33)"'))
        except look.client("secretsmanager").exceptions.ResourceNotFoundException:
            yield _missing(look, arn)
        else:
            yield ok("Webhooks can be signed: the key is of the right form.")


def opt_out_key(look: Look) -> Iterator[Verdict]:
    """What the links for opting out are signed with, tried on one that leads nowhere."""
    arns = {each.environment.get("UNSUBSCRIBE_SECRET_ARN", "") for each in look.senders("mail")} - {""}
    if not arns:
        yield skipped("No function of the stage makes links for opting out.")
    for arn in sorted(arns):
        try:
            Tokens(_secret(look, arn)).sign(Choice("doctor", "doctor"))
        except InvalidSigningKey as fault:
            key = '{"key": "\'"$(openssl rand -hex 32)"\'"}'
            yield failed(f"Links for opting out cannot be signed: {fault}.", _put(arn, f"'{key}'"))
        except look.client("secretsmanager").exceptions.ResourceNotFoundException:
            yield _missing(look, arn)
        else:
            yield ok("Links for opting out can be signed: the key is of the right form.")


def _secret(look: Look, arn: str) -> Secret:
    return Secret(look.client("secretsmanager"), arn, time.time)


def _missing(look: Look, arn: str) -> Verdict:
    return failed(f"The secret {arn} is not there, or has no value.", look.deploy)


def _put(arn: str, value: str) -> str:
    # The whole ARN: its last part is the secret's name and six random characters, which is no name.
    return f"aws secretsmanager put-secret-value --secret-id {arn} --secret-string {value}"
