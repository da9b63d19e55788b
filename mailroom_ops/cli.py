"""The commands of `mailroom`, in the order in which `--help` shows them."""

import ast
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Final, cast

import typer
from typer._click import Command, Context, HelpFormatter
from typer.core import TyperCommand, TyperGroup, TyperOption

from mailroom.telemetry import logger, quiet
from mailroom_ops.shared.terminal import LogStream

# The commands are named as text, so that only the module of the called command is imported. No other file of
# mailroom_ops names mailroom_local, because mailroom_local imports mailroom_ops.
Group = tuple[str, dict[str, str]]
"""Help text of a group, and its commands, each with the module and name of its function."""
MESSAGES: Group = (
    "List, show, resend, correct, cancel and settle messages.",
    {
        "list": "mailroom_ops.messages.list_command:list_",
        "show": "mailroom_ops.messages.status:show",
        "resend": "mailroom_ops.repair.resend:resend",
        "correct": "mailroom_ops.repair.correct:correct",
        "cancel": "mailroom_ops.messages.cancel:cancel",
        "settle": "mailroom_ops.repair.settle:settle",
        "dead-letters": "mailroom_ops.repair.dead_letters:dead_letters",
        "import": "mailroom_ops.campaigns.import_command:import_",
    },
)
TEMPLATE: Group = (
    "Render templates, publish versions, and roll back.",
    {
        "render": "mailroom_ops.templates.render:render",
        "put": "mailroom_ops.templates.template:put",
        "list": "mailroom_ops.templates.template:list_",
        "show": "mailroom_ops.templates.template:show",
        "rollback": "mailroom_ops.templates.template:rollback",
    },
)
PANELS: dict[str, dict[str, str | Group]] = {
    "Every day": {
        "send": "mailroom_ops.messages.send:send",
        "messages": MESSAGES,
        "people": "mailroom_ops.people.commands:app",
        "campaign": "mailroom_ops.campaigns.commands:app",
        "template": TEMPLATE,
        "lane": "mailroom_ops.messages.lanes:app",
        "activity": "mailroom_ops.messages.deeds:deeds",
        "console": "mailroom_ops.console.console:console",
        "doctor": "mailroom_ops.doctor.doctor:doctor",
    },
    "Stages on AWS": {
        "init": "mailroom_ops.setup.init:init",
        "cost": "mailroom_ops.costs.cost:cost",
        "synth": "mailroom_ops.deploying.commands:synth",
        "diff": "mailroom_ops.deploying.commands:diff",
        "deploy": "mailroom_ops.deploying.commands:deploy",
        "rehearse": "mailroom_ops.deploying.rehearse:rehearse",
        "restore": "mailroom_ops.repair.restore:restore",
        "destroy": "mailroom_ops.deploying.commands:destroy",
        "policy": "mailroom_ops.deploying.policy:policy",
        "cdk": "mailroom_ops.deploying.commands:command_line",
    },
    "On this machine": {
        "up": "mailroom_local.commands:up",
        "inbox": "mailroom_local.commands:inbox",
        "down": "mailroom_local.commands:down",
        "docs": "mailroom_ops.setup.docs:docs",
        "schema": "mailroom_ops.setup.schema:schema",
        "webhook-key": "mailroom_ops.setup.webhook_key:webhook_key",
        "update": "mailroom_ops.setup.update:update",
    },
}
"""Commands by their panel in `--help`, each with the module and name of its function, or as a group."""


class Commands(TyperGroup):
    """Group that imports a command's module only when the command runs. `--help` imports no command."""

    places: Mapping[str, Mapping[str, str | Group]] = PANELS
    _listing = False

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the list of the commands, with the first sentence of each docstring."""
        # Typer adds both options, in more lines than a screen has for them.
        for option in (option for option in self.params if isinstance(option, TyperOption)):
            option.hidden = option.name == "show_completion"
            if option.name == "install_completion":
                option.help = "Install completion for this shell."
        self._listing = True
        super().format_help(ctx, formatter)
        self._listing = False

    def __init__(self, **options: Any) -> None:
        # Typer lists these names, and suggests the most similar one for an unknown name.
        names = (name for commands in self.places.values() for name in commands)
        super().__init__(**{**options, "commands": {name: TyperCommand(name) for name in names}})

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002
        """Return the command with a name, or None if it does not exist."""
        for panel, commands in self.places.items():
            if cmd_name in commands:
                make = _listed if self._listing else _command
                return make(cmd_name, panel, commands[cmd_name])
        return None


def _group(name: str, panel: str, group: Group) -> Command:
    """Return a group, which imports a command's module only when the command runs."""
    text, commands = group
    verbs = type("Verbs", (Commands,), {"places": {"Commands": commands}})
    options = {"rich_help_panel": panel, "rich_markup_mode": MARKUP}
    return cast(Command, verbs(name=name, help=text, no_args_is_help=True, **options))


def _listed(name: str, panel: str, place: str | Group) -> Command:
    """Return a command for the list of commands. Its docstring is read from the source file, because
    importing all modules would take a second."""
    if not isinstance(place, str):
        return _group(name, panel, place)
    module, _, attribute = place.partition(":")
    source = Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py")
    text = None
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            text = ast.get_docstring(node)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == attribute == "app":
            keywords = {keyword.arg: keyword.value for keyword in cast(ast.Call, node.value).keywords}
            text = ast.literal_eval(keywords["help"])
    return TyperCommand(name, help=text, rich_help_panel=panel)


def _command(name: str, panel: str, place: str | Group) -> Command:
    if not isinstance(place, str):
        return _group(name, panel, place)
    group = function = resolve_name(place)
    if not isinstance(group, typer.Typer):
        group = typer.Typer(**OPTIONS, add_completion=False)
        group.command(name)(function)
    group.rich_markup_mode = MARKUP  # a sub-group does not inherit the mode
    command = typer.main.get_command(group)
    command.name, command.rich_help_panel = name, panel  # type: ignore[attr-defined] # as Typer sets it
    return command


MARKUP: Final = "markdown"
"""Markup of help texts, whose paragraphs then fill the width of the terminal."""
OPTIONS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": MARKUP,
}
app = typer.Typer(cls=Commands, no_args_is_help=True, **OPTIONS)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"mailroom {version('mailroom-cdk')}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Operate a Mailroom stage. Set AWS credentials and region (AWS_REGION) in the environment, as for the
    AWS CLI."""
    # The CDK and the AWS CLI prefer AWS_REGION; botocore reads AWS_DEFAULT_REGION only.
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region
    context.with_resource(_log_on_stderr())
    context.with_resource(quiet())


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Write the library's logs about failed calls to stderr, apart from the command's output."""
    handlers = [handler for handler in logger.handlers if isinstance(handler, logging.StreamHandler)]
    streams = [handler.stream for handler in handlers]
    for handler in handlers:
        handler.setStream(LogStream())
    try:
        yield
    finally:
        for handler, stream in zip(handlers, streams, strict=True):
            handler.setStream(stream)
