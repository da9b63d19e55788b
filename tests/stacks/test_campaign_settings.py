"""A campaign that cannot work stops synth with one sentence: which file and key, and what would be right."""

from pathlib import Path
from typing import Any

import pytest

from mailroom.channels.contracts import contracts_of
from mailroom.errors import Invalid
from mailroom.message.message import parse
from tests.support.stacks.campaign_folders import (
    AUDIENCES,
    MODULE,
    enabled,
    put_campaign,
    refusal_of_campaigns,
)
from tests.support.stacks.refusals import REMOVED

FILE = "campaigns/weekly/campaign.toml"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"channel": REMOVED}, "channel: is missing; add it."),
        (
            {"channel": "fax"},
            "channel: 'fax' is not a channel that campaigns of the stage can use; use mail or sms.",
        ),
        (
            {"channel": "sms"},
            "channel: 'sms' has no lane for campaigns; add mailroom.dev.channels.sms.lanes.bulk.",
        ),
        ({"topic": REMOVED}, "topic: is missing; mail needs a topic to opt out of."),
        (
            {"template": "weekly"},
            "template: 'weekly' is not a template in templates/mail/; add it, or use one ",
        ),
        (
            {"window": {"from": "09:00", "to": "20:00"}},
            "window: has no zone; add one such as Europe/Berlin, or add time_zone to audience.columns for "
            "the zone of each recipient.",
        ),
        (
            {"window": {"from": "09:00", "to": "20:00", "zone": "Berlin"}},
            "window: {'from': '09:00', 'to': '20:00', 'zone': 'Berlin'} is not valid: zone 'Berlin' is not ",
        ),
        (
            {"unless": {"column": "push_id", "event_type": "push", "status": ["sennt"]}},
            "unless.status.0: 'sennt' should be 'sent', 'delivered', ",
        ),
        (
            {"unless": {"column": "push_id", "event_type": "push", "status": ["sent"]}},
            "unless.event_type: 'push' is not a channel of the stage; use mail or sms.",
        ),
        (
            {"attributes": {"window": "always"}},
            "attributes: {'window': 'always'} sets 'window', which is not allowed in attributes; remove it.",
        ),
        (
            {"attributes": {"id": "one"}},
            "attributes: {'id': 'one'} sets 'id', which is not allowed in attributes; remove it.",
        ),
        *(
            (
                {"attributes": {name: "ann@example.com"}},
                f"attributes: {{'{name}': 'ann@example.com'}} sets {name!r}, so that all messages would "
                "have the same address; remove it, because the addresses come from the audience.",
            )
            for name in ("to", "email", "cc", "bcc")
        ),
        *(
            (
                {"topic": topic},
                f"topic: {topic!r} is not a valid topic; use 1 to 64 printable characters.",
            )
            for topic in ("", "x" * 65, "a\u00a0b", "news\u2028", "\u202enews")
        ),
        ({"schedule__cron": REMOVED}, "schedule.cron: is missing; add it."),
        (
            {"schedule__cron": "0 13 * * 3"},
            "schedule.cron: '0 13 * * 3' does not have six fields; write minutes, hours, day of month, "
            "month, day of week and year, such as '0 13 ? * WED *'.",
        ),
        (
            {"schedule__cron": "cron(0 13 ? * WED *)"},
            "schedule.cron: 'cron(0 13 ? * WED *)' does not have six",
        ),
        (
            {"schedule__cron": "0 13 * * * *"},
            "schedule.cron: '0 13 * * * *' needs ? as the day of month or as the day of week, and not as "
            "both.",
        ),
        (
            {"schedule__time_zone": "Europe/Bonn"},
            "schedule.time_zone: 'Europe/Bonn' is not a time zone; use a name such as Europe/Berlin or UTC.",
        ),
        ({"audience__query": REMOVED}, "audience.query: is missing; the kind postgresql needs it."),
        (
            {"audience__query": "SELECT * FROM users WHERE name LIKE 'a%'"},
            "audience.query: \"SELECT * FROM users WHERE name LIKE 'a%'\" has a % that is not part of "
            "%(scheduled_at)s; write %% for a literal %.",
        ),
        (
            {"audience__database": "crm"},
            "audience.database: 'crm' is not in mailroom.dev.databases; add it there, or use one of: app, "
            "shop.",
        ),
        (
            {"audience": AUDIENCES["module"]},
            f"audience.kind: 'module' needs {FILE[:-4]}py with recipients(page); add it, or use another "
            "kind.",
        ),
        (
            {"audience": {"kind": "file", "key": "id"}},
            "audience.location: is missing; the kind file needs it.",
        ),
        (
            {"audience": {**AUDIENCES["csv"], "location": "s3://people/*.csv"}},
            "audience.location: 's3://people/*.csv' should match pattern ",
        ),
        (
            {"audience": {**AUDIENCES["csv"], "location": "s3://people/all.xlsx"}},
            "audience.location: 's3://people/all.xlsx' should match pattern ",
        ),
    ],
)
def test_the_error_about_an_invalid_campaign_names_its_file_and_key(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    assert refusal_of_campaigns(put_campaign(tmp_path, **changes), "weekly").startswith(f"{FILE}: {said}")


HALVES = {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}


def test_a_campaign_on_a_custom_channel_needs_a_topic(tmp_path: Path) -> None:
    row = {"handler": "send_push", "messages_per_second": 1, "lanes": HALVES}
    folder = put_campaign(tmp_path, channel="chat", template=REMOVED, topic=REMOVED)
    said = refusal_of_campaigns(folder, "weekly", channels__chat=row)
    assert said.startswith(f"{FILE}: topic: is missing; chat needs a topic to opt out of.")


@pytest.mark.parametrize("topic", ["", "n", "x" * 64, "x" * 65, "Neues für dich", "a\u00a0b", "a\u0085", "…"])
def test_synth_accepts_a_topic_if_and_only_if_the_contract_of_messages_accepts_it(
    tmp_path: Path, topic: str
) -> None:
    item = {"id": "1", "event_type": "mail", "to": "a@example.com", "topic": topic, "template": "default"}
    try:
        parse(item, contracts_of(""))
    except Invalid:
        assert "topic: " in refusal_of_campaigns(put_campaign(tmp_path, topic=topic), "weekly")
    else:
        assert enabled(put_campaign(tmp_path, topic=topic), "weekly")


def test_synth_keeps_a_doubled_percent_sign_in_a_campaigns_query(tmp_path: Path) -> None:
    query = "SELECT * FROM users WHERE name LIKE 'a%%' AND created_at < %(scheduled_at)s"
    (weekly,) = enabled(put_campaign(tmp_path, audience__query=query), "weekly")
    assert weekly.chosen.audience.query == query


def test_the_error_about_a_long_query_of_a_campaign_shows_only_its_beginning(tmp_path: Path) -> None:
    query = "SELECT " + "column_of_many, " * 100 + "LIKE 'a%'"
    said = refusal_of_campaigns(put_campaign(tmp_path, audience__query=query), "weekly")
    assert "… has a % that is not part of" in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("channel = mail", "is not TOML: Invalid value (at line 1, column 11)."),
        ("[attributes]\nscore = nan", "Out of range float values are not JSON compliant"),
    ],
)
def test_the_error_about_a_campaign_file_that_cannot_be_parsed_names_the_file(
    tmp_path: Path, text: str, said: str
) -> None:
    folder = put_campaign(tmp_path)
    (folder / "weekly" / "campaign.toml").write_text(text)
    assert refusal_of_campaigns(folder, "weekly").startswith(f"{FILE}: {said}")


def test_a_date_in_the_attributes_of_a_campaign_is_kept_as_text(tmp_path: Path) -> None:
    folder = put_campaign(tmp_path)
    with (folder / "weekly" / "campaign.toml").open("a") as file:
        file.write("[attributes]\nfrom_day = 2026-11-18\n")
    (weekly,) = enabled(folder, "weekly")
    assert weekly.definition().attributes == {"template": "default", "from_day": "2026-11-18"}


def test_the_error_about_an_unknown_campaign_names_the_known_ones(tmp_path: Path) -> None:
    assert refusal_of_campaigns(put_campaign(tmp_path), "monthly") == (
        "mailroom.dev.campaigns.enabled: 'monthly' has no file campaigns/monthly/campaign.toml; add it, or "
        "use one of: weekly."
    )


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ({"concurrency": 1}, "concurrency: 1 should be greater than or equal to 2."),
        ({"audience": {"database": "crm"}}, "audience.database: 'crm' is not in mailroom.dev.databases; "),
    ],
)
def test_the_error_about_an_invalid_override_of_a_campaign_names_its_setting(
    tmp_path: Path, override: dict[str, Any], said: str
) -> None:
    found = refusal_of_campaigns(put_campaign(tmp_path), "weekly", campaigns__overrides={"weekly": override})
    assert found.startswith(f"mailroom.dev.campaigns.overrides.weekly.{said}")


def test_an_override_of_a_disabled_campaign_is_refused(tmp_path: Path) -> None:
    assert refusal_of_campaigns(put_campaign(tmp_path), "weekly", campaigns__overrides={"monthly": {}}) == (
        "mailroom.dev.campaigns.overrides.monthly: is not enabled; enable it, or remove this key."
    )


def test_a_campaign_may_use_sms_if_that_channel_has_the_lane_bulk(tmp_path: Path) -> None:
    lanes = {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}
    folder = put_campaign(tmp_path, module=MODULE, channel="sms", topic=REMOVED)
    (weekly,) = enabled(folder, "weekly", channels__sms={"handler": "send_sms", "lanes": lanes})
    assert weekly.definition().channel == "sms"
