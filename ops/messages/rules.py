"""What a stage asks of an item, as it is deployed: the rules by which its own entrance judges.

They are read from the function of the HTTP API, and not from cdk.json: a stage may have been deployed from
another version than the one that lies here.
"""

from typing import TYPE_CHECKING

import boto3
from msgspec import Struct

from mailroom.channels.contracts import contracts_of
from mailroom.content.payloads import Payloads
from mailroom.dispatch.validator import Validator
from mailroom.http.url_policy import UrlPolicy
from mailroom.mailbox.oversize import Oversize
from mailroom.mailbox.writer import MailboxWriter
from ops.deployed import function_settings
from ops.stage import name

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

_UNDELAYED = ("fax",)
"""Its queue is FIFO and delays no message: dispatch keeps an attribute of its items to itself."""


class Rules(Struct, frozen=True, kw_only=True, rename="upper"):
    """What of the function's environment an item is judged and put by. Times in seconds; 0 is for ever."""

    mailbox_table: str
    payload_bucket: str
    lanes: dict[str, list[str]]
    callback_schemes: list[str]
    callback_ports: list[int]
    default_region: str = ""
    mailbox_ttl_seconds: float = 0
    payload_ttl_seconds: float = 0

    def validator(self, s3: "S3Client") -> Validator:
        """Judges items as the stage does; it asks nothing of AWS."""
        return Validator(
            contracts_of(self.default_region),
            self.lanes,
            payloads=Payloads(s3, self.payload_bucket),
            callbacks=UrlPolicy(schemes=self.callback_schemes, ports=self.callback_ports),
            waiting=[each for each in _UNDELAYED if each in self.lanes],
        )

    def writer(self, dynamodb: "DynamoDBClient", s3: "S3Client") -> MailboxWriter:
        """Puts items as the stage's entrance does; what is over 400 KB goes into the payload bucket."""
        oversize = Oversize(s3, lambda: self.payload_bucket, self.payload_ttl_seconds or None)
        return MailboxWriter(dynamodb, self.mailbox_table, self.mailbox_ttl_seconds, oversize=oversize)


def rules_of(session: boto3.Session, stage: str) -> Rules:
    """The rules of a deployed stage. Raises Refused where there is none, and botocore's errors."""
    functions = session.client("lambda")
    return function_settings(functions, name(stage, "messages-api"), Rules)
