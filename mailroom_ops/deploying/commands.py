"""`mailroom synth`, `diff`, `deploy`, `bootstrap` and `destroy`: the CDK's commands on a stage."""

import json
import shutil
from typing import Annotated

import typer

from mailroom_ops.deploying import cdk
from mailroom_ops.deploying.destroying import empty_what_goes
from mailroom_ops.deploying.judgement import losses, readable
from mailroom_ops.shared.options import WrittenStage, Yes
from mailroom_ops.shared.screen import print_line, print_lines, refusals
from mailroom_stacks.paths import PROJECT

OUTPUT = PROJECT / "cdk.out"
OWN = "-deploy"
"""How the stack of the role ends that CI deploys with: that one is a person's to change, not the role's."""
WHAT_TO_DO = (
    "Nothing was changed. If an update of Mailroom does this, read what its changelog says under Before you "
    "deploy. If a setting does, take the setting back, or first move what is in "
    "there: `mailroom docs deploy-update-go-back#taking-parts-out`."
)
NO_LOSS = "No table, queue, bucket or secret would be replaced or deleted."


def synth(stage: WrittenStage = "dev") -> None:
    """Write a stage's CloudFormation templates to cdk.out, and check settings, templates and campaigns.

    Example: mailroom synth --stage prod
    """
    with refusals():
        print_lines(_synthesize(stage))


def diff(stage: WrittenStage = "dev") -> None:
    """Show what a deployment of a stage would change on AWS.

    Exit code 1: a table, queue, bucket or secret would be replaced or deleted, and what is in it would be
    lost or left behind. The CDK's command line compares the templates: no change set is made.

    Example: mailroom diff --stage prod
    """
    with refusals():
        _synthesize(stage)
        compared = cdk.compare(OUTPUT)
        if compared.returncode:
            print_lines(compared.stdout)
            raise typer.Exit(compared.returncode)
    print_lines("\n".join(readable(compared.stdout)))
    # On stdout like the comparison: a CI log may show stderr first, and the verdict has to come last.
    if verdict := [*losses(compared.stdout)]:
        for loss in verdict:
            print_line(f"{loss}", "red")
        print_line(WHAT_TO_DO)
        raise typer.Exit(1)
    print_line(NO_LOSS)


def deploy(
    stage: WrittenStage = "dev",
    *,
    approval: Annotated[
        str, typer.Option(help="What the CDK asks before: broadening (of rights), any-change or never.")
    ] = "broadening",
    import_existing: Annotated[
        bool, typer.Option(help="Take back the tables and buckets that a destroyed stage left.")
    ] = False,
) -> None:
    """Deploy a stage with the credentials of the environment. See `mailroom diff` first.

    Example: mailroom deploy --stage dev
    """
    importing = ["--import-existing-resources"] if import_existing else []
    with refusals():
        stacks = _stacks(stage)
        # The three stacks of senders may take half an hour each. The CDK cannot ask about several at once.
        at_once = ["--concurrency", "3"] if approval == "never" else []
        _cdk("deploy", "--app", str(OUTPUT), "--require-approval", approval, *at_once, *importing, *stacks)


def bootstrap(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="What `cdk bootstrap` takes, after --, such as --qualifier.")
    ] = None,
    *,
    stage: WrittenStage = "dev",
) -> None:
    """Prepare the account and region for deployments, once.

    Example: mailroom bootstrap --stage dev
    """
    with refusals():
        _cdk("bootstrap", "-c", f"stage={stage}", *(arguments or ()))


def destroy(stage: WrittenStage = "dev", *, yes: Yes = False) -> None:
    """Delete a stage's stacks, after a question. What its settings retain stays.

    Exit code 2: the stage is protected, or nobody said yes.

    Example: mailroom destroy --stage dev
    """
    with refusals():
        stacks = _stacks(stage)
        empty_what_goes(stage, OUTPUT, yes=yes)
        _cdk("destroy", "--app", str(OUTPUT), "--force", *stacks)


def command_line(
    arguments: Annotated[list[str], typer.Argument(help="What the CDK's command line takes, after --.")],
) -> None:
    """Run the CDK's command line in this folder, in the version that Mailroom was tried with.

    Example: mailroom cdk -- deploy mailroom-prod-deploy -c stage=prod
    """
    with refusals():
        _cdk(*arguments)


def _cdk(*arguments: str) -> None:
    """Run it, and end as it does where it fails: it has said why."""
    if code := cdk.run(*arguments).returncode:
        raise typer.Exit(code)


def _stacks(stage: str) -> list[str]:
    """The stacks of a stage that the CDK deploys with the bootstrap's roles, synthesized anew."""
    _synthesize(stage)
    artifacts = json.loads((OUTPUT / "manifest.json").read_text())["artifacts"]
    stacks = (name for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack")
    return [each for each in stacks if not each.endswith(OWN)]


def _synthesize(stage: str) -> str:
    """Run the project's app; what it prints. Exits with 2 where the app finds something wrong: it has said
    what."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    ended = cdk.run_app({"stage": stage}, OUTPUT)
    if ended.returncode:
        raise typer.Exit(2)
    return ended.stdout
