"""What all senders are told, and the grants that several of them need."""

from aws_cdk import Stack

from stacks.constructs.grants import Grant
from stacks.constructs.storage import bucket_name
from stacks.settings.queues import Waits
from stacks.settings.sections import Patience
from stacks.settings.stage import Settings


def sender_environment(
    event_type: str, patience: Patience, waits: Waits, *, lease: int, pace: float, submit_seconds: int
) -> dict[str, str]:
    """A sender's numbers; `lease`, `pace` and `submit_seconds` in seconds."""
    return {
        "CHANNEL": event_type,
        "LEASE_SECONDS": str(lease),
        "PACE_SECONDS": str(pace),
        "ON_UNKNOWN": patience.on_unknown,
        "BACKOFF_SECONDS": str(waits.base),
        "BACKOFF_CAP_SECONDS": str(waits.cap),
        "MISCONFIGURED_SECONDS": str(patience.misconfigured_seconds),
        "SUBMIT_SECONDS": str(submit_seconds),
        "RECORD_SECONDS": str(patience.record_seconds),
    }


def read_payloads(stack: Stack, settings: Settings) -> list[Grant]:
    """Reading the payload bucket, itself or by URLs signed for a provider."""
    bucket = stack.format_arn(service="s3", region="", account="", resource=bucket_name(settings, "payloads"))
    return [
        # Without it a missing object answers 403, as if it were our fault, and not 404.
        Grant(["s3:ListBucket"], [bucket]),
        Grant(
            ["s3:GetObject"],
            [f"{bucket}/*"],
            wildcard="Producers choose the keys of payloads and attachments.",
        ),
    ]
