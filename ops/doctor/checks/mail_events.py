"""The configuration set that mails are sent with, and whether it tells what became of them."""

from collections.abc import Iterator
from typing import Any

from ops.doctor.checks.mail_account import NO_MAIL
from ops.doctor.deployed import json_of
from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped, warning

NEEDED = {"BOUNCE", "COMPLAINT", "DELIVERY", "REJECT"}
"""Without them a status stays `sent`, and nobody who bounced or complained is suppressed."""
USEFUL = {"SEND", "RENDERING_FAILURE", "DELIVERY_DELAY"}


def configuration_set(look: Look) -> Iterator[Verdict]:
    """Whether it is there, may send, counts, and keeps SES's own suppression list."""
    names = _names(look)
    if not names:
        yield skipped(NO_MAIL)
    client = look.client("sesv2")
    for name in names:
        try:
            found = client.get_configuration_set(ConfigurationSetName=name)
        except client.exceptions.NotFoundException:
            yield failed(f"There is no configuration set {name}: every mail is refused.", look.deploy)
            continue
        yield from _set(name, found)


def events(look: Look) -> Iterator[Verdict]:
    """Whether its events come to the stage's own topic."""
    believed = _topics(look)
    client = look.client("sesv2")
    for name in _names(look):
        try:
            found = client.get_configuration_set_event_destinations(ConfigurationSetName=name)
        except client.exceptions.NotFoundException:
            return
        yield _destinations(look, name, found.get("EventDestinations", []), believed)


def _set(name: str, found: dict[str, Any]) -> Iterator[Verdict]:
    if found.get("SendingOptions", {}).get("SendingEnabled", True):
        yield ok(f"Sending with the configuration set {name} is on.")
    else:
        yield failed(
            f"Sending with the configuration set {name} is paused.",
            f"aws sesv2 put-configuration-set-sending-options --configuration-set-name {name} "
            "--sending-enabled",
        )
    # Without options of its own the account's count: mail_account says which those are.
    reasons = found.get("SuppressionOptions", {}).get("SuppressedReasons")
    if reasons is None or not {"BOUNCE", "COMPLAINT"} - set(reasons):
        yield ok("SES suppresses who bounced or complained, for this set.")
    else:
        yield warning(
            f"SES does not suppress for {', '.join(sorted({'BOUNCE', 'COMPLAINT'} - set(reasons)))}.",
            f"aws sesv2 put-configuration-set-suppression-options --configuration-set-name {name} "
            "--suppressed-reasons BOUNCE COMPLAINT",
        )
    if not found.get("ReputationOptions", {}).get("ReputationMetricsEnabled"):
        yield warning(
            f"SES does not count reputation for {name}.",
            f"aws sesv2 put-configuration-set-reputation-options --configuration-set-name {name} "
            "--reputation-metrics-enabled",
        )


def _destinations(look: Look, name: str, found: list[dict[str, Any]], believed: set[str]) -> Verdict:
    to_us = [
        each
        for each in found
        if each.get("Enabled") and each.get("SnsDestination", {}).get("TopicArn") in believed
    ]
    told = {kind for each in to_us for kind in each.get("MatchingEventTypes", [])}
    if not to_us:
        return failed(f"What becomes of mails sent with {name} is not told to the stage.", look.deploy)
    if NEEDED - told:
        return failed(f"{name} does not tell of {', '.join(sorted(NEEDED - told))}.", look.deploy)
    if USEFUL - told:
        return warning(f"{name} does not tell of {', '.join(sorted(USEFUL - told))}.", look.deploy)
    return ok(f"{name} tells the stage what becomes of its mails.")


def _names(look: Look) -> list[str]:
    found = (each.environment.get("CONFIGURATION_SET", "") for each in look.senders("mail"))
    return list(dict.fromkeys(each for each in found if each))


def _topics(look: Look) -> set[str]:
    feedback = look.functions.get("feedback")
    return set(json_of(feedback.environment.get("FEEDBACK_TOPICS", "[]"))) if feedback else set()
