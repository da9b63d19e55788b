"""The command `init`: asks about the settings of a stage, and writes its section in cdk.json."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from mailroom.channels.contracts import CONTRACTS
from mailroom.providers import providers_of
from mailroom_ops.setup.cdk_json import CdkJson
from mailroom_ops.setup.stage_section import channels_of, get, in_order, new_section, put, set_channels
from mailroom_ops.shared.screen import Refused, at_a_terminal, errors, print_line, print_lines, refusals
from mailroom_stacks import paths
from mailroom_stacks.settings.concurrency import functions_at_once
from mailroom_stacks.settings.load import load, load_campaigns
from mailroom_stacks.settings.sentences import SettingsError

IDLE = {"minimal": 4.97, "full": 14.17}
"""Price in US dollars of a month of a new stage of mail without messages, by level of monitoring."""
PRICES = (
    "A stage of mail alone costs {minimal} US dollars a month without messages (us-east-1, November 2026). "
    "With --set monitoring.level=full it costs {full} and has all alarms and metrics and a dashboard: use it "
    "for stages that people depend on. mailroom cost computes the price of yours."
)
AT_ONCE = """
It may run {number:,} functions at a time, besides those of its HTTP API. A new AWS account may allow only 10:
  aws lambda get-account-settings --query AccountLimit.ConcurrentExecutions
With a lower quota, messages wait longer. Request a higher one, and until then enter the quota:
  mailroom init --stage {stage} --set monitoring.concurrency_quota=10 --set feedback.maximum_concurrency=2 \\
    --set webhook.maximum_concurrency=2"""
NEXT = """
Next, with AWS credentials and AWS_REGION in the environment:
  mailroom deploy --stage {stage}   # offers what the account lacks, deploys, and checks the stage
When the first deployment has worked, protect the tables, and deploy again:
  mailroom init --stage {stage} --set deployment.deletion_protection=true"""


def _json(text: str) -> Any:
    """Parse JSON. A text that is not JSON is returned unchanged: the settings' models reject wrong types."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _list(text: str) -> list[Any]:
    value = _json(text)
    return value if isinstance(value, list) else [part.strip() for part in text.split(",") if part.strip()]


class Question(NamedTuple):
    """Question about a setting."""

    channel: str
    """Channel that needs the setting; empty if every stage needs it."""
    key: str
    """Key of the setting in the stage's section."""
    words: str
    parse: Callable[[str], Any] = str.strip
    default: str | None = None
    """Default answer; empty if the setting may stay unset. None if an answer is required."""


QUESTIONS = (
    Question("mail", "channels.mail.messages_per_second", "Mails per second that SES allows you", _json),
    Question("", "mail.senders", "The sender address of mails; separate several by commas", _list),
    Question("", "monitoring.emails", "The address that gets alarms (empty: none)", _list, ""),
    Question("sms", "sms.provider", f"The provider of SMS ({', '.join(providers_of('sms'))})"),
    Question("sms", "sms.sender", "The sender number of SMS, such as +12025550123", default=""),
    Question(
        "push",
        "push.platform_applications",
        'Platform applications of SNS, such as {"ios": "arn:aws:sns:…"}',
        _json,
        "",
    ),
    Question("fax", "fax.provider", f"The provider of faxes ({', '.join(providers_of('fax'))})"),
    Question("fax", "fax.senders", "The sender numbers of faxes, such as +12025550123", _list),
    Question("fax", "fax.space", "The space at SignalWire: SPACE.signalwire.com", default=""),
    Question("fax", "fax.connection_id", "Telnyx's id of the fax application", default=""),
)
_PARSERS = {question.key: question.parse for question in QUESTIONS}


def init(
    stage: Annotated[
        str | None,
        typer.Option(
            help="The stage: a lower-case letter, then up to 11 letters or digits.", show_default="asked"
        ),
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(
            help=f"The channels, separated by commas: {', '.join(CONTRACTS)}. Every stage sends webhooks.",
            show_default="mail, or those of the stage",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the stage, such as mail.senders=ada@example.com, for which the command then "
            "does not ask. VALUE is JSON or text. You may repeat it.",
        ),
    ] = None,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask no questions. Without a terminal, none are asked anyway.")
    ] = False,
) -> None:
    """Write the settings of a stage into cdk.json.

    The command prints the next steps.

    The command asks for settings that the chosen channels need, unless --set has them. It writes only
    settings that synth accepts, and keeps the rest of cdk.json. To change a stage, run it again: the present
    settings are the defaults. It makes no request to AWS.

    Exit code 2: an answer is missing or invalid, and nothing is written.

    Example: mailroom init --stage dev --channels mail
    """
    with refusals():
        file = CdkJson(paths.CDK_JSON)
        asking = at_a_terminal() and not yes
        if asking:
            print_line(PRICES.format(**IDLE), console=errors)
        name = stage if stage is not None or not asking else typer.prompt("The stage", "dev", err=True)
        if name is None:
            raise Refused("--stage: is missing; name the stage, such as --stage dev.")
        former = file.stages.get(name)
        if former:
            _check(name, former)
        section = copy.deepcopy(former) or new_section(name)
        _choose_channels(section, channels, asking=asking)
        answers = dict(map(_assignment, assignments or ()))
        for key, text in answers.items():
            put(section, key, _PARSERS.get(key, _json)(text))
        questions = _open_questions(section, answers)
        if asking:
            _ask(section, questions)
        numbers = _check(name, section)
        if section != former:
            file.write(name, section if former else in_order(section))
    at_once = AT_ONCE.format(stage=name, number=sum(numbers.values()))
    assumed = "" if asking or former else _assumed(section, questions, channels)
    print_lines(f"Stage {name} is in cdk.json.{assumed}{at_once}{NEXT.format(stage=name)}")


def _check(stage: str, section: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many times each function may run at a time. Raise Refused with synth's error message if the
    section is invalid."""
    try:
        settings = load({stage: section}, stage)
        return functions_at_once(settings, load_campaigns(settings))
    except SettingsError as error:
        raise Refused(str(error)) from None


def _choose_channels(section: dict[str, Any], channels: str | None, *, asking: bool) -> None:
    usual = ", ".join(channels_of(section)) or "mail"
    if channels is None:
        words = f"The channels ({', '.join(CONTRACTS)})"
        channels = typer.prompt(words, usual, err=True) if asking else usual
    set_channels(section, _list(channels))


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise Refused(f"--set: {text!r:.60} has no value; write KEY=VALUE, such as sms.provider=twilio.")
    return key, value


def _open_questions(section: Mapping[str, Any], answers: Mapping[str, str]) -> list[Question]:
    """Return the questions about the channels of a section that are not answered."""
    channels = {"", *section["channels"], *({"fax"} & section.keys())}
    return [
        question for question in QUESTIONS if question.channel in channels and question.key not in answers
    ]


def _ask(section: dict[str, Any], questions: Sequence[Question]) -> None:
    """Ask each question once. The current value is the default."""
    for question in questions:
        if not _of_other(section, question):
            current = get(section, question.key)
            # An address of a reserved domain is a placeholder, not an answer.
            default = question.default if current is None or "@example." in str(current) else _shown(current)
            text = typer.prompt(question.words, default, err=True)
            if text != default:
                put(section, question.key, question.parse(text))


def _assumed(section: Mapping[str, Any], questions: Sequence[Question], channels: str | None) -> str:
    """Return a sentence about the settings of a new stage that would have been asked at a terminal."""
    values = {} if channels else {"channels": ", ".join(channels_of(section))}
    for question in questions:
        if not _of_other(section, question):
            current = get(section, question.key)
            values[question.key] = "not set" if current in (None, [], "") else _shown(current)
    listing = "; ".join(f"{key}: {value}" for key, value in values.items())
    return f" Assumed, as nothing was asked: {listing}. Change them with --set." if listing else ""


def _of_other(section: Mapping[str, Any], question: Question) -> bool:
    """Return whether a question is about a setting that only another provider needs."""
    rows, setting = providers_of(question.channel), question.key.partition(".")[2]
    provider = rows.get(get(section, f"{question.channel}.provider"))
    of_providers = {name for row in rows.values() for name in row.one_of}
    return provider is not None and setting in of_providers.difference(provider.one_of)


def _shown(value: Any) -> str:
    """Return a value in the form in which people type it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
