"""Pages that change a person's suppressions and opt-outs, or erase the person."""

from collections.abc import Callable

from msgspec import Struct

from mailroom_ops.console.pages.erasing import EraseJob
from mailroom_ops.console.pages.people import fields_of, lists_at, opt_outs_at
from mailroom_ops.console.site import Answer, Goto, Request, Shown, Site, View, link
from mailroom_ops.people.suppression_lists import FAULTS
from mailroom_ops.shared.refusals import Refused


class Change(Struct, frozen=True):
    """Change of a suppression or an opt-out."""

    make: Callable[[Site, Request], object]
    """Function that makes the change. It returns "failed" if the mail provider's own list could not be
    changed."""
    needs: tuple[str, ...]
    """Fields of the form that must not be empty."""
    button: str
    before: str
    """Sentence that is shown before the change."""


class PeopleChange(View, frozen=True):
    """Values of the question before a change."""

    who: str
    what: str
    button: str
    sentences: list[str]


class PeopleErase(View, frozen=True):
    """Values of the page of an erasure."""

    who: str
    job: EraseJob | None


_PROVIDERS_LIST = (
    "The address is removed from the mail provider's own suppression list too, which all stages in the "
    "account share."
)


def change(site: Site, request: Request) -> Answer:
    """Show the effect of a change, and then make the change. Raises Refused."""
    action = request["do"]
    plan = _CHANGES.get(action)
    if plan is None:
        raise Refused("There is no such change.")
    for name in plan.needs:
        if not request.typed(name):
            raise Refused(f"{name} is missing. Go back and enter it.")
    recipient = request.typed("recipient")
    if action == "suppress":
        recipient = lists_at(site).canonical(request["channel"], recipient)
    if request.form is None:
        sentences = [plan.before.format(**fields_of(request))]
        sentences += [_PROVIDERS_LIST] if action == "lift" and request["channel"] == "mail" else []
        return Shown(PeopleChange(recipient, action, plan.button, sentences), f"{plan.button} {recipient}?")
    ses = "failed" if plan.make(site, request) == "failed" else ""
    channel, topic = request["channel"], request.typed("topic")
    return Goto(link("/people", recipient=recipient, done=action, channel=channel, topic=topic, ses=ses))


def erase(site: Site, request: Request) -> Answer:
    """Show the data that a stage has of a person, and then erase it, if the user has typed the recipient as a
    confirmation."""
    recipient = request.typed("recipient")
    if not recipient:
        raise Refused("The recipient is missing. Find the person first.")
    job = site.job(EraseJob, recipient)
    if request.form is not None:
        if request["step"] == "erase":
            if job is None or job.survey is None or job.running:
                raise Refused("The data has not been searched yet. Look first, then erase.")
            if request.typed("typed") != recipient:
                raise Refused(f"The typed text is not {recipient}. Type the recipient as it is in the title.")
            job.erase(request["why"], keep_choices=bool(request["keep"]))
        elif job is None or not job.running:
            site.jobs[EraseJob, recipient] = EraseJob(site.session, site.stage, recipient)
        return Goto(link("/people/erase", recipient=recipient, run="1"))
    return Shown(PeopleErase(recipient, job if request["run"] else None), f"Erase {recipient}")


def _lift(site: Site, request: Request) -> str:
    lists, channel = lists_at(site), request["channel"]
    entries = lists.find(request.typed("recipient"), (channel,))
    ses = ""
    if channel == "mail":
        # The provider's list comes first: otherwise a bounce of the next mail would suppress the recipient
        # again.
        try:
            lists.lift_from_provider(request.typed("recipient"))
        except FAULTS:
            ses = "failed"
    for entry in entries:
        lists.lift(entry, request["why"])
    return ses


_CHANGES = {
    "lift": Change(
        _lift,
        ("channel",),
        "Lift",
        "{who} gets {channel} of this stage again, until a new bounce or complaint.",
    ),
    "suppress": Change(
        lambda site, request: lists_at(site).add(
            request.typed("recipient"), request["channel"], request["why"]
        ),
        ("channel", "why"),
        "Suppress",
        "{who} gets no {channel} of this stage any more, until the suppression is lifted.",
    ),
    "opt-in": Change(
        lambda site, request: opt_outs_at(site).opt_in(request.typed("recipient"), request.typed("topic")),
        ("topic",),
        "Opt in",
        "{who} gets messages of the topic {topic} again. Do so only if they have asked for it.",
    ),
    "opt-out": Change(
        lambda site, request: opt_outs_at(site).opt_out(request.typed("recipient"), request.typed("topic")),
        ("topic",),
        "Opt out",
        "{who} gets no message of the topic {topic} any more.",
    ),
}
