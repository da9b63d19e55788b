"""The other fax provider, end to end: what changes is the stage's settings."""

from collections.abc import Iterator

import pytest

from tests.support.pipeline.items import fax_item
from tests.support.pipeline.shared import Pipeline

GOOD, TWICE = "+13105550150", "+13105550112"
ENDED_SECONDS = 60.0


@pytest.fixture(scope="module")
def ended_faxes(pipeline: Pipeline) -> Iterator[None]:
    """Two faxes, ended; the function's environment names Telnyx as the stack does."""
    telnyx = {
        "FAX_PROVIDER": "telnyx",
        "FAX_BASE_URL": f"{pipeline.running.endpoints.providers}/telnyx",
        "FAX_CONNECTION_ID": "1234567890",
    }
    with pipeline.configured(pipeline.output("SendFaxFunctionName"), **telnyx):
        items = [fax_item("telnyx-good", GOOD), fax_item("telnyx-twice", TWICE)]
        pipeline.put(*(each | {"callback_url": pipeline.receiver("ok/telnyx")} for each in items))
        pipeline.until_ended(*(each["id"] for each in items), event_type="fax", seconds=ENDED_SECONDS)
        yield


@pytest.mark.usefixtures("ended_faxes")
@pytest.mark.parametrize(
    ("id_", "statuses"),
    [
        ("telnyx-good", ["delivered"]),
        ("telnyx-twice", ["busy", "busy", "delivered"]),
    ],
)
def test_a_fax_by_telnyx_is_tried_again_while_its_line_is_busy_and_is_delivered_once(
    pipeline: Pipeline, id_: str, statuses: list[str]
) -> None:
    calls = pipeline.calls(id_)
    assert [call["status"] for call in calls] == statuses
    assert {call["provider"] for call in calls} == {"telnyx"}
    row = pipeline.ledger(id_, "fax")
    assert (row["status"], row["provider"], row["provider_id"]) == ("delivered", "telnyx", calls[-1]["id"])
