"""`init`: the section of a stage in cdk.json, asked for and written."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from mailroom.channels.contracts import CONTRACTS
from mailroom_ops.options import AsJson
from mailroom_ops.screen import (
    Refused,
    at_a_terminal,
    confirm,
    errors,
    plain,
    print_answer,
    print_line,
    refusals,
    screen,
)

if TYPE_CHECKING:
    from mailroom_ops.init.answer import Initialized, Step
    from mailroom_ops.init.draft import StageDraft

T = TypeVar("T")


class Question(NamedTuple):
    """What is asked about every stage: `usual` is a new stage's answer (None: there is no usual one)."""

    option: str
    key: str
    words: str
    usual: str | None = None


RATE = Question(
    "--rate", "channels.mail.messages_per_second", "Mails a second that SES lets the account send", "1"
)
SENDER = Question("--sender", "mail.senders", "The address that mails come from")
ALARMS = Question("--alarms", "monitoring.emails", "The address that hears of alarms (nothing: nobody)", "")
QUOTA = Question(
    "--lambda-quota",
    "monitoring.concurrency_quota",
    "How many functions Lambda lets the account run at once (nothing: 1,000; a new account may have 10)",
    "",
)
_OPTIONS = {each.key: each.option for each in (RATE, SENDER, ALARMS, QUOTA)}


def init(
    stage: Annotated[
        str | None,
        typer.Option(
            help="The stage: a lower-case letter and up to 11 letters or digits.", show_default="asked"
        ),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(
            help=f"The channels, separated by commas: {', '.join(CONTRACTS)}. Every stage sends webhooks.",
            show_default="mail, or what the stage has",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Mails a second that SES lets the account send.",
            metavar="NUMBER",
            show_default="1, the sandbox",
        ),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option(help="The address that mails come from; several with commas.", show_default="asked"),
    ] = None,
    alarms: Annotated[
        str | None,
        typer.Option(
            help='The address that hears of alarms; several with commas, "" is nobody.', show_default="asked"
        ),
    ] = None,
    lambda_quota: Annotated[
        str | None,
        typer.Option(
            help="Functions that Lambda lets the account run at once; a new account may have 10.",
            metavar="NUMBER",
            show_default="1000",
        ),
    ] = None,
    further: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A further setting below the stage, such as sms.provider=twilio. You may repeat it.",
        ),
    ] = None,
    *,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Ask nothing, and write. Without a terminal the command does so anyway."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the settings of a stage into cdk.json, and say what to verify, what will be deployed and what an
    idle month costs.

    The command asks for what no option says, and for what the chosen channels need. It shows what changes in
    cdk.json before it writes. Without a terminal it asks nothing. Run it again to change a stage: it changes
    what you answer, and keeps the rest. It asks AWS nothing.

    Exit code 1: you did not let it write. 2: an answer is missing or wrong.

    Example: mailroom init --stage dev --channels mail
    """
    # Settings are pydantic's, which the other commands need not wait for.
    from mailroom_ops.init.answer import initialized
    from mailroom_ops.init.cdk_json import CdkJson
    from mailroom_stacks.paths import CDK_JSON

    with refusals():
        file = CdkJson(CDK_JSON)
        asking = at_a_terminal() and not yes
        draft = _draft(file.stages, stage, asking=asking)
        _choose_channels(draft, channels, asking=asking)
        if "mail" in draft.channels:
            _answer(draft, RATE, rate, asking=asking)
        elif rate is not None:
            raise Refused("--rate: is the rate of mails, and the stage sends none; leave it out.")
        _answer(draft, SENDER, sender, asking=asking)
        _answer(draft, ALARMS, alarms, asking=asking)
        _answer(draft, QUOTA, lambda_quota, asking=asking)
        for each in further or ():
            _set(draft, each)
        _complete(draft, asking=asking)
        text = file.with_stage(draft.stage, draft.section)
        changes = [*file.compared(text)]
        if changes:
            for line in changes:
                print_line(line, {"+": "green", "-": "red"}.get(line[0], ""), errors)
            confirm("Write this?", yes=not asking)
            file.write(text)
        answer = initialized(draft, written=bool(changes))
    print_answer(answer, _show, as_json=as_json)


def _draft(stages: Mapping[str, Mapping[str, Any]], name: str | None, *, asking: bool) -> "StageDraft":
    from mailroom_ops.init.draft import StageDraft

    def take(name: str) -> StageDraft:
        draft = StageDraft(name, stages.get(name))
        _check(draft, "stage")
        return draft

    if name is None and not asking:
        raise Refused("--stage: is missing; name the stage, such as --stage dev.")
    return _taken("--stage", name, f"The stage ({', '.join(stages) or 'there is none yet'})", "dev", take)


def _choose_channels(draft: "StageDraft", names: str | None, *, asking: bool) -> None:
    """Give the stage its channels: those of the option, else those of the terminal, else its own."""

    def take(names: str) -> None:
        draft.choose_channels([each.strip() for each in names.split(",") if each.strip()])

    usual = ", ".join(draft.channels) or "mail"
    given = usual if names is None and not asking else names
    _taken("--channels", given, f"Its channels ({', '.join(CONTRACTS)})", usual, take)


def _answer(draft: "StageDraft", question: Question, given: str | None, *, asking: bool) -> None:
    """Put an answer: the option's, else the terminal's, until it is right; else the stage keeps its own."""

    def take(text: str) -> None:
        if text != (now or ""):
            draft.put(question.key, text)
            _check(draft, question.key)

    now = draft.typed(question.key)
    if given is None and not asking:
        if question is ALARMS and draft.new:
            raise Refused('--alarms: is missing; give the address that hears of alarms, or "" for nobody.')
        given = (question.usual if now is None else now) or ""
    _taken(question.option, given, question.words, question.usual if now is None else now, take)


def _check(draft: "StageDraft", key: str) -> None:
    """Raise Refused where synth would refuse what was put there."""
    fault = draft.fault()
    if fault is not None and fault.key == key:
        raise Refused(f"{key}: {fault.sentence}")


def _taken(option: str, given: str | None, words: str, usual: str | None, take: Callable[[str], T]) -> T:
    """What `take` makes of the option's text; without one, of what is typed, until `take` refuses nothing."""
    while True:
        text = given if given is not None else typer.prompt(words, default=usual, err=True)
        try:
            return take(text)
        except Refused as refused:
            if given is not None:
                raise Refused(f"{option}: {refused}") from None
            print_line(f"{refused}", "red", errors)


def _set(draft: "StageDraft", text: str) -> None:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise Refused(f"--set: {text!r:.60} has no value; write KEY=VALUE, such as sms.provider=twilio.")
    draft.put(key, value)


def _complete(draft: "StageDraft", *, asking: bool) -> None:
    """Ask for what is missing or wrong, until synth takes all of it. A rule may span several settings, so any
    of them may be the answer."""
    from mailroom_ops.init.draft import asked_by

    while fault := draft.fault():
        setting, said = asked_by(fault.key), f"{fault.key}: {fault.sentence}"
        if setting is None or not asking:
            raise Refused(f"{_OPTIONS.get(fault.key, f'--set {fault.key}=…')}: {said}")
        print_line(said, "red", errors)
        hints = [*setting.choices]
        if not fault.sentence.startswith("is missing"):
            hints.append("or KEY=VALUE of another setting")
        text = typer.prompt(f"{fault.key} ({', '.join(hints)})" if hints else fault.key, err=True)
        key, _, value = text.partition("=")
        draft.put(*((key, value) if asked_by(key) else (fault.key, text)))


def _show(answer: "Initialized") -> None:
    done = "is written to" if answer.written else "is already in"
    print_line(f"Stage {answer.stage} {done} cdk.json.", "bold")
    for note in answer.notes:
        print_line(note, "yellow")
    print_line("Verify:", "bold")
    _show_steps(answer.verify)
    print_line("What will be deployed:", "bold")
    print_line(f"  {', '.join(answer.stacks)}")
    print_line(
        f"  An idle month costs {answer.idle_dollars:.2f} US dollars (mailroom cost --stage {answer.stage} "
        "says for what)."
    )
    print_line("Then:", "bold")
    _show_steps(answer.next)


def _show_steps(steps: "Sequence[Step]") -> None:
    for step in steps:
        print_line(f"- {step.why}")
        screen.print(plain(f"    {step.how}"), style="cyan", soft_wrap=True)
