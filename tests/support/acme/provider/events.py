"""Events of Acme."""

from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event
from mailroom.providers.received import Received


def read_event(received: Received) -> list[Event]:
    reference = Reference.read(received.payload["reference"])
    time_ms = received.payload["at"]
    return [
        Event(
            key=Key(reference.id, "sms"),
            attempt=reference.attempt,
            provider="acme",
            provider_id=received.payload["id"],
            kind="delivered",
            status="delivered",
            facts={"deliveredAt": time_ms},
            recipients=(),
            at=time_ms,
        )
    ]
