"""Whether SNS could push: its applications, their certificates, and the topics."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from mailroom.clock import epoch
from ops.doctor.deployed import json_of
from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

SOON = timedelta(days=30)
NO_PUSH = "No function of the stage sends pushes."
_EXPIRES = "AppleCertificateExpirationDate"


def applications(look: Look) -> Iterator[Verdict]:
    """Each platform application: there, on, and its certificate good for a while."""
    found = {
        name: arn
        for each in look.senders("push")
        for name, arn in json_of(each.environment.get("PLATFORM_APPLICATIONS", "{}")).items()
    }
    if not found:
        yield skipped(NO_PUSH)
    client = look.client("sns")
    for name, arn in found.items():
        try:
            said = client.get_platform_application_attributes(PlatformApplicationArn=arn)["Attributes"]
        except client.exceptions.NotFoundException:
            yield failed(f"The platform application {name} is not there.", f"Create {arn} in SNS.")
            continue
        if said.get("Enabled", "true").lower() != "true":
            fix = (
                "Put valid credentials, then: aws sns set-platform-application-attributes "
                f"--platform-application-arn {arn} --attributes Enabled=true"
            )
            yield failed(f"SNS has turned off the platform application {name}.", fix)
        elif _EXPIRES in said:
            yield _certificate(look, name, said[_EXPIRES])
        else:
            yield ok(f"The platform application {name} is on.")


def topics(look: Look) -> Iterator[Verdict]:
    """Each topic that a message may go to."""
    arns = [arn for each in look.senders("push") for arn in json_of(each.environment.get("TOPICS", "[]"))]
    if not arns:
        yield skipped("The stage pushes to no topics.")
    client = look.client("sns")
    for arn in arns:
        name = arn.rpartition(":")[2]
        try:
            client.get_topic_attributes(TopicArn=arn)
        except client.exceptions.NotFoundException:
            yield failed(f"The topic {name} is not there.", f"aws sns create-topic --name {name}")
        else:
            yield ok(f"The topic {name} is there.")


def _certificate(look: Look, name: str, until: str) -> Verdict:
    end, now = datetime.fromtimestamp(epoch(until), UTC), datetime.fromtimestamp(look.clock(), UTC)
    fix = f"Put a new certificate or a token into the platform application {name}."
    if end <= now:
        return failed(f"Apple's certificate of {name} has expired on {end:%Y-%m-%d}.", fix)
    if end - now <= SOON:
        return warning(f"Apple's certificate of {name} expires on {end:%Y-%m-%d}.", fix)
    return ok(f"The platform application {name} is on; its certificate is good until {end:%Y-%m-%d}.")
