"""What waits for somebody: dead letters, and what the streams gave up on."""

from collections.abc import Iterator

from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, ok, skipped
from ops.stage import depth


def dead_letters(look: Look) -> Iterator[Verdict]:
    """Each dead-letter queue, whatever lies in it visible or hidden."""
    queues = {name: url for name, url in look.queues.items() if name.removesuffix(".fifo").endswith("-dlq")}
    if not queues:
        yield failed("The stage has no dead-letter queue.", look.deploy)
        return
    empty = 0
    for name, url in queues.items():
        count = depth(look.client("sqs"), url).all
        if count:
            yield failed(
                f"{count:,} dead letters wait in {name}.",
                f"mailroom dead-letters list --stage {look.stage}; see docs/operating/dlq-not-empty.md.",
            )
        else:
            empty += 1
    yield ok(f"{empty} of {len(queues)} dead-letter queues are empty.")


def given_up(look: Look) -> Iterator[Verdict]:
    """What Lambda laid into the bucket because dispatch or outcomes failed on it again and again."""
    bucket = f"{look.prefix}unprocessed-{look.account}-{look.region}"
    client = look.client("s3")
    try:
        found = client.list_objects_v2(Bucket=bucket, Prefix="aws/lambda/", MaxKeys=1).get("Contents")
    except client.exceptions.NoSuchBucket:
        yield skipped(f"There is no bucket {bucket}.")
        return
    if found:
        yield failed(
            "A stream gave up on messages: they wait to be replayed.",
            f"mailroom replay --stage {look.stage} --dry-run; see docs/operating/gave-up.md.",
        )
    else:
        yield ok("The streams gave up on nothing.")
