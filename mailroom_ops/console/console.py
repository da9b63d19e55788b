"""The command `console`: its options."""

from typing import Annotated

import typer

from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import Stage
from mailroom_ops.shared.screen import aws_faults


def console(
    stage: Stage = "dev",
    *,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0: any free port.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser; only print the URL.")
    ] = False,
) -> None:
    """Open a stage in the browser.

    The console shows messages, queues, failures, dead letters and campaigns. Ends with Ctrl-C.

    The console listens on this machine only, for browsers that open the printed URL, which contains a token.
    It uses the credentials of the environment, and has their permissions. Before an action, it shows the
    effect and asks for a confirmation.

    Exit code 2: the stage does not exist, or the port is in use.

    Example: mailroom console --stage local
    """
    # This import loads the web framework, which other commands do not need.
    from mailroom_ops.console.server import serve

    with aws_faults(stage):
        serve(aws_session(), stage, port, browser=not no_browser)
