"""Pages of a person: suppressions and opt-outs, messages, and the erasure of all data."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from mailroom_ops.console.pages.erasing import EraseJob
from mailroom_ops.console.pages.messages import finder_at
from mailroom_ops.console.site import Answer, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.search import MessageRow, row_of
from mailroom_ops.people.preferences import OptedOut, OptOuts
from mailroom_ops.people.suppressions import CHANNELS, FAULTS, Lists, SuppressedRecipient
from mailroom_ops.shared.deeds import Deed
from mailroom_ops.shared.screen import Refused

LISTED = 10


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
    after: str
    """Sentence that is shown after the change."""


class People(View, frozen=True):
    """Values of the page of a person, and of the form that asks for one."""

    who: str = ""
    suppressions: Sequence[SuppressedRecipient] = ()
    opt_outs: Sequence[OptedOut] = ()
    rows: Sequence[MessageRow] = ()
    off: bool = False
    """Whether the stage has no search."""
    done: str = ""
    deeds: Sequence[Deed] = ()
    """Deeds on the person, if the stage has a search: without it, all persons are one thing."""
    channels: tuple[str, ...] = CHANNELS


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


def show(site: Site, request: Request) -> Answer:
    """Show a person's suppressions, opt-outs and newest messages."""
    recipient = request.typed("recipient")
    if not recipient:
        return Shown(People())
    finder = finder_at(site)
    change = _CHANGES.get(request["done"])
    suppressions = _lists(site).find(recipient)
    opt_outs = _opt_outs(site).of(recipient)
    rows = [row_of(message) for message in finder.to(recipient).messages[:LISTED]] if finder else []
    done = change.after.format(**_named(request)) if change else ""
    channels = tuple(channel for channel in CHANNELS if (channel == "mail") == ("@" in recipient))
    deeds = site.deeds_on(site.deeds.person(recipient)) if finder else []
    off = finder is None
    return Shown(People(recipient, suppressions, opt_outs, rows, off, done, deeds, channels), recipient)


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
        recipient = _lists(site).canonical(request["channel"], recipient)
    if request.form is None:
        sentences = [plan.before.format(**_named(request))]
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
    lists, channel = _lists(site), request["channel"]
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
        "{who} gets {channel} again.",
    ),
    "suppress": Change(
        lambda site, request: _lists(site).add(
            request.typed("recipient"), request["channel"], request["why"]
        ),
        ("channel", "why"),
        "Suppress",
        "{who} gets no {channel} of this stage any more, until the suppression is lifted.",
        "{who} gets no {channel} any more.",
    ),
    "opt-in": Change(
        lambda site, request: _opt_outs(site).opt_in(request.typed("recipient"), request.typed("topic")),
        ("topic",),
        "Opt in",
        "{who} gets messages of the topic {topic} again. Do so only if they have asked for it.",
        "{who} gets {topic} again.",
    ),
    "opt-out": Change(
        lambda site, request: _opt_outs(site).opt_out(request.typed("recipient"), request.typed("topic")),
        ("topic",),
        "Opt out",
        "{who} gets no message of the topic {topic} any more.",
        "{who} gets no {topic} any more.",
    ),
}


def _named(request: Request) -> dict[str, str]:
    return {"who": request.typed("recipient"), "channel": request["channel"], "topic": request.typed("topic")}


def _lists(site: Site) -> Lists:
    return site.kept("lists", lambda: Lists(site.session, site.stage))


def _opt_outs(site: Site) -> OptOuts:
    return site.kept("opt-outs", lambda: OptOuts(site.session, site.stage))
