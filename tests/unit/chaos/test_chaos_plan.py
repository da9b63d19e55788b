"""The load and the faults of a run follow from the seed."""

import json
from collections import Counter

import pytest

from lab.chaos.__main__ import MAIL
from lab.chaos.faults import CLOSED, DAYS, DEPLOYMENTS, SHARES, Done, plan, workers_in
from lab.chaos.report import windows
from lab.load import PARTS, draw
from mailroom_local.aws import STAGE
from mailroom_local.providers import trouble
from mailroom_stacks.merging import merged
from mailroom_stacks.paths import CDK_JSON
from mailroom_stacks.settings.load import load

LISTED = """
    70     1 Ss   /bin/uvicorn local.stage.emulated.application:app
    71    70 S    /bin/python3 /scratch/ministack-lambda-mailroom-local-send-mail-ab_1cd2e/_worker.py
    72    70 R    /bin/python3 /scratch/ministack-lambda-mailroom-local-send-mail-bulk-abcdefgh/_worker.py
    73    70 Z    /bin/python3 /scratch/ministack-lambda-mailroom-local-send-mail-zzzzzzzz/_worker.py
    74    70 S    /bin/python3 /scratch/ministack-lambda-mailroom-local-send-mail-12345678/_worker.py
    75    60 S    /bin/python3 /scratch/ministack-lambda-mailroom-local-send-mail-abcdefgh/_worker.py
""".strip("\n")


def test_a_chaos_plan_is_the_same_for_the_same_seed_and_differs_for_another() -> None:
    assert draw(1, 500, "http://here") == draw(1, 500, "http://here") != draw(2, 500, "http://here")
    assert plan(1, 500, 20) == plan(1, 500, 20) != plan(2, 500, 20)


def test_a_chaos_load_has_each_message_once_and_the_planned_share_of_each_channel() -> None:
    load = draw(1, 2000, "http://here")
    assert len({each.key for each in load}) == 2000
    counts = Counter(each.channel for each in load)
    assert all(abs(counts[channel] / 2000 - part) < 0.03 for channel, part in PARTS.items())


def test_a_plan_has_all_kills_and_each_trouble_of_each_provider_in_the_order_of_the_messages() -> None:
    faults = plan(1, 1000, 50)
    providers = trouble.PROVIDERS.keys() - {"resend"}
    counts = Counter(fault.kind for fault in faults)
    each = len(providers) * len(trouble.KINDS)
    once = {"pump": 1, "deploy": DEPLOYMENTS, "day": DAYS, "stop": 1, "start": 1}
    assert counts == {"kill": 50, **once, "trouble": each, "calm": each}
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    assert all(0 <= fault.at <= 1000 for fault in faults)
    assert {(fault.provider, fault.trouble) for fault in faults if fault.kind == "trouble"} == {
        (provider, kind) for provider in providers for kind in trouble.KINDS
    }


def test_the_first_of_two_mail_providers_refuses_everything_once_and_then_has_its_other_troubles() -> None:
    faults = [fault for fault in plan(1, 1000, 50, "both") if fault.provider == "ses"]
    assert [(fault.at, fault.kind, fault.trouble) for fault in faults[:2]] == [
        (50, "trouble", CLOSED),
        (500, "calm", ""),
    ]
    assert {fault.trouble for fault in faults[2:] if fault.kind == "trouble"} == {*trouble.KINDS}
    assert SHARES[CLOSED] == {"throttled": 1}
    killed = {fault.functions[0] for fault in plan(1, 1000, 500, "both") if fault.kind == "kill"}
    assert killed >= {"send-mail-fallback", "send-mail-bulk-fallback", "resend-mail-events"}


@pytest.mark.parametrize("mail", MAIL)
def test_the_chaos_stage_has_valid_settings_for_each_choice_of_mail_providers(mail: str) -> None:
    stages = json.loads(CDK_JSON.read_text())["context"]["mailroom"]
    settings = load(merged(stages, {STAGE: MAIL[mail]}), STAGE)
    assert ("resend" in settings.providers("mail")) == (mail != "ses")


def test_the_function_release_is_stopped_when_the_daily_limit_first_closes_and_starts_again_later() -> None:
    at = {
        kind: [fault.at for fault in plan(3, 1000, 0) if fault.kind == kind]
        for kind in ("day", "stop", "start")
    }
    (stopped,), (started,) = at["stop"], at["start"]
    assert stopped == at["day"][0]
    assert started == stopped + 100


def test_the_workers_that_a_chaos_run_may_kill_are_the_living_workers_of_its_own_stage() -> None:
    assert workers_in(LISTED, 70) == {"send-mail": [71, 74], "send-mail-bulk": [72]}


def test_in_a_chaos_run_that_was_cut_off_a_providers_last_trouble_lasts_until_the_end() -> None:
    done = [
        Done("trouble", "ses slow", 110.0),
        Done("calm", "ses", 120.0),
        Done("trouble", "ses down", 130.0),
    ]
    assert windows(done, 100.0, 150.0) == [["ses", "slow", 10, 20], ["ses", "down", 30, 50]]


def test_in_a_plan_with_resend_as_the_mail_provider_its_trouble_and_function_replace_those_of_ses() -> None:
    faults = plan(1, 1000, 50, "resend")
    assert {fault.provider for fault in faults} - {""} == trouble.PROVIDERS.keys() - {"ses"}
    assert all("resend-mail-events" in fault.functions for fault in faults if fault.kind == "kill")
