"""Erases a person's opt-outs and entries of the suppression lists."""

from mailroom_ops.people.person import mentioned
from mailroom_ops.people.stage_data import ErasurePlace, ErasureRun
from mailroom_ops.people.suppression_lists import FAULTS, Lists, ProvidersList

CHOICES = {"preferences": ("recipient", "topic"), "suppressions": ("recipient", "channel")}
"""Key attributes of the tables of opt-outs and suppressions, by table."""


def erase_choices(run: ErasureRun, table: str) -> ErasurePlace:
    """Erase the person's entries in one of the tables in CHOICES, or count them if `run.apply` is false.
    Entries of lifted suppressions are included."""
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
    """Remove the person's mail address from the suppression list of the SES or Resend account."""
    if run.person.kind != "mail":
        return "not_asked"
    if run.keep_choices:
        return "kept"
    try:
        return Lists(run.data.session, run.data.stage).lift_from_provider(run.person.recipient)
    except FAULTS as error:
        run.leave("provider", "its own suppression list", f"was not changed: {error}; run this again")
        return "failed"
