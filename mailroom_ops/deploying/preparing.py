"""Preparation of an account for a first deployment: the CDK's bootstrap, and the identities in SES from which
the stage sends. `deploy` offers each step, and only carries out the steps that a person allows."""

import json
import os
import time
from collections.abc import Callable, Sequence
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Literal

import typer
from botocore.exceptions import BotoCoreError, ClientError

from mailroom_ops.deploying import cdk
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.identities import dkim_records, identity_of
from mailroom_ops.shared.screen import Refused, at_a_terminal, print_lines, status
from mailroom_stacks.settings.settings import Settings

IdentityKind = Literal["address", "domain"]
"""Kind of an identity: SES mails a link to an address, and looks for the DKIM records of a domain."""
DEFAULT_BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
"""Name of the SSM parameter with the version of the CDK's default bootstrap."""
POLL_SECONDS = 10


def use_place_of(assembly: Path) -> str:
    """Use the region of an assembly's stacks in this process, and return the account of the credentials.
    Raises Refused if the settings name another account, and botocore's errors."""
    place = _stacks(assembly)[0]["environment"].removeprefix("aws://").split("/")
    expected, region = ("" if part.startswith("unknown-") else part for part in place)
    os.environ |= {"AWS_REGION": region, "AWS_DEFAULT_REGION": region} if region else {}
    account = str(aws_session().client("sts").get_caller_identity()["Account"])
    if expected not in ("", account):
        raise Refused(f"deployment.account is {expected}, but the credentials are of account {account}.")
    return account


def bootstrap_if_missing(account: str, assembly: Path, again: str, *, unasked: bool) -> None:
    """Run `cdk bootstrap` if the account and region lack the bootstrap that the assembly's stacks need: after
    a question, or `unasked`. `again` is the command that goes on. Raises Refused if the person does not allow
    it, or if it fails, and botocore's errors."""
    ssm, needs = aws_session().client("ssm"), [stack["properties"] for stack in _stacks(assembly)]
    parameter, region = needs[0]["bootstrapStackVersionSsmParameter"], ssm.meta.region_name
    needed = max(need["requiresBootstrapStackVersion"] for need in needs)
    if (version := _version(ssm, parameter)) >= needed:
        return
    state = f"Account {account} has no bootstrap of the CDK in {region}"
    effect = "creates a bucket, and roles, of which CloudFormation's has AdministratorAccess"
    if version:
        state = f"The CDK's bootstrap of account {account} in {region} has version {version:g} of {needed}"
        effect = "updates it, for all apps that use it"
    if parameter != DEFAULT_BOOTSTRAP:
        page = '"What a deployment may do" in `mailroom docs deploy-from-ci`'
        raise Refused(f"{state}: {parameter}. Nothing was deployed. Create it as in {page}, then: {again}")
    question = f"{state}. `cdk bootstrap` {effect}. Run it now?"
    if not unasked and not (at_a_terminal() and typer.confirm(question, default=not version, err=True)):
        raise Refused(f"{state}. Nothing was deployed. Go on with: {again} --bootstrap")
    if cdk.run("bootstrap", "--app", str(assembly), f"aws://{account}/{region}").returncode:
        raise Refused(f"Nothing was deployed. Remove the cause, then go on with: {again} --bootstrap")


def _stacks(assembly: Path) -> list[dict[str, Any]]:
    """Return the manifest's entries of the stacks that the bootstrap's roles deploy."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"].values()
    stacks = (artifact for artifact in artifacts if artifact["type"] == "aws:cloudformation:stack")
    return [stack for stack in stacks if "bootstrapStackVersionSsmParameter" in stack["properties"]]


def _version(ssm: Any, parameter: str) -> float:
    """Return the version of a bootstrap, 0 if there is none. Return infinity if it cannot be read, as with
    the credentials of CI: then the CDK reads it, with a role of the bootstrap."""
    try:
        return float(ssm.get_parameter(Name=parameter)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return 0
    except (ClientError, BotoCoreError):
        return float("inf")


def addresses_at_ses(settings: Settings) -> list[str]:
    """Return the addresses from which the stage sends mails by SES."""
    by_ses = "mail" in settings.channels and "ses" in settings.providers("mail")
    return [parseaddr(sender)[1] for sender in settings.mail.senders] if by_ses else []


def unverified_identities(
    ses: Any, addresses: Sequence[str], again: str, kind: IdentityKind | None
) -> list[str]:
    """Create the missing identities of addresses, of the given `kind` or after a question. Print how to
    verify each identity that SES has not verified, and return the names of these identities. `again` is the
    command that creates identities later. Raises botocore's errors of a creation only."""
    names: list[str] = []
    for address in addresses:
        try:
            name, identity = identity_of(ses, address)
        except (ClientError, BotoCoreError) as error:  # as in CI; `doctor` checks the senders, too
            print_lines(f"The identity of {address} in SES was not checked: {error}")
            continue
        if identity is None and (choice := kind or _chosen_kind(address)):
            name = address if choice == "address" else address.rpartition("@")[2]
            identity = ses.create_email_identity(EmailIdentity=name)
        if identity is None:
            print_lines(f"{address} has no identity in SES. To create it: {again} --identity address")
        elif not identity.get("VerifiedForSendingStatus") and name not in names:
            print_lines("\n".join(_how_to_verify(name, identity)))
            names.append(name)
    return names


def _chosen_kind(address: str) -> str:
    """Ask whether to create an identity for an address. The question needs a terminal."""
    question = (
        f"SES has no identity for {address} in this region. Create it, and let SES mail a link to {address}? "
        "(For the domain's identity, answer no and use --identity domain.)"
    )
    return "address" if at_a_terminal() and typer.confirm(question, default=True, err=True) else ""


def _how_to_verify(name: str, identity: dict[str, Any]) -> list[str]:
    if "@" not in name:
        records = [*dkim_records(name, identity["DkimAttributes"])]
        console = f"SES has not verified {name}: https://console.aws.amazon.com/ses/home#/identities/{name}"
        return [f"Add these records to the DNS of {name}:", *records] if records else [console]
    if identity.get("VerificationStatus") == "FAILED":
        resend = f"aws ses verify-email-identity --email-address {name}"
        return [f"The link that SES mailed to {name} has expired. For another one: {resend}"]
    return [f"SES has mailed a link to {name}, from Amazon Web Services. Follow it within a day."]


def wait_until_verified(ses: Any, names: Sequence[str], sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until SES has verified the identities, or has given up: an address after a day, a domain after
    three days. Then print how to start again."""
    for name in names:
        with status(f"waiting until SES has verified {name}; Ctrl-C ends only the wait", quiet=False):
            while not (identity := ses.get_email_identity(EmailIdentity=name))["VerifiedForSendingStatus"]:
                if identity["VerificationStatus"] == "FAILED":
                    print_lines("\n".join(_how_to_verify(name, identity)))
                    break
                sleep(POLL_SECONDS)
