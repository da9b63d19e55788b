"""`dead-letters redrive`."""

from typing import Annotated

import boto3
import typer

from ops.dead_letters import tables
from ops.dead_letters.answers import Redriven
from ops.dead_letters.move_task import MAX_RATE
from ops.dead_letters.queues import DeadQueues
from ops.dead_letters.redrive import Plan, Redrive, Tell
from ops.progress import bar
from ops.screen import AsJson, Refused, Stage, Yes, aws_faults, errors, tell


def redrive(
    queue: Annotated[str, typer.Option(help="The queue whose dead letters go back, such as mail.")],
    stage: Stage = "dev",
    rate: Annotated[
        int | None, typer.Option(min=1, max=MAX_RATE, help="Letters a second at most; else SQS decides.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="A message's id, or a letter's of SQS; may be repeated.")
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be moved; move nothing.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Put a queue's dead letters back into it, once what they died of is mended.

    SQS does it by a task of its own, at a rate, which Ctrl-C can cancel; some chosen letters, and those of a
    service without such tasks, this command moves itself. What was sent already the ledger drops, and
    expires_at is kept to. Exit code 1: something is left, or the task failed, was cancelled or still runs.

    Example: mailroom dead-letters redrive --queue mail --rate 20 --stage prod
    """
    with aws_faults(stage):
        queues = DeadQueues(boto3.Session(), stage)
        redriving = Redrive(queues, stage)
        (chosen,) = queues.named(queue)
        plan = redriving.plan(chosen, only or (), rate)
        if plan.only and plan.running is not None:
            raise Refused("a task moves all letters of this queue already; wait for its end")
        if not as_json:
            tables.plan(plan)
        if dry_run or (not plan.found and not plan.only and plan.running is None):
            answer = redriving.untouched(plan, dry_run=dry_run)
        else:
            if not yes:
                typer.confirm("Put them back?", abort=True, err=True)
            answer = _run(redriving, plan, quiet=as_json)
    if as_json:
        tell(answer)
    else:
        tables.redriven(answer)
    raise typer.Exit(0 if _good(answer) else 1)


def _run(redriving: Redrive, plan: Plan, *, quiet: bool) -> Redriven:
    with bar("moved", quiet=quiet) as advance:
        try:
            return redriving.run(plan, advance)
        except KeyboardInterrupt:
            if plan.way == "one_by_one":
                raise
    return _interrupted(redriving, plan, advance)


def _interrupted(redriving: Redrive, plan: Plan, advance: Tell) -> Redriven:
    """Ctrl-C ends this process, not SQS's task: so it is asked which of the two is meant, if there is one: it
    may have come before the task was started, or after its end."""
    over = redriving.standing(plan)
    if over is not None:
        return over
    try:
        if typer.confirm("Cancel the task? What it has moved stays moved.", err=True):
            return redriving.cancel(plan, advance)
    except typer.Abort:
        errors.print("Nobody answered.")
    again = f"mailroom dead-letters redrive --queue {plan.queue.queue} --stage {plan.stage}"
    errors.print(f"The task goes on; `{again}` follows it.", soft_wrap=True)
    return redriving.leave(plan)


def _good(answer: Redriven) -> bool:
    if answer.state == "done":
        return not answer.left
    return answer.state == "nothing"
