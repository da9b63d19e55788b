"""What a stage says of itself: its functions know what its settings were when it was deployed."""

from typing import Self

import boto3
from msgspec import Struct

from ops import stage as stages
from ops.deployed import function_settings


class _Dispatch(Struct, frozen=True, kw_only=True, rename="upper"):
    """What is asked of dispatch's environment. Its other settings an erasure does without, so that an older
    or a newer version of them is no hindrance."""

    ledger_ttl_seconds: float
    payload_bucket: str
    default_region: str = ""


class StageFacts(Struct, frozen=True):
    """`default_region` is where numbers without a country are dialled ("": nowhere), `ttl` how long a ledger
    item lives after its last change, in seconds."""

    stage: str
    default_region: str
    ttl: float
    payloads: str
    unprocessed: str

    @classmethod
    def of(cls, session: boto3.Session, stage: str) -> Self:
        """Ask dispatch's environment, and by whom this is asked. Raises Refused where the stage is not
        deployed, or by a version that tells something else, and ClientError."""
        told = function_settings(session.client("lambda"), stages.name(stage, "dispatch"), _Dispatch)
        account = session.client("sts").get_caller_identity()["Account"]
        return cls(
            stage,
            told.default_region,
            told.ledger_ttl_seconds,
            told.payload_bucket,
            stages.name(stage, f"unprocessed-{account}-{session.region_name}"),
        )

    def table(self, short: str) -> str:
        """A table's name."""
        return stages.name(self.stage, short)
