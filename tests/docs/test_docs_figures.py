"""Pages quote the figures of bench, proof and chaos as lab/bench records them, with date and commit."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from lab.bench.latency import DELAYS_MS
from mailroom.channels.channel import Estimate
from mailroom_stacks.settings.times import WHOLE_VCPU_MB
from tests.proof import page
from tests.proof.counting import LABELS, TWO_PROVIDERS
from tests.support import ROOT
from tests.support.docs_pages import Page, docs_pages

STAMP = re.compile(r"\d{4}-\d\d-\d\d, commit [0-9a-f]{8}\+?")
RECORDS = ("results", "chaos", "chaos_resend", "chaos_both", "proof", "proof_orders", "sent_once")
BENCH, CHAOS, RESEND, BOTH, PROOF, ORDERS, SUITE = (
    json.loads((ROOT / "lab" / "bench" / f"{name}.json").read_text()) for name in RECORDS
)
PICTURE = (ROOT / "docs" / "pictures" / "chaos.svg").read_text()


def stamp(measured: str) -> str:
    """Return the date and the commit, which pages state, from the description in a record."""
    found = STAMP.match(measured)
    assert found, measured
    return found[0]


STAMPS = {section: stamp(measured) for section, measured in BENCH["measured"].items()}


def cells(counts: Mapping[str, int]) -> str:
    return " | ".join(map(str, counts.values()))


def of_readme() -> list[str]:
    return [
        f"the highest count of {SUITE['runs']} runs ({stamp(SUITE['measured'])}).",
        *page.table(SUITE).replace("**", "").splitlines(),
        f"Of {CHAOS['messages']:,} messages, with {CHAOS['kills']} killed processes, {CHAOS['lost']} "
        f"were lost, and {CHAOS['declared']} were sent twice under the exception above "
        f"({stamp(CHAOS['measured'])}).",
    ]


def of_proof() -> list[str]:
    durable = [name for name in LABELS if not name.endswith(tuple(TWO_PROVIDERS))]
    unknown, twice = PROOF["durable_at_most_once"]["unknown"], PROOF["durable"]["sent_twice"]
    down, throttled = PROOF["mailroom_down"], PROOF["failover_loses answers"]
    assert PROOF["mailroom_throttles"] == down
    assert PROOF["failover_throttles"] == PROOF["failover_down"]
    once, again = ORDERS["asked once"], ORDERS["asked again"]
    resend, both = RESEND["by_channel"]["mail"], BOTH["by_channel"]["mail"]
    return [
        f"no retry ({stamp(PROOF['measured'])}).",
        *(f"| {LABELS[name]} | {cells(PROOF[name])} |" for name in durable),
        f"Why {twice} mails twice?",
        f"Why {unknown} unknown?",
        f"SES's events arrive ({stamp(PROOF['measured'])}).",
        f"| is out of reach; the same if it throttles | {cells(down)} |",
        f"| loses its responses | {cells(PROOF['mailroom_loses answers'])} |",
        f"| is out of reach; the same if it throttles | {cells(PROOF['failover_down'])} |",
        f"| loses its responses | {cells(throttled)} |",
        f"Why {throttled['sent_twice']} mails twice?",
        f"Why {down['stuck']} stuck?",
        f"The table counts stops ({stamp(ORDERS['measured'])}):",
        f"| no retry: one transaction with Mailroom | {cells(once['transaction'])} |",
        f"| the application retries: one transaction with Mailroom | {cells(again['transaction'])} |",
        *(
            quote
            for order, way in (("commit, then call", "commit_first"), ("call, then commit", "call_first"))
            for quote in (
                f"| SES, or Resend with a key: {order} | {cells(once[f'ses_{way}'])} |",
                f"| SES, or Resend with a key: {order} | {cells(once[f'resend_{way}'])} |",
                f"| SES: {order} | {cells(again[f'ses_{way}'])} |",
                f"| Resend with a key, in either order | {cells(again[f'resend_{way}'])} |",
            )
        ),
        f"The recorded run, `--messages {CHAOS['messages']} --kills {CHAOS['kills']}`, took "
        f"{CHAOS['seconds'] / 60:.0f} minutes on 2 cores ({stamp(CHAOS['measured'])}).",
        *(
            f"| {channel} | {row['accepted']:,} | {row['sent_twice']} | {row['declared']} | {row['lost']} | "
            f"{row['median_seconds']}, {row['worst_seconds']} |"
            for channel, row in CHAOS["by_channel"].items()
        ),
        f"Through Resend (`--messages {RESEND['messages']} --kills {RESEND['kills']}`, "
        f"{stamp(RESEND['measured'])}) {resend['accepted']:,} mails were accepted; {resend['sent_twice']} "
        f"were sent twice, and {resend['declared']} were declared.",
        f"(`--mail both --seed {BOTH['seed']}`, {stamp(BOTH['measured'])}) SES refused every request "
        f"({BOTH['troubles']['ses']['throttled']:,})",
        f"{both['accepted']:,} mails were accepted, {BOTH['mails_by_provider']['resend']} by Resend; "
        f"{both['sent_twice']} were sent twice, and {both['declared']} were declared. The median was "
        f"{both['median_seconds']} seconds, the worst {both['worst_seconds']}.",
    ]


def of_limits() -> list[str]:
    ours, theirs = (BENCH["lone_mail_ms"][sender] for sender in ("mailroom", "powertools"))
    rates = BENCH["mails_a_function_second"]
    small, middle, large = (
        BENCH["by_memory"][f"mailroom_{at_once}"][mb]
        for at_once, mb in ((1, "256"), (5, "512"), (10, "1024"))
    )
    templates = BENCH["template_operations"]
    dynamodb, ses, sqs = DELAYS_MS["aws"]
    usual = Estimate()
    slowed = usual.latency + usual.computing * (WHOLE_VCPU_MB / 256 - 1)
    return [
        f"A sender takes {slowed:.2f} s for a mail with 256 MB, and {usual.latency} s with a whole vCPU",
        f"With 1 and 256 MB, a worker sends {small['a_second']:.0f} mails a second; with 5 and 512 MB "
        f"{middle['a_second']:.0f}, with 10 and 1,024 MB {large['a_second']:.0f}.",
        f"| AWS calls for a mail, with dispatch | {BENCH['calls_per_mail']} |",
        f"four calls for each batch of ten | {STAMPS['calls']} |",
        f"| CPU for a mail, with rendering and botocore | {BENCH['cpu_us_http_mailroom'] / 1000:.2f} ms | "
        f"Powertools' sender {BENCH['cpu_us_http_powertools'] / 1000:.2f} ms; the worker alone takes "
        f"{BENCH['cpu_ratio_method']:.1f} of Powertools' time | {STAMPS['cpu']} |",
        f"| mails a second of a function, one at a time | {rates['mailroom_1']} | Powertools' sender "
        f"{rates['powertools']}, hand-written sender {rates['pattern']} (assumed response times: "
        f"DynamoDB {dynamodb} ms, SES {ses}, SQS {sqs}) | {STAMPS['latency']} |",
        f"| the same with `submits_at_once` 2, 5 and 10 | {rates['mailroom_2']:.0f}, "
        f"{rates['mailroom_5']:.0f}, {rates['mailroom_10']:.0f} | | {STAMPS['latency']} |",
        f"| CPU for a rendering, warm and cold | {BENCH['render_us_warm_1']:.0f} µs and "
        f"{BENCH['render_us_cold_1'] / 1000:.1f} ms | cold: the template is read and compiled | "
        f"{STAMPS['rendering']} |",
        f"| time of a single mail, on the emulator | {ours['p50']} ms, 99th percentile {ours['p99']} | "
        f"Powertools' sender {theirs['p50']} and {theirs['p99']} | {STAMPS['lone']} |",
        f"${small['dollars_a_million']:.2f} one at a time with 256 MB, ${middle['dollars_a_million']:.2f} "
        f"five at a time with 512 MB, ${large['dollars_a_million']:.2f} ten at a time with 1,024 MB",
        f"more than {templates['seconds']:.1f} s and {templates['megabytes']:.0f} MB "
        f"({STAMPS['templates']}).",
    ]


QUOTED = {
    "README.md": of_readme,
    "docs/explanation/proof-and-chaos.md": of_proof,
    "docs/reference/limits.md": of_limits,
}


@pytest.mark.parametrize("page", QUOTED)
def test_a_documentation_page_quotes_the_recorded_figures_dates_and_commits_of_measurements(
    page: str,
) -> None:
    text = " ".join(Page(page).text.replace("**", "").split())
    missing = [quote for quote in QUOTED[page]() if quote not in text]
    assert not missing, "\n".join(("not on the page:", *missing))


def test_each_date_with_a_commit_in_the_documentation_is_that_of_a_recorded_measurement() -> None:
    recorded = {
        *STAMPS.values(),
        *(stamp(each["measured"]) for each in (CHAOS, RESEND, BOTH, PROOF, ORDERS, SUITE)),
    }
    assert {
        found for page in docs_pages() for found in STAMP.findall(" ".join(page.text.split()))
    } <= recorded


def test_the_picture_of_the_chaos_run_contains_the_recorded_date_and_counts() -> None:
    assert f"<!-- seconds; measured {CHAOS['measured']} -->" in PICTURE
    assert (
        f"<!-- {CHAOS['messages']:,} messages, {CHAOS['kills']} processes killed: {CHAOS['lost']} lost, "
        f"{CHAOS['sent_twice']} sent twice, {CHAOS['declared']} declared -->"
    ) in PICTURE


def test_the_estimated_cpu_time_of_a_mail_is_within_the_range_that_the_bench_measured() -> None:
    measured: dict[str, Any] = BENCH["cpu_ms_a_mail"]
    # The estimate is in whole milliseconds.
    ours = [round(ms) / 1000 for sender, ms in measured.items() if sender.startswith("mailroom_")]
    assert min(ours) <= Estimate().computing <= max(ours)
