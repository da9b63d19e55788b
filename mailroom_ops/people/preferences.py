"""The commands `preferences`: show the topics that people have opted out of, and change them on their
behalf."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from mailroom.clock import iso
from mailroom.recipients.choices import OptOut, Preferences, opt_out_of
from mailroom_ops.people.recipients import canonical_at, forms_at
from mailroom_ops.people.suppressions import Recipient
from mailroom_ops.shared.deeds import Deeds, with_names
from mailroom_ops.shared.deployed_stage import aws_session, name
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import aws_faults, print_answer, print_line
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show and change the topics that people have opted out of.",
)

Topic = Annotated[str, typer.Option(help="The topic, as in the messages' attribute topic.")]

_HOW = {
    "one_click": "with the button of their mail program",
    "page": "on the page that a mail links to",
    "preferences": "on their page of preferences",
    "api": "by the API, through its caller {actor}",
    "command": "by {actor} (command)",
    "console": "by {actor} (console)",
    "operator": "through an operator",
}


class OptedOut(Struct, frozen=True):
    """Opt-out of a recipient from a topic. `by` is the way in which the recipient opted out, and `actor` the
    caller of the API or the operator, if it was not the recipient."""

    recipient: str
    topic: str
    since: str
    by: str
    actor: str

    @classmethod
    def of(cls, choice: OptOut) -> "OptedOut":
        """Convert an entry of the table of preferences."""
        by, since = choice.by.replace("-", "_"), iso(choice.opted_out_at / 1000)
        return cls(choice.recipient, choice.topic, since, by, choice.actor)

    @property
    def how(self) -> str:
        """Way, and person or caller, in words."""
        return _HOW[self.by].format(actor=with_names(self.actor))


class PreferencesAnswer(Struct, frozen=True):
    """Output of the commands `preferences`: the recipient's present opt-outs. For `opt-in`, the opt-outs that
    it has ended."""

    stage: str
    opt_outs: list[OptedOut]


class OptOuts:
    """Reads and changes the opt-outs of one stage."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._session, self._stage, self._deeds = session, stage, Deeds(session, stage)
        self._preferences = Preferences(session.client("dynamodb"), name(stage, "preferences"))

    def of(self, recipient: str, topic: str | None = None) -> list[OptedOut]:
        """Return the opt-outs of a recipient in all spellings, of all topics or of one."""
        forms = forms_at(self._session, self._stage, recipient)
        choices = filter(None, map(opt_out_of, self._preferences.items(forms)))
        return [OptedOut.of(choice) for choice in choices if topic in (None, choice.topic)]

    def opt_out(self, recipient: str, topic: str) -> bool:
        """Opt a recipient out of a topic. Return False if the recipient had opted out before. Raises Refused
        if the text is not a recipient."""
        form = canonical_at(self._session, self._stage, recipient)
        self._deeds.record(f"opt out of {topic}", [self._deeds.person(form)])
        return self._preferences.opt_out(form, topic, self._deeds.way, self._deeds.by())

    def opt_in(self, recipient: str, topic: str) -> list[OptedOut]:
        """End an opt-out of a topic. Return the removed entries; the list is empty if the recipient had not
        opted out."""
        choices = self.of(recipient, topic)
        people = {self._deeds.person(choice.recipient) for choice in choices}
        self._deeds.record(f"opt in to {topic}", people)
        return [
            choice
            for choice in choices
            if self._preferences.opt_in(choice.recipient, topic, self._deeds.way, actor=self._deeds.by())
        ]


@app.command()
def show(recipient: Recipient, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Print the topics that a recipient has opted out of. Exit code 1: there are none.

    Example: mailroom preferences show ada@example.com --stage prod
    """
    with aws_faults(stage):
        opt_outs = OptOuts(aws_session(), stage).of(recipient)
    show_choices = partial(_print, otherwise=f"{recipient} has not opted out in {stage}.")
    print_answer(PreferencesAnswer(stage, opt_outs), show_choices, as_json=as_json)
    raise typer.Exit(0 if opt_outs else 1)


@app.command("opt-out")
def opt_out(recipient: Recipient, topic: Topic, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Opt a recipient out of a topic, at their request. Exit code 1: they had opted out already.

    Example: mailroom preferences opt-out ada@example.com --topic followers --stage prod
    """
    with aws_faults(stage):
        choices = OptOuts(aws_session(), stage)
        changed = choices.opt_out(recipient, topic)
        opt_outs = choices.of(recipient, topic)
    print_answer(PreferencesAnswer(stage, opt_outs), _print, as_json=as_json)
    raise typer.Exit(0 if changed else 1)


@app.command("opt-in")
def opt_in(recipient: Recipient, topic: Topic, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Opt a recipient into a topic again. Do this only if the recipient has asked for it.

    Exit code 1: they had not opted out.

    Example: mailroom preferences opt-in ada@example.com --topic followers --stage prod
    """
    with aws_faults(stage):
        old = OptOuts(aws_session(), stage).opt_in(recipient, topic)
    sentence = f"{recipient} has not opted out of {topic} in {stage}."
    if old:
        sentence = f"{old[0].recipient} gets {topic} of {stage} again."
    print_answer(PreferencesAnswer(stage, old), lambda _: print_line(sentence), as_json=as_json)
    raise typer.Exit(0 if old else 1)


def _print(answer: PreferencesAnswer, otherwise: str = "") -> None:
    for sentence in [*map(_sentence, answer.opt_outs)] or [otherwise]:
        print_line(sentence)


def _sentence(choice: OptedOut) -> str:
    since = short(choice.since)
    return f"{choice.recipient} has received no {choice.topic} since {since}: opted out {choice.how}."
