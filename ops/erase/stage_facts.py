"""What a stage says of itself: its functions know what its settings were when it was deployed."""

from typing import Self

import boto3
from msgspec import Struct


class StageFacts(Struct, frozen=True):
    """`region` is where numbers without a country are dialled ("": nowhere), `ttl` how long a ledger item
    lives after its last change, in seconds."""

    stage: str
    region: str
    ttl: int
    payloads: str
    unprocessed: str

    @classmethod
    def of(cls, session: boto3.Session, stage: str) -> Self:
        """Ask dispatch's environment, and by whom this is asked. Raises ClientError."""
        reply = session.client("lambda").get_function_configuration(FunctionName=f"mailroom-{stage}-dispatch")
        told = reply["Environment"]["Variables"]
        account = session.client("sts").get_caller_identity()["Account"]
        return cls(
            stage,
            told.get("DEFAULT_REGION", ""),
            int(told["LEDGER_TTL_SECONDS"]),
            told["PAYLOAD_BUCKET"],
            f"mailroom-{stage}-unprocessed-{account}-{session.region_name}",
        )

    def table(self, short: str) -> str:
        """A table's name."""
        return f"mailroom-{self.stage}-{short}"
