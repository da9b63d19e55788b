"""The SignalWire simulator over real HTTP, with the real adapter as its client, and its answers' shapes."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import pytest

from mailroom.channels.fax.contract import Delivered, Pending, Undelivered
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import NotFound, Sent, Unknowable
from tests.support.local.fax import (
    NOW,
    PDF,
    PROJECT,
    SENDER,
    Bench,
    evidence_of,
    fax_request,
    number,
    running_fax_bench,
)

BENCH = running_fax_bench
FAXES = f"/signalwire/api/laml/2010-04-01/Accounts/{PROJECT}/Faxes"
FORM = {"To": number("01"), "From": SENDER, "MediaUrl": PDF}


def call_signalwire(
    bench: Bench, method: str, path: str, form: dict[str, str] | None = None, user: str = PROJECT
) -> tuple[int, Any]:
    asked = urllib.request.Request(
        bench.url + path, urllib.parse.urlencode(form).encode() if form else None, method=method
    )
    asked.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:token".encode()).decode())
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def submit_fax(bench: Bench, ending: str = "01") -> str:
    outcome = bench.signalwire.submit(fax_request(ending))
    assert isinstance(outcome, Sent)
    return outcome.provider_id


def test_a_fax_passes_through_its_states_to_delivered(bench: Bench) -> None:
    fax = submit_fax(bench)
    states = []
    for _ in range(4):
        states.append(bench.signalwire.fetch(fax))
        bench.wait(3.4)
    assert states == [
        Pending("queued"),
        Pending("sending"),
        Pending("sending"),
        Delivered("1", SENDER, "2026-11-21T09:00:10Z"),
    ]
    (kept,) = bench.line.log()
    assert (kept["to"], kept["from"], kept["media_url"]) == (number("01"), SENDER, PDF)
    assert (kept["quality"], kept["ttl_minutes"], kept["store_media"]) == ("fine", 5, False)


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        ("10", Undelivered("busy", again=True)),
        ("11", Undelivered("no-answer", again=True)),
        (
            "18",
            Undelivered(
                "failed", again=True, detail="34001: The fax could not be negotiated with the receiver."
            ),
        ),
        (
            "19",
            Undelivered(
                "failed",
                again=True,
                detail="11200: HTTP retrieval failure: the media could not be fetched.",
            ),
        ),
    ],
)
def test_a_failed_fax_at_the_signalwire_simulator_has_the_reason_of_its_number(
    bench: Bench, ending: str, state: Undelivered
) -> None:
    fax = submit_fax(bench, ending)
    bench.wait(2)
    assert bench.signalwire.fetch(fax) == state


def test_the_signalwire_adapter_finds_a_fax_whose_response_was_lost(bench: Bench) -> None:
    with pytest.raises(OutcomeUnknown):
        bench.signalwire.submit(fax_request("14"))
    (fax,) = [kept["id"] for kept in bench.line.log()]
    assert evidence_of(bench.signalwire, fax_request("14"), NOW) == Sent(fax)
    bench.wait(10)
    assert isinstance(bench.signalwire.fetch(fax), Delivered)
    assert [each.provider_id for each in bench.inbox.all()] == [fax]


def test_the_signalwire_adapter_finds_a_fax_by_its_numbers_and_time_over_many_pages(bench: Bench) -> None:
    submit_fax(bench)
    bench.wait(11)
    ids = [submit_fax(bench) for _ in range(105)]
    submit_fax(bench, "02")
    for one in (ids[0], ids[104]):
        others = {*ids} - {one}
        assert evidence_of(bench.signalwire, fax_request("01"), bench.clock.now, others) == Sent(one)
        assert evidence_of(bench.signalwire, fax_request("01"), NOW, others) == Unknowable()
    assert evidence_of(bench.signalwire, fax_request("01"), bench.clock.now, ids) == NotFound()


def test_a_fax_can_be_canceled_only_while_it_is_queued(bench: Bench) -> None:
    stuck, going = submit_fax(bench, "20"), submit_fax(bench)
    bench.wait(5)
    bench.signalwire.cancel(stuck)
    assert bench.signalwire.fetch(stuck) == Undelivered("canceled", again=True)
    with pytest.raises(OutcomeUnknown, match="in-progress"):
        bench.signalwire.cancel(going)
    assert bench.signalwire.fetch(going) == Pending("sending")


def test_a_fax_has_the_documented_shape(bench: Bench) -> None:
    status, fax = call_signalwire(bench, "POST", f"{FAXES}.json", FORM)
    assert status == 201
    uri = f"{FAXES.removeprefix('/signalwire')}/{fax['sid']}"
    assert fax == {
        "account_sid": PROJECT,
        "api_version": "v1",
        "date_created": "2026-11-21T09:00:00Z",
        "date_updated": "2026-11-21T09:00:00Z",
        "direction": "outbound",
        "from": SENDER,
        "media_url": PDF,
        "media_sid": None,
        "num_pages": None,
        "price": None,
        "price_unit": None,
        "quality": "fine",
        "sid": fax["sid"],
        "status": "queued",
        "to": number("01"),
        "duration": None,
        "links": {"media": f"{uri}/Media"},
        "url": uri,
        "error_code": None,
        "error_message": None,
    }
    bench.wait(10)
    status, fax = call_signalwire(bench, "GET", f"{FAXES}/{fax['sid']}.json")
    assert (status, fax["status"], fax["num_pages"], fax["duration"]) == (200, "delivered", "1", 10)


def test_the_list_of_faxes_has_pages_with_the_newest_first_and_a_filter_by_time(bench: Bench) -> None:
    ids = [submit_fax(bench, ending) for ending in ("01", "02", "03")]
    _, listed = call_signalwire(bench, "GET", f"{FAXES}?PageSize=2")
    assert [fax["sid"] for fax in listed["faxes"]] == [ids[2], ids[1]]
    assert (listed["page"], listed["page_size"], listed["previous_page_uri"]) == (0, 2, None)
    _, last = call_signalwire(bench, "GET", "/signalwire" + listed["next_page_uri"])
    assert ([fax["sid"] for fax in last["faxes"]], last["next_page_uri"]) == ([ids[0]], None)
    _, none = call_signalwire(bench, "GET", f"{FAXES}?DateCreatedAfter=2026-11-21T09:00:00Z")
    assert none["faxes"] == []


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"To": "5550100"}, "21211"),
        ({"From": "post"}, "21212"),
        ({"MediaUrl": "a.pdf"}, "10000"),
        ({"Ttl": "4"}, "10000"),
        ({"Ttl": "301"}, "10000"),
        ({"Quality": "best"}, "10000"),
    ],
)
def test_an_invalid_request_is_refused_as_by_signalwire(
    bench: Bench, wrong: dict[str, str], code: str
) -> None:
    status, body = call_signalwire(bench, "POST", FAXES, FORM | wrong)
    assert (status, body["code"], body["status"]) == (400, code, 400)
    assert bench.line.log() == []


def test_a_request_with_wrong_or_missing_credentials_is_refused(bench: Bench) -> None:
    assert call_signalwire(bench, "POST", FAXES, FORM, user="somebody")[0] == 401
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{bench.url}{FAXES}")


def test_the_signalwire_simulator_answers_an_unknown_fax_path_or_method_with_an_error(bench: Bench) -> None:
    assert call_signalwire(bench, "GET", f"{FAXES}/1")[0] == 404
    assert call_signalwire(bench, "GET", "/signalwire/api/fax")[0] == 404
    assert call_signalwire(bench, "DELETE", f"{FAXES}/{submit_fax(bench)}")[0] == 405
