"""The commands `synth`, `diff`, `deploy` and `destroy`, which run the CDK's commands on a stage,
and `cdk`."""

import json
import shutil
from contextlib import suppress
from typing import Annotated

import typer

from mailroom_ops.costs.configured_lanes import read_settings
from mailroom_ops.deploying import cdk, preparing
from mailroom_ops.deploying.destroying import empty_what_goes
from mailroom_ops.deploying.judgement import losses, readable
from mailroom_ops.deploying.preparing import IdentityKind
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import WrittenStage, Yes
from mailroom_ops.shared.screen import at_a_terminal, aws_faults, errors, print_line, print_lines, refusals
from mailroom_stacks.paths import PROJECT

OUTPUT = PROJECT / "cdk.out"
OWN = "-deploy"
"""Suffix of the name of the stack with the role for CI. A person deploys that stack, because the role may
not deploy it."""
WHAT_TO_DO = (
    'Nothing was changed. If an update of Mailroom is the cause, read "Before you deploy" in its changelog. '
    "If a setting is the cause, undo its change, or first move the data: see "
    '"Taking parts out" in `mailroom docs deploy-update-go-back`.'
)
WAIT = "Wait until SES has verified the senders?"
NO_LOSS = "No table, queue, bucket or secret would be replaced or deleted."


def synth(stage: WrittenStage = "dev") -> None:
    """Write a stage's CloudFormation templates, and check them.

    The command checks settings, templates and campaigns, and writes to cdk.out.

    Example: mailroom synth --stage prod
    """
    with refusals():
        print_lines(_synthesize(stage))


def diff(stage: WrittenStage = "dev") -> None:
    """Show what a deployment would change on AWS.

    Exit code 1: a table, queue, bucket or secret would be replaced or deleted, and its data lost or left
    behind. The CDK's command line compares the templates, without a change set.

    Example: mailroom diff --stage prod
    """
    with refusals():
        _synthesize(stage)
        compared = cdk.compare(OUTPUT)
        if compared.returncode:
            print_lines(compared.stdout)
            raise typer.Exit(compared.returncode)
    print_lines("\n".join(readable(compared.stdout)))
    # The verdict goes to stdout, like the comparison: a CI log may show stderr first, and the verdict must
    # come last.
    if verdict := [*losses(compared.stdout)]:
        for loss in verdict:
            print_line(loss, "red")
        print_line(WHAT_TO_DO)
        raise typer.Exit(1)
    print_line(NO_LOSS)


def deploy(
    stage: WrittenStage = "dev",
    *,
    approval: Annotated[
        str, typer.Option(help="When to ask: broadening (if permissions are broadened), any-change, never.")
    ] = "broadening",
    import_existing: Annotated[
        bool, typer.Option(help="Import the tables and buckets that a destroyed stage left behind.")
    ] = False,
    bootstrap: Annotated[
        bool,
        typer.Option("--bootstrap", help="Run `cdk bootstrap` first, if it is needed."),
    ] = False,
    identity: Annotated[
        IdentityKind | None,
        typer.Option(help="Create missing identities of senders in SES, for the address or for its domain."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="After the deployment, wait until SES has verified the senders.")
    ] = False,
) -> None:
    """Deploy a stage, and check it.

    The credentials are those of the environment. Before an update, run `mailroom diff`.

    If the account and region lack the CDK's bootstrap, or a sender lacks an identity in SES, the command
    offers to create it. Without a terminal it creates only what an option names. At a terminal it also runs
    `mailroom doctor` after the deployment, and prints a command that sends a first message.

    Exit code 1: a stack could not be deployed. 2: no stack was deployed.

    Example: mailroom deploy --stage dev
    """
    again = f"mailroom deploy --stage {stage}{' --import-existing' if import_existing else ''}"
    with refusals():
        stacks = _stacks(stage)
    with aws_faults(stage):
        account = preparing.use_place_of(OUTPUT)
        preparing.bootstrap_if_missing(account, OUTPUT, again, unasked=bootstrap)
        ses, addresses = aws_session().client("sesv2"), preparing.addresses_at_ses(read_settings(stage))
        unverified = preparing.unverified_identities(ses, addresses, again, identity)
    # Independent stacks are deployed at the same time, which is faster. The CDK cannot do so if it has to ask
    # for approval.
    at_once = ["--concurrency", "3"] if approval == "never" else []
    importing = ["--import-existing-resources"] if import_existing else []
    options = ("--app", str(OUTPUT), "--require-approval", approval, *at_once, *importing)
    if code := cdk.run("deploy", *options, *stacks).returncode:
        print_line(f"Remove the cause, then go on with: {again}", console=errors)
        raise typer.Exit(code)
    # The stage is deployed, so a later error is printed, but is not the command's.
    with suppress(typer.Exit), aws_faults(stage):
        if unverified and (wait or (at_a_terminal() and typer.confirm(WAIT, default=False, err=True))):
            with suppress(KeyboardInterrupt):
                preparing.wait_until_verified(ses, unverified)
        if at_a_terminal():
            _check(stage)
    for address in addresses[:1] if at_a_terminal() else ():
        words = "--subject Hello --text 'It works.' --wait"
        print_line(f"Next: mailroom send mail --to {address} {words} --stage {stage}")


def _check(stage: str) -> None:
    """Print the findings of `doctor` about a stage."""
    # These imports load the packages for SES and Twilio, which the other commands do not need.
    from mailroom_ops.doctor.checks import SUBJECTS
    from mailroom_ops.doctor.doctor import show
    from mailroom_ops.doctor.run import examine

    show(examine(aws_session(), stage, SUBJECTS, quiet=False))


def destroy(stage: WrittenStage = "dev", *, yes: Yes = False) -> None:
    """Delete a stage's stacks, after a question.

    Resources that its settings retain are not deleted.

    Exit code 2: the stage is protected, or the deletion was not confirmed.

    Example: mailroom destroy --stage dev
    """
    with refusals():
        stacks = _stacks(stage)
        empty_what_goes(stage, OUTPUT, yes=yes)
        _cdk("destroy", "--app", str(OUTPUT), "--force", *stacks)


def command_line(
    arguments: Annotated[list[str], typer.Argument(help="Arguments of the CDK's command line, after --.")],
) -> None:
    """Run the CDK's command line, in the tested version.

    It runs in this folder, in the version that Mailroom was tested with.

    Example: mailroom cdk -- deploy mailroom-prod-deploy -c stage=prod
    """
    with refusals():
        _cdk(*arguments)


def _cdk(*arguments: str) -> None:
    """Run the CDK's command line. If it fails, exit with its code; it has already printed the reason."""
    if code := cdk.run(*arguments).returncode:
        raise typer.Exit(code)


def _stacks(stage: str) -> list[str]:
    """Synthesize a stage. Return the names of its stacks, except the stack with the role for CI."""
    _synthesize(stage)
    artifacts = json.loads((OUTPUT / "manifest.json").read_text())["artifacts"]
    stacks = (name for name, artifact in artifacts.items() if artifact["type"] == "aws:cloudformation:stack")
    return [stack for stack in stacks if not stack.endswith(OWN)]


def _synthesize(stage: str) -> str:
    """Run the project's app. Return its output. If the app finds an error, which it prints, exit with 2."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    process = cdk.run_app({"stage": stage}, OUTPUT)
    if process.returncode:
        raise typer.Exit(2)
    return process.stdout
