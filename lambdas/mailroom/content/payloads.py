"""The payload bucket: content that is larger than an item, and attachments."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from mailroom.errors import MAX_VARIABLES_BYTES, Invalid, check_variables

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

    from mailroom.message.message import Message

MAX_PAYLOAD_BYTES = 10 * 1024 * 1024
"""What a sender reads of an object."""
MAX_PAYLOAD_VALUES = 150_000
"""Texts, numbers, lists and maps together. A list is two bytes of JSON and a hundred of memory: 10 MiB of
them are more than a sender has, and would end its batch."""
OVERSIZE = "oversize"
"""Below it in the bucket lies what producers handed in that is too large for an item."""
_MAX_KEY_BYTES = 1024


def values_in(content: bytes) -> int:
    """How many values JSON text may hold, without reading it: each begins behind one of these characters, and
    texts have few of them."""
    return sum(map(content.count, (b"[", b"{", b",")))


class Payloads:
    """Reads objects of one bucket. An object that is missing or elsewhere is the message's own fault."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def ref(self, key: str) -> str:
        """How an object of the bucket is named."""
        return f"s3://{self._bucket}/{key}"

    def key(self, field: str, ref: str) -> str:
        """The key in `s3://bucket/key`. Raises Invalid for any other place."""
        prefix = f"s3://{self._bucket}/"
        if not ref.startswith(prefix) or len(ref) == len(prefix):
            raise Invalid(field, f"{ref!r:.120} is outside the payload bucket; use {prefix}key")
        key = ref[len(prefix) :]
        if len(key.encode()) > _MAX_KEY_BYTES:
            raise Invalid(
                field, f"has a key of {len(key.encode())} bytes; S3 takes 1 to {_MAX_KEY_BYTES} bytes"
            )
        return key

    def read(self, field: str, ref: str, limit: int) -> bytes:
        """An object's bytes. Raises Invalid where it does not exist or is over `limit` bytes."""
        key = self.key(field, ref)
        try:
            reply = self._client.get_object(Bucket=self._bucket, Key=key)
        except self._client.exceptions.NoSuchKey:
            raise Invalid(field, f"{ref!r:.120} does not exist; put the object before the message") from None
        with reply["Body"] as body:
            if (size := reply["ContentLength"]) > limit:
                if limit == MAX_VARIABLES_BYTES:
                    check_variables(field, size)
                raise Invalid(field, f"has {size} bytes; use at most {limit}")
            return body.read()

    def presigned(self, field: str, ref: str, seconds: int) -> str:
        """A URL by which anyone may read the object for `seconds`. Raises Invalid where there is none."""
        self.require(field, ref)
        return self._client.generate_presigned_url(
            "get_object",
            Params={"Bucket": self._bucket, "Key": self.key(field, ref)},
            ExpiresIn=seconds,
        )

    def require(self, field: str, ref: str) -> int:
        """Return the number of bytes of an object. Raises Invalid if it is missing, and botocore's errors."""
        try:
            reply = self._client.head_object(Bucket=self._bucket, Key=self.key(field, ref))
        except self._client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != HTTPStatus.NOT_FOUND:
                raise
            raise Invalid(field, f"{ref!r:.120} does not exist; put the object before the message") from None
        return reply["ContentLength"]

    def require_all(self, message: "Message") -> None:
        """Raise Invalid if an object of the message is missing, or is too large for the message's template.
        Raises botocore's errors."""
        for field, ref in message.objects:
            size = self.require(field, ref)
            if field == "payload_ref" and message.template_name is not None:
                check_variables(field, size)
