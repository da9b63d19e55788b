"""The commands below a command."""

from functools import cache
from typing import Any, cast


@cache
def subcommands(command: Any) -> dict[str, Any]:
    """Return the subcommands by their names, or {} if the command is not a group."""
    if not hasattr(command, "commands"):
        return {}
    context = cast(Any, None)  # none of ours asks for it
    return {name: command.get_command(context, name) for name in command.list_commands(context)}
