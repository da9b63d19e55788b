"""The Telnyx simulator over real HTTP, with the real adapter as its client, and its answers' shapes."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, Pending, Undelivered
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import NotFound, Sent, Unknowable
from tests.support.local.fax import (
    NOW,
    PDF,
    SENDER,
    Bench,
    evidence_of,
    fax_request,
    number,
    running_fax_bench,
)

BENCH = running_fax_bench
WISH: dict[str, Any] = {
    "to": number("01"),
    "from": SENDER,
    "media_url": PDF,
    "connection_id": "c-1",
    "client_state": "cmVm",
}


def call_telnyx(
    bench: Bench, method: str, path: str = "/faxes", wish: Any = None, key: str | None = "key"
) -> tuple[int, Any]:
    asked = urllib.request.Request(
        f"{bench.url}/telnyx/v2{path}", json.dumps(wish).encode() if wish is not None else None, method=method
    )
    if key is not None:
        asked.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def submit_fax(bench: Bench, ending: str = "01", reference: str = "ref") -> str:
    outcome = bench.telnyx.submit(fax_request(ending, reference=reference))
    assert isinstance(outcome, Sent)
    return outcome.provider_id


def test_a_fax_passes_through_its_states_to_delivered(bench: Bench) -> None:
    fax = submit_fax(bench)
    states = []
    for seconds in (1.5, 3.5, 6):
        states.append(bench.telnyx.fetch(fax))
        bench.wait(seconds)
    states.append(bench.telnyx.fetch(fax))
    assert states == [
        Pending("queued"),
        Pending("media.processed"),
        Pending("sending"),
        Delivered(1, SENDER, "2026-11-21T09:00:10Z"),
    ]
    (kept,) = bench.line.log()
    assert (kept["provider"], kept["quality"], kept["store_media"]) == ("telnyx", "high", False)


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ("10", Undelivered("busy", again=True, detail="user_busy", fault="destination")),
        ("11", Undelivered("no-answer", again=True, detail="receiver_no_answer", fault="destination")),
        (
            "18",
            Undelivered("fax_signaling_error", again=True, detail="fax_signaling_error", fault="destination"),
        ),
        (
            "19",
            Undelivered("file_download_failed", again=True, detail="file_download_failed", fault="undecided"),
        ),
        ("24", Undelivered("canceled", again=True, detail="sender_canceled")),
        (
            "21",
            Undelivered(
                "receiver_unallocated_number",
                again=False,
                detail="receiver_unallocated_number",
                fault="destination",
            ),
        ),
    ],
)
def test_a_failed_fax_at_the_telnyx_simulator_has_the_reason_of_its_number(
    bench: Bench, ending: str, state: Undelivered
) -> None:
    fax = submit_fax(bench, ending)
    bench.wait(2)
    assert bench.telnyx.fetch(fax) == state


def test_the_telnyx_adapter_finds_a_fax_whose_response_was_lost_by_its_reference(bench: Bench) -> None:
    other = fax_request("14", "https://example.com/2.pdf", reference="other")
    for lost in (fax_request("14"), other):
        with pytest.raises(OutcomeUnknown):
            bench.telnyx.submit(lost)
        bench.wait(10)
    first, second = [kept["id"] for kept in bench.line.log()]
    assert evidence_of(bench.telnyx, other, NOW) == Sent(second)
    assert evidence_of(bench.telnyx, fax_request("14"), NOW) == Sent(first)
    assert isinstance(bench.telnyx.fetch(first), Delivered)


def test_the_telnyx_adapter_finds_a_fax_by_its_reference_and_time_over_many_pages(bench: Bench) -> None:
    submit_fax(bench)
    bench.wait(11)
    ids = [submit_fax(bench) for _ in range(105)]
    submit_fax(bench, reference="other")
    for one in (ids[0], ids[104]):
        others = {*ids} - {one}
        assert evidence_of(bench.telnyx, fax_request(), bench.clock.now, others) == Sent(one)
        assert evidence_of(bench.telnyx, fax_request(), NOW, others) == Unknowable()
    assert evidence_of(bench.telnyx, fax_request(), bench.clock.now, ids) == NotFound()


def test_a_fax_can_be_canceled_until_it_has_its_final_status(bench: Bench) -> None:
    stuck, going, over = submit_fax(bench, "20"), submit_fax(bench, "01"), submit_fax(bench, "10")
    bench.wait(5)
    for fax in (stuck, going):
        bench.telnyx.cancel(fax)
        assert bench.telnyx.fetch(fax) == Undelivered("canceled", again=True, detail="sender_canceled")
    with pytest.raises(OutcomeUnknown, match="over"):
        bench.telnyx.cancel(over)


def test_a_fax_has_the_documented_shape(bench: Bench) -> None:
    status, body = call_telnyx(bench, "POST", wish=WISH)
    assert status == 202
    assert body["data"] == {
        "record_type": "fax",
        "id": body["data"]["id"],
        "connection_id": "c-1",
        "direction": "outbound",
        "from": SENDER,
        "to": number("01"),
        "media_url": PDF,
        "store_media": False,
        "stored_media_url": None,
        "preview_url": None,
        "quality": "high",
        "webhook_url": None,
        "webhook_failover_url": None,
        "status": "queued",
        "failure_reason": None,
        "client_state": "cmVm",
        "created_at": "2026-11-21T09:00:00Z",
        "updated_at": "2026-11-21T09:00:00Z",
    }
    bench.wait(10)
    _, body = call_telnyx(bench, "GET", f"/faxes/{body['data']['id']}")
    assert (body["data"]["status"], body["data"]["updated_at"]) == ("delivered", "2026-11-21T09:00:10Z")
    assert body["data"]["page_count"] == 1


def test_the_telnyx_simulator_lists_faxes_in_pages_with_the_newest_first_and_filters_by_direction(
    bench: Bench,
) -> None:
    ids = [submit_fax(bench, ending) for ending in ("01", "02", "03")]
    _, first = call_telnyx(bench, "GET", "/faxes?page[size]=2")
    assert [fax["id"] for fax in first["data"]] == [ids[2], ids[1]]
    assert first["meta"] == {"total_pages": 2, "total_results": 3, "page_number": 1, "page_size": 2}
    _, last = call_telnyx(bench, "GET", "/faxes?page[size]=2&page[number]=2")
    assert [fax["id"] for fax in last["data"]] == [ids[0]]
    assert call_telnyx(bench, "GET", "/faxes?filter[direction][eq]=inbound")[1]["data"] == []
    outbound = call_telnyx(bench, "GET", "/faxes?filter[direction][eq]=outbound")[1]
    assert outbound["meta"]["total_results"] == 3
    assert call_telnyx(bench, "GET", "/faxes?page[size]=x")[0] == 422


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"to": "5550100"}, "/to"),
        ({"from": None}, "/from"),
        ({"connection_id": ""}, "/connection_id"),
        ({"media_url": "a.pdf"}, "/media_url"),
        ({"quality": "fine"}, "/quality"),
        ({"store_media": "false"}, "/store_media"),
        ({"client_state": "not base64"}, "/client_state"),
        ({"status_callback": "https://example.com/told"}, "/status_callback"),
    ],
)
def test_the_telnyx_simulator_refuses_an_invalid_request_with_an_error_that_points_to_the_field(
    bench: Bench, wrong: dict[str, Any], pointer: str
) -> None:
    status, body = call_telnyx(bench, "POST", wish=WISH | wrong)
    assert status == 422
    (error,) = body["errors"]
    assert error["source"] == {"pointer": pointer}
    assert set(error) == {"code", "title", "detail", "source"}
    assert bench.line.log() == []


def test_a_request_to_cancel_a_fax_is_refused_if_it_has_a_body(bench: Bench) -> None:
    fax = submit_fax(bench, "20")
    assert call_telnyx(bench, "POST", f"/faxes/{fax}/actions/cancel", wish={})[0] == 422
    assert bench.telnyx.fetch(fax) == Pending("queued")
    assert call_telnyx(bench, "POST", f"/faxes/{fax}/actions/cancel") == (202, {"data": {"result": "ok"}})


def test_the_telnyx_simulator_refuses_a_request_without_an_api_key(bench: Bench) -> None:
    status, body = call_telnyx(bench, "POST", wish=WISH, key=None)
    assert (status, body["errors"][0]["code"]) == (401, "10009")


def test_the_telnyx_simulator_answers_404_for_an_unknown_fax_path_or_method(bench: Bench) -> None:
    assert call_telnyx(bench, "GET", "/faxes/1")[0] == 404
    assert call_telnyx(bench, "POST", "/faxes/1/actions/cancel")[0] == 404
    assert call_telnyx(bench, "GET", "/calls")[0] == 404
    assert call_telnyx(bench, "DELETE", f"/faxes/{submit_fax(bench)}")[0] == 404
