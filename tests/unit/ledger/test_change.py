"""Changes of ledger items, read from the records of the table's stream."""

from typing import Any

from mailroom.clock import iso
from mailroom.ledger.change import change_of
from tests.support.unit.fax import LINE, TOLD
from tests.support.unit.shared import NOW, image

FAX = {"id": "abc123", "event_type": "fax", "status": "sending", "to": LINE, "callback_url": TOLD}


def change_record(name: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    images = {"OldImage": old, "NewImage": new}
    return {
        "eventName": name,
        "dynamodb": {
            "SequenceNumber": "1",
            **{key: image(**value) for key, value in images.items() if value is not None},
        },
    }


def test_a_modified_ledger_item_is_read_from_its_stream_record() -> None:
    new = {**FAX, "status": "retrying", "attempts": 3, "generation": 1, "updatedAt": iso(NOW)}
    stored = change_of(change_record("MODIFY", FAX, new))
    assert stored is not None
    assert (stored.key.id, stored.status, stored.attempts, stored.generation) == ("abc123", "retrying", 3, 1)
    assert (stored.at, stored.moved, stored.reopened) == (NOW, True, True)


def test_an_inserted_ledger_item_is_read_as_a_change_of_status_and_not_as_a_reopening() -> None:
    stored = change_of(change_record("INSERT", None, {**FAX, "updatedAt": iso(NOW)}))
    assert stored is not None
    assert (stored.moved, stored.reopened, stored.attempts, stored.generation) == (True, False, 0, 0)
