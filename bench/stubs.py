"""AWS without AWS: clients that answer at once, as methods or behind all of botocore."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from botocore.awsrequest import AWSResponse

_ANSWERS = {
    "SendEmail": b'{"MessageId": "0100019abcdef012-00000000-0000-0000-0000-000000000000-000000"}',
    "SendMessageBatch": b'{"Successful": [], "Failed": []}',
    "BatchGetItem": b'{"Responses": {}, "UnprocessedKeys": {}}',
}


class Methods:
    """A client whose methods answer at once: what is left is the caller's own work."""

    class exceptions:  # noqa: N801 - as boto3 has it
        """None is ever raised."""

        class ConditionalCheckFailedException(Exception):
            """A condition that fails."""

    def update_item(self, **_request: Any) -> dict[str, Any]:
        """The ledger's write."""
        return {}

    put_item = update_item

    def batch_get_item(self, **_request: Any) -> dict[str, Any]:
        """The suppression list: nobody is on it."""
        return {"Responses": {}}

    def send_email(self, **_request: Any) -> dict[str, str]:
        """SES accepts."""
        return {"MessageId": "0100019abcdef012"}


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_options: Any) -> Iterator[bytes]:
        yield self._content


def answer_at_once(client: Any, calls: Counter[str] | None = None) -> Any:
    """The client with the network cut off: botocore builds, signs and parses, and nothing is sent."""

    def respond(request: Any, event_name: str, **_: Any) -> AWSResponse:
        if calls is not None:
            calls[event_name.rpartition(".")[2]] += 1
        body = _ANSWERS.get(event_name.rpartition(".")[2], b"{}")
        headers: Any = {"content-type": "application/json", "x-amzn-requestid": "bench"}
        return AWSResponse(request.url, 200, headers, _Body(body))

    client.meta.events.register("before-send.*", respond)
    return client
