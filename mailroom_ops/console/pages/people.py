"""Pages of a person: suppressions and opt-outs, messages, and the erasure of all data."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from mailroom_ops.console.pages.erasing import EraseJob
from mailroom_ops.console.pages.messages import finder_at
from mailroom_ops.console.site import Answer, Asked, Goto, Shown, Site, View, link
from mailroom_ops.messages.search import MessageRow, row_of
from mailroom_ops.people.preferences import OptedOut, OptOuts
from mailroom_ops.people.suppressions import CHANNELS, FAULTS, Lists, SuppressedRecipient
from mailroom_ops.shared.screen import Refused

LISTED = 10


class Change(Struct, frozen=True):
    """A change of what keeps messages from a person."""

    make: Callable[[Site, Asked], object]
    """Make the change. Return "failed" if the mail provider's own list could not be changed."""
    needs: tuple[str, ...]
    """Fields of the form that must not be empty."""
    button: str
    before: str
    """The sentence before the change."""
    after: str
    """The sentence after the change."""


class People(View, frozen=True):
    """Values of the page of a person, and of the form that asks for one."""

    who: str = ""
    suppressions: Sequence[SuppressedRecipient] = ()
    opt_outs: Sequence[OptedOut] = ()
    rows: Sequence[MessageRow] = ()
    off: bool = False
    """Whether the stage has no search."""
    done: str = ""
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


_PROVIDERS_LIST = "It is taken off the mail provider's own list too, which all stages of the account share."


def show(site: Site, asked: Asked) -> Answer:
    """Show a person's suppressions, opt-outs and newest messages."""
    who = asked.typed("recipient")
    if not who:
        return Shown(People())
    finder = finder_at(site)
    change = _CHANGES.get(asked["done"])
    suppressions = _lists(site).find(who)
    opt_outs = _opt_outs(site).of(who)
    rows = [row_of(message) for message in finder.to(who).messages[:LISTED]] if finder else []
    done = change.after.format(**_named(asked)) if change else ""
    channels = tuple(channel for channel in CHANNELS if (channel == "mail") == ("@" in who))
    return Shown(People(who, suppressions, opt_outs, rows, finder is None, done, channels), who)


def change(site: Site, asked: Asked) -> Answer:
    """Show the effect of a change, and then make the change. Raises Refused."""
    what = asked["do"]
    plan = _CHANGES.get(what)
    if plan is None:
        raise Refused("There is no such change.")
    for name in plan.needs:
        if not asked.typed(name):
            raise Refused(f"{name}: is missing; go back and give it.")
    who = asked.typed("recipient")
    if what == "suppress":
        who = _lists(site).canonical(asked["channel"], who)
    if asked.form is None:
        sentences = [plan.before.format(**_named(asked))]
        sentences += [_PROVIDERS_LIST] if what == "lift" and asked["channel"] == "mail" else []
        return Shown(PeopleChange(who, what, plan.button, sentences), f"{plan.button} {who}?")
    done = {"recipient": who, "done": what, "channel": asked["channel"], "topic": asked.typed("topic")}
    failed = plan.make(site, asked) == "failed"
    return Goto(link("/people", **done, ses="failed" if failed else ""))


def erase(site: Site, asked: Asked) -> Answer:
    """Show the data that a stage has of a person, and then erase it, with the confirmation of `mailroom
    erase`."""
    who = asked.typed("recipient")
    if not who:
        raise Refused("recipient: is missing; find the person first.")
    job = site.job(EraseJob, who)
    if asked.form is not None:
        if asked["step"] == "erase":
            if job is None or job.survey is None or job.running:
                raise Refused("Nobody has looked what there is. Look first, then erase.")
            if asked.typed("typed") != who:
                raise Refused(f"typed: is not {who}. Type the recipient as it stands in the title.")
            job.erase(keep_choices=bool(asked["keep"]))
        elif job is None or not job.running:
            site.jobs[EraseJob, who] = EraseJob(site.session, site.stage, who)
        return Goto(link("/people/erase", recipient=who, run="1"))
    return Shown(PeopleErase(who, job if asked["run"] else None), f"Erase {who}")


def _lift(site: Site, asked: Asked) -> str:
    lists, channel = _lists(site), asked["channel"]
    found = lists.find(asked.typed("recipient"), (channel,))
    ses = ""
    if channel == "mail":
        # SES's list first: otherwise a bounce of the next mail would suppress the recipient again.
        try:
            lists.lift_from_provider(asked.typed("recipient"))
        except FAULTS:
            ses = "failed"
    for each in found:
        lists.lift(each, asked["why"])
    return ses


_CHANGES = {
    "lift": Change(
        _lift,
        ("channel",),
        "Lift",
        "{who} gets {channel} of this stage again. A new bounce or complaint ends that.",
        "{who} gets {channel} again.",
    ),
    "suppress": Change(
        lambda site, asked: _lists(site).add(asked.typed("recipient"), asked["channel"], asked["why"]),
        ("channel", "why"),
        "Suppress",
        "No {channel} of this stage goes to {who} any more, until somebody lifts that.",
        "{who} gets no {channel} any more.",
    ),
    "opt-in": Change(
        lambda site, asked: _opt_outs(site).opt_in(asked.typed("recipient"), asked.typed("topic")),
        ("topic",),
        "Opt in",
        "{who} gets messages of the topic {topic} again. Do so only if they have asked for it.",
        "{who} gets {topic} again.",
    ),
    "opt-out": Change(
        lambda site, asked: _opt_outs(site).opt_out(asked.typed("recipient"), asked.typed("topic")),
        ("topic",),
        "Opt out",
        "{who} gets no message of the topic {topic} any more.",
        "{who} gets no {topic} any more.",
    ),
}


def _named(asked: Asked) -> dict[str, str]:
    return {"who": asked.typed("recipient"), "channel": asked["channel"], "topic": asked.typed("topic")}


def _lists(site: Site) -> Lists:
    return site.kept("lists", lambda: Lists(site.session, site.stage))


def _opt_outs(site: Site) -> OptOuts:
    return site.kept("opt-outs", lambda: OptOuts(site.session, site.stage))
