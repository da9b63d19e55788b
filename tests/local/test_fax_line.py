"""The simulated telephone network: what its numbers do and what it keeps for judges."""

import threading
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mailroom.channels.fax.adapter import FaxProvider
from mailroom.errors import OutcomeUnknown
from mailroom.message.outcome import Misconfigured, NotFound, Rejected, Retry, Sent
from mailroom_local.providers.fax import FaxLine, FaxOrder, SimulatedFax, document, is_pdf
from mailroom_local.providers.http import SubmitRefused
from mailroom_local.providers.inbox import InboxStore
from tests.support.local.fax import (
    NOW,
    PDF,
    SENDER,
    Bench,
    Clock,
    evidence_of,
    fax_request,
    number,
    running_fax_bench,
)
from tests.support.local.served import served

BENCH = running_fax_bench


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fax_line(clock: Clock) -> FaxLine:
    return FaxLine(InboxStore(), clock, delivered_seconds=10, busy_seconds=2, slow_seconds=100)


def send(line: FaxLine, ending: str, url: str = PDF) -> SimulatedFax:
    return line.submit(FaxOrder("signalwire", number(ending), SENDER, url))


def final_status(line: FaxLine, clock: Clock, ending: str) -> str:
    fax = send(line, ending)
    clock.now += 200
    return fax.status(clock.now)


@pytest.mark.parametrize(
    ("ending", "statuses"),
    [
        ("00", ["delivered"] * 3),
        ("10", ["busy"] * 4),
        ("11", ["no-answer"] * 3),
        ("12", ["busy", "busy", "delivered", "delivered"]),
        ("13", ["delivered"]),
        ("18", ["failed"] * 3),
        ("19", ["failed"] * 2),
        ("20", ["queued"]),
        ("21", ["failed"] * 2),
        ("23", ["failed", "delivered"]),
        ("24", ["canceled", "delivered"]),
        ("99", ["delivered"]),
    ],
)
def test_the_end_of_a_number_determines_the_outcome_of_a_simulated_fax(
    fax_line: FaxLine, clock: Clock, ending: str, statuses: list[str]
) -> None:
    assert [final_status(fax_line, clock, ending) for _ in statuses] == statuses


def test_the_simulator_delivers_faxes_to_numbers_without_a_prescribed_outcome(
    fax_line: FaxLine, clock: Clock
) -> None:
    fax = fax_line.submit(FaxOrder("telnyx", "+12025559910", SENDER, PDF))
    clock.now += 10
    assert fax.status(clock.now) == "delivered"


@pytest.mark.parametrize(
    ("ending", "reasons"),
    [
        ("15", ["invalid", "invalid"]),
        ("22", ["forbidden", "forbidden"]),
        ("16", ["throttled", None]),
        ("17", ["error", None]),
    ],
)
def test_the_fax_simulator_refuses_every_submit_to_some_numbers_and_only_the_first_to_others(
    fax_line: FaxLine, ending: str, reasons: list[str | None]
) -> None:
    for reason in reasons:
        if reason is None:
            send(fax_line, ending)
            continue
        with pytest.raises(SubmitRefused, match=reason):
            send(fax_line, ending)
    assert len(fax_line.log()) == reasons.count(None)


def test_the_simulator_counts_attempts_by_the_url_of_the_document_without_its_signature(
    fax_line: FaxLine, clock: Clock
) -> None:
    statuses = []
    for url in (f"{PDF}?X-Amz-Date=1&X-Amz-Signature=a", f"{PDF}?X-Amz-Date=2&X-Amz-Signature=b", PDF):
        fax = send(fax_line, "12", url)
        clock.now += 20
        statuses.append(fax.status(clock.now))
    other = send(fax_line, "12", "https://example.com/other.pdf")
    clock.now += 20
    assert [*statuses, other.status(clock.now)] == ["busy", "busy", "delivered", "busy"]
    assert [fax["attempt"] for fax in fax_line.log()] == [1, 2, 3, 1]


def test_a_query_parameter_other_than_a_signature_identifies_the_document_of_a_fax() -> None:
    assert document(f"{PDF}?id=1&Expires=5&Signature=x&AWSAccessKeyId=y") == document(f"{PDF}?id=1")
    assert document(f"{PDF}?id=1") != document(f"{PDF}?id=2")


def test_the_status_of_a_simulated_fax_follows_from_the_time_since_its_submit(
    fax_line: FaxLine, clock: Clock
) -> None:
    fax = send(fax_line, "00")
    seen = []
    for moment in (0, 0.5, 1, 2.9, 3, 9.9, 10, 500):
        clock.now = NOW + moment
        seen.append(fax.status(clock.now))
    assert seen == ["queued"] * 2 + ["processing"] * 2 + ["sending"] * 2 + ["delivered"] * 2


def test_the_fax_simulators_log_has_the_times_of_a_faxs_creation_start_and_end(
    fax_line: FaxLine, clock: Clock
) -> None:
    send(fax_line, "00")
    (fax,) = fax_line.log()
    assert (fax["created"], fax["started"], fax["ended"], fax["overlaps"]) == (NOW, None, None, [])
    clock.now += 10
    (fax,) = fax_line.log()
    assert (fax["started"], fax["ended"], fax["status"]) == (NOW + 3, NOW + 10, "delivered")


def test_a_fax_to_a_simulated_line_in_use_ends_as_busy_and_the_log_records_the_overlap(
    fax_line: FaxLine, clock: Clock
) -> None:
    first = send(fax_line, "00")
    clock.now += 9
    second = send(fax_line, "00", "https://example.com/2.pdf")
    elsewhere = send(fax_line, "01")
    clock.now += 10
    assert [fax.status(clock.now) for fax in (first, second, elsewhere)] == ["delivered", "busy", "delivered"]
    assert [fax["overlaps"] for fax in fax_line.log()] == [[], [first.id], []]
    assert send(fax_line, "00").overlaps == []


def test_an_overlap_of_faxes_of_two_simulated_providers_on_one_line_is_recorded(bench: Bench) -> None:
    bench.signalwire.submit(fax_request())
    bench.telnyx.submit(fax_request())
    first, second = bench.line.log()
    assert (first["provider"], second["provider"], second["overlaps"]) == (
        "signalwire",
        "telnyx",
        [first["id"]],
    )


@pytest.mark.parametrize("provider", ["signalwire", "telnyx"])
def test_a_fax_adapter_turns_refusals_and_server_errors_of_its_simulator_into_outcomes(
    bench: Bench, provider: str
) -> None:
    fax: FaxProvider = getattr(bench, provider)
    outcomes = [fax.submit(fax_request(ending)) for ending in ("15", "16", "16", "22")]
    assert [type(outcome) for outcome in outcomes] == [Rejected, Retry, Sent, Misconfigured]
    assert isinstance(outcomes[1], Retry)
    assert outcomes[1].after == 1
    with pytest.raises(OutcomeUnknown, match="500"):
        fax.submit(fax_request("17"))
    assert evidence_of(fax, fax_request("17", reference="other"), NOW) == NotFound()
    assert isinstance(fax.submit(fax_request("17")), Sent)


def test_the_inbox_of_the_simulators_has_an_accepted_fax_and_lacks_a_refused_one(fax_line: FaxLine) -> None:
    inbox = InboxStore()
    fax_line = FaxLine(inbox, Clock())
    fax = send(fax_line, "00", f"{PDF}?X-Amz-Signature=1")
    with pytest.raises(SubmitRefused):
        send(fax_line, "15")
    (kept,) = inbox.all()
    assert (kept.channel, kept.to, kept.provider_id) == ("fax", number("00"), fax.id)
    assert (kept.content["subject"], kept.content["provider"]) == ("letter.pdf", "signalwire")


def test_simultaneous_submits_to_the_simulated_line_lose_no_fax(fax_line: FaxLine) -> None:
    threads = [threading.Thread(target=send, args=(fax_line, "00", f"{PDF}?id={n}")) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(fax["overlaps"]) for fax in fax_line.log()) == list(range(20))


def test_the_fax_simulator_serves_its_log_at_the_path_faxes(bench: Bench) -> None:
    bench.signalwire.submit(fax_request())
    bench.signalwire.submit(fax_request("15"))
    assert bench.get("/faxes") == bench.line.log()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        bench.get("/faxes/1")


class _Media(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path == "/a.pdf?X-Amz-Signature=1"
        self.send_response(200 if found or self.path == "/page.html" else 404)
        self.end_headers()
        self.wfile.write(b"%PDF-1.7" if found else b"<html>")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def media() -> Iterator[str]:
    with served(ThreadingHTTPServer(("127.0.0.1", 0), _Media)) as url:
        yield url


def test_the_fax_simulator_fetches_a_pdf_from_this_machine_and_fails_a_fax_whose_pdf_is_missing(
    fax_line: FaxLine, clock: Clock, media: str
) -> None:
    good = send(fax_line, "00", f"{media}/a.pdf?X-Amz-Signature=1")
    bad = send(fax_line, "01", f"{media}/gone.pdf")
    clock.now += 20
    assert (good.media_ok, good.status(clock.now)) == (True, "delivered")
    assert (bad.media_ok, bad.course, bad.status(clock.now)) == (False, "unreachable", "failed")


def test_the_fax_simulator_recognizes_a_document_that_is_not_a_pdf_or_cannot_be_fetched(media: str) -> None:
    assert is_pdf(f"{media}/page.html") is False
    assert is_pdf("http://127.0.0.1:1/a.pdf") is False


@pytest.mark.parametrize(
    "url", [PDF, "http://example.com/a.pdf", "http://localhost/a.pdf", "https://127.0.0.1/"]
)
def test_the_fax_simulator_fetches_a_document_only_by_http_from_127_0_0_1(url: str) -> None:
    assert is_pdf(url) is None
