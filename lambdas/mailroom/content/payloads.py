"""Access to the payload bucket, with content that is too large for an item, and attachments."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from mailroom.errors import Invalid, check_variables

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

    from mailroom.message.message import Message

MAX_PAYLOAD_BYTES = 10 * 1024 * 1024
"""Maximum number of bytes of a payload."""
MAX_PAYLOAD_VALUES = 150_000
"""Maximum number of texts, numbers, lists and maps in a payload. An empty list has two bytes in JSON but a
hundred in memory, so a payload of 10 MiB could use up the memory of a sender function."""
OVERSIZE = "oversize"
"""Prefix of the keys of objects with the content of messages that are too large for an item."""
CONSOLE = "console-csv"
"""Prefix of the keys of files that people download in the console behind a sign-in, which last for a day."""
_MAX_KEY_BYTES = 1024


def values_in(content: bytes) -> int:
    """Return the maximum number of values in a JSON text: the number of the characters `[`, `{` and `,`. Each
    value except the outermost follows one of them. Strings may contain them too, so the result may be too
    high."""
    return sum(map(content.count, (b"[", b"{", b",")))


class Payloads:
    """Reads objects of one bucket. If an object is missing or in another bucket, the message is invalid."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def ref(self, key: str) -> str:
        """Return the reference to an object of the bucket: s3://bucket/key."""
        return f"s3://{self._bucket}/{key}"

    def key(self, field: str, ref: str) -> str:
        """Return the key in `s3://bucket/key`. Raises Invalid for the attribute `field` if the reference is
        invalid or to another bucket."""
        prefix = f"s3://{self._bucket}/"
        if not ref.startswith(prefix) or len(ref) == len(prefix):
            raise Invalid(field, f"{ref!r:.120} is outside the payload bucket; use {prefix}key")
        key = ref[len(prefix) :]
        if len(key.encode()) > _MAX_KEY_BYTES:
            raise Invalid(
                field, f"has a key of {len(key.encode())} bytes; S3 allows 1 to {_MAX_KEY_BYTES} bytes"
            )
        return key

    def read(self, field: str, ref: str, limit: int) -> bytes:
        """Return the bytes of an object. Raises Invalid if it is missing, or has over `limit` bytes."""
        key = self.key(field, ref)
        try:
            reply = self._client.get_object(Bucket=self._bucket, Key=key)
        except self._client.exceptions.NoSuchKey:
            raise Invalid(field, f"{ref!r:.120} does not exist; put the object before the message") from None
        with reply["Body"] as body:
            if (size := reply["ContentLength"]) > limit:
                raise Invalid(field, f"has {size} bytes; use at most {limit}")
            return body.read()

    def presigned(self, field: str, ref: str, seconds: int) -> str:
        """Return a URL by which anyone may read an object for `seconds`. Raises Invalid if the object is
        missing or in another bucket."""
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
