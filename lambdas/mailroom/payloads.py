"""The payload bucket: content that is larger than an item, and attachments."""

from typing import TYPE_CHECKING, Any

import msgspec

from mailroom.errors import Invalid
from mailroom.message import Message

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MAX_PAYLOAD_BYTES = 10 * 1024 * 1024
_MAX_KEY_BYTES = 1024


class Payloads:
    """Reads objects of one bucket. An object that is missing or elsewhere is the message's own fault."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

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
            if reply["ContentLength"] > limit:
                raise Invalid(field, f"has {reply['ContentLength']} bytes; use at most {limit}")
            return body.read()

    def expand(self, message: Message) -> dict[str, Any]:
        """The item with the attributes of its payload, the item's own first. Raises Invalid."""
        item = dict(message.variables)
        if message.payload_ref is None:
            return item
        content = self.read("payload_ref", message.payload_ref, MAX_PAYLOAD_BYTES)
        try:
            payload = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Invalid("payload_ref", f"is not a JSON object ({error}); put one there") from None
        del item["payload_ref"]
        return {**payload, **item}
