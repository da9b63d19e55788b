"""A segment as Amazon Pinpoint exports endpoints, imported: several channels, opt-outs, nested attributes."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ops.message import Stage, answer, deployed, run, write

HELLO = ("--set", "subject=Hello", "--set", "text=Hi")
MAIL = (
    *("--channel", "mail", *HELLO, "--id-prefix", "spring", "--id-column", "Id", "--map", "Address=to"),
    *("--only", "ChannelType=EMAIL", "--only", "OptOut=NONE", "--only", "OptOut="),
)
FIRST_NAME = "User.UserAttributes.FirstName"


def endpoint(
    id_: str, channel: str, address: str, opt_out: str = "NONE", **user: list[str]
) -> dict[str, Any]:
    """An endpoint, in the form of Pinpoint's EndpointResponse."""
    return {
        "Id": id_,
        "ChannelType": channel,
        "Address": address,
        "EndpointStatus": "ACTIVE",
        "OptOut": opt_out,
        "RequestId": "6c1f1a2e-0f6b-4f7b-9d52-8c2bd0b4f1aa",
        "EffectiveDate": "2026-08-23T10:54:35.220Z",
        "Location": {"Country": "CA", "Latitude": 49.3},
        "Demographic": {"Platform": "Android", "Make": "LG"},
        "Attributes": {"interests": ["music", "books"]},
        "Metrics": {"visits": 3.0},
        "User": {"UserId": f"user-{id_}", "UserAttributes": user},
    }


ENDPOINTS = [
    endpoint("e-1", "EMAIL", "ada@example.com", FirstName=["Ada"]),
    endpoint("e-2", "EMAIL", "bob@example.com"),
    endpoint("e-3", "EMAIL", "no-more@example.com", "ALL", FirstName=["Cyd"]),
    endpoint("e-4", "SMS", "+16045550182", FirstName=["Ada"]),
    endpoint("e-5", "APNS", "1a2b3c4d5e6f7g8h9i0j1a2b3c4d5e6f"),
    endpoint("e-6", "GCM", "4d5e6f1a2b3c4d5e6f7g8h9i0j1a2b3c"),
    {"Id": "e-7", "ChannelType": "EMAIL", "Address": "eve@example.com"},
]
CSV = (
    f"Id,ChannelType,Address,OptOut,Location.Country,User.UserId,{FIRST_NAME}",
    "e-1,EMAIL,ada@example.com,NONE,CA,user-e-1,Ada",
    "e-2,EMAIL,bob@example.com,,CA,user-e-2,",
    "e-3,EMAIL,no-more@example.com,ALL,CA,user-e-3,Cyd",
    "e-4,SMS,+16045550182,NONE,CA,user-e-4,Ada",
    'e-7,EMAIL,eve@example.com,NONE,US,user-e-7,"Eve, the ""2nd"""',
)


@pytest.fixture(autouse=True)
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with deployed(monkeypatch) as stage:
        yield stage


def json_lines(tmp_path: Path) -> Path:
    """An export, as `gunzip` leaves it."""
    packed = gzip.compress("\n".join(map(json.dumps, ENDPOINTS)).encode())
    file = tmp_path / "segment.jsonl"
    file.write_bytes(gzip.decompress(packed))
    return file


def test_the_endpoints_of_one_channel_that_have_not_opted_out_become_messages(
    stage: Stage, tmp_path: Path
) -> None:
    result = run("import", str(json_lines(tmp_path)), *MAIL, "--map", f"{FIRST_NAME}.0=first_name", "--json")
    assert result.exit_code == 0, result.stdout
    found = answer(result)
    assert (found["put"], found["left_out"], found["refused"], found["lines"]) == (3, 4, 0, 7)
    mailbox = stage.mailbox()
    assert {id_: item["to"] for id_, item in mailbox.items()} == {
        "spring-e-1": "ada@example.com",
        "spring-e-2": "bob@example.com",
        "spring-e-7": "eve@example.com",
    }
    ada = mailbox["spring-e-1"]
    assert ada["first_name"] == "Ada"
    assert ada["User"] == {"UserId": "user-e-1", "UserAttributes": {"FirstName": ["Ada"]}}
    assert "first_name" not in mailbox["spring-e-2"]


def test_the_same_of_a_csv_file_whose_columns_have_dots(stage: Stage, tmp_path: Path) -> None:
    file = write(tmp_path / "segment.csv", *CSV)
    result = run("import", str(file), *MAIL, "--map", f"{FIRST_NAME}=first_name", "--json")
    assert result.exit_code == 0, result.stdout
    assert (answer(result)["put"], answer(result)["left_out"]) == (3, 2)
    names = {id_: (item["to"], item["first_name"]) for id_, item in stage.mailbox().items()}
    assert names == {
        "spring-e-1": ("ada@example.com", "Ada"),
        "spring-e-2": ("bob@example.com", ""),
        "spring-e-7": ("eve@example.com", 'Eve, the "2nd"'),
    }


def test_texts_and_pushes_of_the_same_file_are_imports_of_their_own(stage: Stage, tmp_path: Path) -> None:
    common = ("--id-prefix", "s", "--id-column", "Id", "--map", "Address=to")
    sms = ("--channel", "sms", "--set", "text=Hi", "--only", "ChannelType=SMS")
    push = ("--channel", "push", "--set", "body=Hi", "--set", "platform=app")
    devices = ("--only", "ChannelType=GCM", "--only", "ChannelType=APNS")
    stage.functions.environment["LANES"] = '{"sms": ["normal"], "push": ["normal"]}'
    for words in (sms, (*push, *devices)):
        result = run("import", str(json_lines(tmp_path)), *common, *words, "--json")
        assert result.exit_code == 0, result.stdout
    assert {id_: item["event_type"] for id_, item in stage.mailbox().items()} == {
        "s-e-4": "sms",
        "s-e-5": "push",
        "s-e-6": "push",
    }


def test_ids_may_come_from_within_a_line(stage: Stage, tmp_path: Path) -> None:
    words = [each if each != "Id" else "User.UserId" for each in MAIL]
    assert run("import", str(json_lines(tmp_path)), *words).exit_code == 1  # e-7 has no user
    assert set(stage.mailbox()) == {"spring-user-e-1", "spring-user-e-2"}


def test_a_dry_run_counts_what_would_be_left_out_and_shows_the_others(tmp_path: Path) -> None:
    result = run("import", str(json_lines(tmp_path)), *MAIL, "--dry-run")
    assert result.exit_code == 0, result.stdout
    assert "ada@example.com" in result.stdout
    assert "no-more@example.com" not in result.stdout
    assert "--only" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--only", "Chanel=EMAIL"), "--only: there is no column 'Chanel'"),
        (("--only", "EMAIL"), "write --only name=value"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(
    stage: Stage, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    file = write(tmp_path / "segment.csv", *CSV)
    result = run("import", str(file), *MAIL, *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not stage.mailbox()
