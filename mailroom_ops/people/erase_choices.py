"""Erasure of choices by people, or by others for them: opt-outs, and entries of the suppression lists."""

from mailroom_ops.people.person import mentioned
from mailroom_ops.people.stage_data import ErasurePlace, ErasureRun
from mailroom_ops.people.suppressions import FAULTS, Lists, ProvidersList

CHOICES = {"preferences": ("recipient", "topic"), "suppressions": ("recipient", "channel")}
"""The tables of choices, with their keys."""


def erase_choices(run: ErasureRun, table: str) -> ErasurePlace:
    """Opt-outs, or the suppression list: those of the person, also what was lifted."""
    place = ErasurePlace(table)
    for image in run.data.scan(table):
        recipient = image.get("recipient", {}).get("S", "")
        theirs = run.person.is_named_by(recipient) or mentioned(image, run.person)
        if not (theirs and run.person.may_be_of(image)):
            continue
        place.found += 1
        if run.keep_choices:
            place.kept += 1
        elif run.apply:
            run.data.delete(table, {name: image[name] for name in CHOICES[table]})
            place.erased += 1
    return place


def lift_from_provider(run: ErasureRun) -> ProvidersList:
    """Take a mail address off the suppression list of the SES or Resend account."""
    if run.person.kind != "mail":
        return "not_asked"
    if run.keep_choices:
        return "kept"
    try:
        return Lists(run.data.session, run.data.stage).lift_from_provider(run.person.recipient)
    except FAULTS as error:
        run.leave("provider", "its own suppression list", f"it refused: {error}; run this again")
        return "failed"
