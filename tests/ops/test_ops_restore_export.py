"""`mailroom restore` from an export of the second copy. The files of the export have the format of
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html."""

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import md5
from typing import Any

import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from mailroom.recipients.choices import Preferences, Suppression, Suppressions
from mailroom_ops import cli
from mailroom_ops.repair import exported
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.shared import Session, make_table

BUCKET, FOLDER = "acme-second-copies", "mailroom-dev-preferences/AWSDynamoDB/01795165200000-a1b2c3d4"
SOURCE = f"s3://{BUCKET}/{FOLDER}/"
TOPIC = "news"


class Copy:
    """Bucket with an export, and the stage's empty tables. The exported tables are beside them."""

    def __init__(self, session: Session) -> None:
        self.dynamodb, self.s3 = session.client("dynamodb"), session.client("s3")
        self.s3.create_bucket(Bucket=BUCKET)
        for table, sort_key in (("preferences", "topic"), ("suppressions", "channel")):
            for prefix in ("mailroom-dev-", "exported-"):
                make_table(self.dynamodb, f"{prefix}{table}", "recipient", sort_key)
        self.preferences = Preferences(self.dynamodb, "mailroom-dev-preferences")
        self.compress: Callable[[bytes], bytes] = gzip.compress
        self.lines: bytes | None = None
        """Lines of the data files in place of the items."""
        self.exported = Preferences(self.dynamodb, "exported-preferences", clock=lambda: 1_795_000_000.0)

    def export(self, table: str = "preferences", **changes: Any) -> list[str]:
        """Write an export of a table with two data files, and return their keys. As in reality, the file of
        an empty partition is listed too."""
        items = self.dynamodb.scan(TableName=f"exported-{table}")["Items"]
        names = {"7b4q": items[::2], "k2xm": items[1::2], "empty": []}
        files = [self._data_file(f"{FOLDER}/data/{name}.json.gz", rows) for name, rows in names.items()]
        arn = f"arn:aws:dynamodb:eu-central-1:111122223333:table/mailroom-dev-{table}"
        summary = {
            "version": "2020-06-30",
            "exportArn": f"{arn}/export/01795165200000-a1b2c3d4",
            "startTime": "2026-11-20T09:00:00.000Z",
            "endTime": "2026-11-20T09:05:43.897Z",
            "tableArn": arn,
            "tableId": "12345a12-abcd-123a-ab12-1234abc12345",
            "exportTime": "2026-11-20T09:00:00.000Z",
            "s3Bucket": BUCKET,
            "s3Prefix": f"mailroom-dev-{table}",
            "s3SseAlgorithm": "AES256",
            "s3SseKmsKeyId": None,
            "manifestFilesS3Key": f"{FOLDER}/manifest-files.json",
            "billedSizeBytes": 0,
            "itemCount": len(items),
            "outputFormat": "DYNAMODB_JSON",
            **changes,
        }
        self.put(f"{FOLDER}/manifest-summary.json", json.dumps(summary).encode())
        self.put(f"{FOLDER}/manifest-files.json", b"".join(json.dumps(f).encode() + b"\n" for f in files))
        return [file["dataFileS3Key"] for file in files]

    def _data_file(self, key: str, rows: list[Any]) -> dict[str, Any]:
        lines = b"".join(json.dumps({"Item": row}).encode() + b"\n" for row in rows)
        body = self.compress(lines if self.lines is None or not rows else self.lines)
        self.put(key, body)
        checksum = b64encode(md5(body, usedforsecurity=False).digest()).decode()
        etag = "af83d6f217c19b8b0fff8023d8ca4716-1"
        return {"itemCount": len(rows), "md5Checksum": checksum, "etag": etag, "dataFileS3Key": key}

    def put(self, key: str, body: bytes) -> None:
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=body)

    def opted_out(self) -> set[str]:
        items = self.dynamodb.scan(TableName="mailroom-dev-preferences")["Items"]
        return {item["recipient"]["S"] for item in items if "opted_out_at" in item}


@pytest.fixture
def copy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Copy]:
    with mock_aws(), in_memory_dynamodb():
        session = Session()
        monkeypatch.setattr("boto3.Session", lambda: session)
        yield Copy(session)


def restore(table: str = "preferences", source: str = SOURCE) -> Result:
    words = ["restore", table, "--from", source, "--yes", "--json"]
    return CliRunner().invoke(cli.app, words, env={"COLUMNS": "200"})


def test_a_restore_from_an_export_adds_lost_opt_outs_and_keeps_newer_preferences(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported, "_PAGE", 2)
    people = {f"person-{number}@example.com" for number in range(11)}
    for person in people:
        copy.exported.opt_out(person, TOPIC, "page")
    copy.preferences.opt_out("person-3@example.com", TOPIC, "page")
    copy.preferences.opt_in("person-3@example.com", TOPIC, "page")
    copy.preferences.opt_out("newer@example.com", TOPIC, "one-click")
    copy.export()
    answer = json.loads(restore().stdout)
    assert (answer["read"], answer["copied"], answer["kept"]) == (11, 10, 1)
    assert copy.opted_out() == people - {"person-3@example.com"} | {"newer@example.com"}
    restored = copy.preferences.get("person-1@example.com", TOPIC)
    assert restored == copy.exported.get("person-1@example.com", TOPIC)
    answer = json.loads(restore().stdout)
    assert (answer["copied"], answer["kept"]) == (0, 11)


def test_a_restore_from_an_export_copies_each_suppression_with_its_time_and_reason(copy: Copy) -> None:
    before = Suppressions(copy.dynamodb, "exported-suppressions")
    stop = Suppression("+12025550123", "sms", "stop", 1_795_000_000_000, "STOP", "code-1")
    bounce = Suppression("ada@example.com", "mail", "bounce", 1_795_000_000_001, "550 unknown", "hello-1")
    assert before.mark(stop)
    assert before.mark(bounce)
    copy.export("suppressions")
    assert json.loads(restore("suppressions").stdout)["copied"] == 2
    restored = Suppressions(copy.dynamodb, "mailroom-dev-suppressions").listed()
    assert {entry.recipient: entry for entry in restored} == {
        entry.recipient: entry for entry in (stop, bounce)
    }


def test_restore_reads_an_export_that_was_copied_to_another_folder_of_its_bucket(copy: Copy) -> None:
    copy.exported.opt_out("ada@example.com", TOPIC, "page")
    copy.export()
    for entry in copy.s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        old = {"Bucket": BUCKET, "Key": entry["Key"]}
        copy.s3.copy_object(Bucket=BUCKET, Key=entry["Key"].replace(FOLDER, "drill"), CopySource=old)
        copy.s3.delete_object(**old)
    assert json.loads(restore(source=f"s3://{BUCKET}/drill").stdout)["copied"] == 1


def test_restore_skips_a_damaged_file_of_an_export_and_a_later_restore_copies_its_items(copy: Copy) -> None:
    people = {f"person-{number}@example.com" for number in range(10)}
    for person in people:
        copy.exported.opt_out(person, TOPIC, "page")
    second = copy.export()[1]
    body = copy.s3.get_object(Bucket=BUCKET, Key=second)["Body"].read()
    copy.put(second, body[:-9])
    result = restore()
    assert result.exit_code == 2
    assert "data/k2xm.json.gz is damaged: its MD5 checksum is not " in result.stderr
    assert "Restore another export; items that were copied already do no harm." in result.stderr
    assert len(copy.opted_out()) == 5
    copy.put(second, body)
    assert json.loads(restore().stdout)["copied"] == 5
    assert copy.opted_out() == people


@pytest.mark.parametrize(
    ("table", "changes", "sentence"),
    [
        ("preferences", {"itemCount": 2}, "lists 1 of 2 items. Restore another export;"),
        ("preferences", {"outputFormat": "ION"}, "cannot be read: Invalid enum value 'ION'"),
        ("preferences", {"itemCount": None}, "cannot be read: Expected `int`"),
        ("suppressions", {}, "table/mailroom-dev-preferences; the table has to be suppressions."),
        ("mailbox", {"tableArn": "table/mailroom-dev-mailbox"}, "the table has to be mailbox."),
    ],
)
def test_an_export_that_is_incomplete_or_of_another_table_is_refused(
    copy: Copy, table: str, changes: dict[str, Any], sentence: str
) -> None:
    make_table(copy.dynamodb, "mailroom-dev-mailbox", "id", "event_type")
    copy.exported.opt_out("ada@example.com", TOPIC, "page")
    copy.export(**changes)
    result = restore(table)
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr
    assert not copy.opted_out()


@pytest.mark.parametrize("file", ["manifest-summary.json", "manifest-files.json"])
def test_a_truncated_manifest_of_an_export_is_refused(copy: Copy, file: str) -> None:
    copy.exported.opt_out("ada@example.com", TOPIC, "page")
    copy.export()
    body = copy.s3.get_object(Bucket=BUCKET, Key=f"{FOLDER}/{file}")["Body"].read()
    copy.put(f"{FOLDER}/{file}", body[:-9])
    result = restore()
    assert (result.exit_code, f"{SOURCE} cannot be read: " in result.stderr) == (2, True), result.stderr
    assert not copy.opted_out()


@pytest.mark.parametrize("file", ["manifest-summary.json", "data/7b4q.json.gz"])
def test_a_missing_file_of_an_export_is_named(copy: Copy, file: str) -> None:
    copy.exported.opt_out("ada@example.com", TOPIC, "page")
    copy.export()
    copy.s3.delete_object(Bucket=BUCKET, Key=f"{FOLDER}/{file}")
    result = restore()
    assert result.exit_code == 2
    assert f"s3://{BUCKET}/{FOLDER}/{file} does not exist: the export has failed" in result.stderr


@pytest.mark.parametrize(
    "odd",
    [*({"lines": each} for each in (b"not JSON\n", b"{}\n", b"\n", b"[1]\n")), {"compress": bytes}],
    ids=["not JSON", "no item", "an empty line", "an array", "not compressed"],
)
def test_restore_refuses_an_export_in_another_format(copy: Copy, odd: dict[str, Any]) -> None:
    copy.exported.opt_out("ada@example.com", TOPIC, "page")
    vars(copy).update(odd)
    copy.export()
    result = restore()
    assert (result.exit_code, "is not in the format of an export" in result.stderr) == (2, True)
    assert not copy.opted_out()


def test_restore_names_a_bucket_that_does_not_exist_and_exits_with_2(copy: Copy) -> None:
    result = restore(source="s3://missing-bucket/AWSDynamoDB/1/")
    assert (result.exit_code, "s3://missing-bucket" in result.stderr) == (2, True)
