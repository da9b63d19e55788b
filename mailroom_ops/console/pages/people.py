"""People: what keeps messages from somebody, what was sent to them, and all of it erased."""

from collections.abc import Callable
from typing import Literal, get_args

from msgspec import Struct

from mailroom_ops.console.pages.erasing import EraseJob
from mailroom_ops.console.pages.messages import finder_at
from mailroom_ops.console.site import Answer, Asked, Goto, Shown, Site, link
from mailroom_ops.messages.search import row_of
from mailroom_ops.people.preferences import OptOuts, opted_out
from mailroom_ops.people.suppressions import CHANNELS, FAULTS, WHY, Lists, suppressed
from mailroom_ops.screen import Refused

LISTED = 10
Change = Literal["lift", "suppress", "opt-in", "opt-out"]
_NEEDS = {"lift": ("channel",), "suppress": ("channel", "why"), "opt-in": ("topic",), "opt-out": ("topic",)}


class Plan(Struct, frozen=True):
    """What a change does: the sentence before it, the button, and the sentence after it."""

    before: str
    button: str
    after: str


_PLANS: dict[Change, Plan] = {
    "lift": Plan(
        "{who} gets {channel} of this stage again. A new bounce or complaint ends that.",
        "Lift",
        "{who} gets {channel} again.",
    ),
    "suppress": Plan(
        "No {channel} of this stage goes to {who} any more, until somebody lifts that.",
        "Suppress",
        "{who} gets no {channel} any more.",
    ),
    "opt-in": Plan(
        "{who} gets messages of the topic {topic} again. Do so only if they have asked for it.",
        "Opt in",
        "{who} gets {topic} again.",
    ),
    "opt-out": Plan(
        "{who} gets no message of the topic {topic} any more.", "Opt out", "{who} gets no {topic} any more."
    ),
}
_PROVIDERS_LIST = "It is taken off the mail provider's own list too, which all stages of the account share."


def show(site: Site, asked: Asked) -> Answer:
    """Somebody's suppressions, opt-outs and newest messages."""
    who = asked.typed("recipient")
    if not who:
        return Shown(template="people.html", values={"who": ""})
    finder = finder_at(site)
    change = _change(asked["done"])
    return Shown(
        template="people.html",
        title=who,
        values={
            "who": who,
            "suppressions": [suppressed(each) for each in _lists(site).find(who)],
            "why": WHY,
            "opt_outs": [opted_out(each) for each in _opt_outs(site).of(who)],
            "rows": [row_of(each) for each in finder.to(who).messages[:LISTED]] if finder else [],
            "off": finder is None,
            "channels": CHANNELS,
            "done": _PLANS[change].after.format(**_named(asked)) if change else "",
            "ses": asked["ses"],
        },
    )


def change(site: Site, asked: Asked) -> Answer:
    """What a change does, and then does it. Raises Refused."""
    what = _change(asked["do"])
    if what is None:
        raise Refused("There is no such change.")
    for name in _NEEDS[what]:
        if not asked.typed(name):
            raise Refused(f"{name}: is missing; go back and give it.")
    who = asked.typed("recipient")
    if asked.form is None:
        sentences = [_PLANS[what].before.format(**_named(asked))]
        sentences += [_PROVIDERS_LIST] if what == "lift" and asked["channel"] == "mail" else []
        values = {"who": who, "what": what, "button": _PLANS[what].button, "sentences": sentences}
        return Shown(template="people_change.html", title=f"{_PLANS[what].button} {who}?", values=values)
    done = {"recipient": who, "done": what, "channel": asked["channel"], "topic": asked.typed("topic")}
    return Goto(link("/people", **done, ses=_DO[what](site, asked)))


def erase(site: Site, asked: Asked) -> Answer:
    """What a stage has of somebody, and then all of it erased: as `mailroom erase`, which asks as much."""
    who = asked.typed("recipient")
    if not who:
        raise Refused("recipient: is missing; find the person first.")
    name = f"erase {who}"
    job = site.jobs.get(name)
    if asked.form is not None:
        if asked["step"] == "erase":
            if job is None or job.survey is None or job.running:
                raise Refused("Nobody has looked what there is. Look first, then erase.")
            if asked.typed("typed") != who:
                raise Refused(f"typed: is not {who}. Type the recipient as it stands in the title.")
            job.erase(keep_choices=bool(asked["keep"]))
        elif job is None or not job.running:
            site.jobs[name] = EraseJob(site.session, site.stage, who)
        return Goto(link("/people/erase", recipient=who, run="1"))
    return Shown(
        template="people_erase.html",
        title=f"Erase {who}",
        values={"who": who, "job": job if asked["run"] else None},
    )


def _lift(site: Site, asked: Asked) -> str:
    lists, channel = _lists(site), asked["channel"]
    found = lists.find(asked.typed("recipient"), (channel,))
    ses = ""
    if channel == "mail":
        # Before our own: SES would answer the next mail with a bounce, which marks the recipient anew.
        try:
            lists.lift_from_provider(asked.typed("recipient"))
        except FAULTS:
            ses = "failed"
    for each in found:
        lists.lift(each, asked["why"])
    return ses


def _suppress(site: Site, asked: Asked) -> str:
    if asked["channel"] not in CHANNELS:
        raise Refused(
            f"channel: nobody is on the list of {asked['channel']!r:.40}; use {', '.join(CHANNELS)}."
        )
    _lists(site).add(asked.typed("recipient"), asked["channel"], asked["why"])
    return ""


def _opt_in(site: Site, asked: Asked) -> str:
    _opt_outs(site).opt_in(asked.typed("recipient"), asked.typed("topic"))
    return ""


def _opt_out(site: Site, asked: Asked) -> str:
    _opt_outs(site).opt_out(asked.typed("recipient"), asked.typed("topic"))
    return ""


_DO: dict[Change, Callable[[Site, Asked], str]] = {
    "lift": _lift,
    "suppress": _suppress,
    "opt-in": _opt_in,
    "opt-out": _opt_out,
}


def _change(text: str) -> Change | None:
    return next((each for each in get_args(Change) if each == text), None)


def _named(asked: Asked) -> dict[str, str]:
    return {"who": asked.typed("recipient"), "channel": asked["channel"], "topic": asked.typed("topic")}


def _lists(site: Site) -> Lists:
    return site.kept("lists", lambda: Lists(site.session, site.stage))


def _opt_outs(site: Site) -> OptOuts:
    return site.kept("opt-outs", lambda: OptOuts(site.session, site.stage))
