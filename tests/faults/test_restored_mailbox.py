"""`restore mailbox`: a restored item was put before, so restoring it sends no message."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.mailbox import RESTORED, MailboxWriter
from mailroom_ops import cli
from mailroom_ops.shared.selected_messages import selected
from tests.support.dynamodb.client import ITEM_BYTES
from tests.support.dynamodb.values import size_of
from tests.support.faults.repairs import of_mail, resend, scan, send_again, sends
from tests.support.faults.world import MAIL, World, create_table, mail

SOURCE, FILE = "mailbox-restored", "mailbox-unknown.jsonl"
DAY = 86_400
LEDGER_DAYS = 90


class Loss:
    """A world whose mailbox loses all items, of which the recovery has made a copy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.world = World()
        self._folder = folder
        monkeypatch.chdir(folder)
        monkeypatch.setattr("mailroom_ops.repair.restore.aws_session", lambda: self)
        monkeypatch.setattr("mailroom_ops.repair.restore.name", lambda _stage, table: str(table))
        create_table(self.world.dynamodb, SOURCE)

    def client(self, _service: str, **_settings: Any) -> Any:
        """As a session: the client of DynamoDB."""
        return self.world.dynamodb

    def items(self, table: str = "mailbox") -> list[dict[str, Any]]:
        """A table's items, in DynamoDB's form."""
        items: list[dict[str, Any]] = self.world.dynamodb.scan(TableName=table)["Items"]
        return items

    def ids(self) -> set[str]:
        """The ids of the mailbox's items."""
        return {each["id"]["S"] for each in self.items()}

    def send(self, *ids: str) -> None:
        """Send messages through the mailbox."""
        self.world.put(*map(mail, ids))
        self.world.stream()
        self.world.settle()

    def lose(self) -> None:
        """Copy the mailbox as the recovery does, and delete all that it has."""
        for each in self.items():
            self.world.dynamodb.put_item(TableName=SOURCE, Item=each)
            self.delete("mailbox", each)

    def forget(self) -> None:
        """Let time pass until the ledger has forgotten all messages."""
        self.world.clock.now += (LEDGER_DAYS + 1) * DAY
        for each in self.items("ledger"):
            self.delete("ledger", each)

    def delete(self, table: str, item: dict[str, Any]) -> None:
        """Delete an item of a table."""
        key = {name: item[name] for name in ("id", "event_type")}
        self.world.dynamodb.delete_item(TableName=table, Key=key)

    def restore(self, *options: str) -> str:
        """Run the command, and then dispatch and the senders with what the mailbox's stream has of it. The
        command's output."""
        before = self.ids()
        arguments = ["restore", "mailbox", "--from", SOURCE, "--yes", *options]
        result = CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "300"})
        assert result.exit_code == 0, result.output
        self.world.items = [plain(each) for each in self.items() if each["id"]["S"] not in before]
        self.world.stream()
        self.world.settle(until=self.world.clock.now + DAY)
        return result.stdout

    def answer(self) -> dict[str, Any]:
        """Run the command; its answer."""
        answer: dict[str, Any] = json.loads(self.restore("--json"))
        return answer

    def named(self) -> list[str]:
        """The ids in the file that names the messages which the ledger does not know, as `repair -` reads
        them."""
        with (self._folder / FILE).open() as file:
            return sorted(each.id for each in selected(["-"], "mail", file, "dev"))


@pytest.fixture
def loss(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Loss:
    return Loss(monkeypatch, tmp_path)


def test_a_restore_of_the_mailbox_lists_a_message_without_a_ledger_item_and_does_not_send_it(
    loss: Loss,
) -> None:
    ids = sorted(f"welcome-{number}" for number in range(100))
    loss.send(*ids)
    loss.forget()
    loss.send("known")
    loss.lose()
    answer = loss.answer()
    assert (answer["copied"], answer["unknown"], answer["kept"], answer["too_large"]) == (101, 100, 0, [])
    assert loss.named() == ids
    assert set(loss.world.sends().values()) == {1}
    assert loss.ids() == {*ids, "known"}


def test_an_item_too_large_for_the_restore_mark_is_reported_and_other_items_are_restored(loss: Loss) -> None:
    full = mail("full", text="x" * (ITEM_BYTES - 200))
    full["text"] += "x" * (ITEM_BYTES - size_of(image_of(full)))  # the restore mark has 15 bytes
    loss.world.put(full)
    loss.send("small")
    loss.lose()
    output = loss.restore()
    assert "400 KB with the attribute restored_id: full. Their producer can put smaller items" in output
    assert loss.ids() == {"small"}


def test_a_restored_message_is_not_sent_again_if_its_ledger_item_expires_later(loss: Loss) -> None:
    loss.send("welcome")
    loss.lose()
    assert loss.answer()["unknown"] == 0
    loss.forget()
    loss.world.items = [plain(each) for each in loss.items()]  # a batch of the stream that is late
    loss.world.stream()
    loss.world.settle()
    assert loss.world.sends() == {"welcome": 1}


def test_a_scheduled_message_is_sent_once_when_it_is_due_although_its_item_was_restored(loss: Loss) -> None:
    world = loss.world
    world.put(mail("later", send_at="2027-03-30T09:00:00Z"))
    world.stream()
    loss.lose()
    assert loss.answer()["unknown"] == 0
    assert loss.world.sends() == {}
    world.settle()
    assert (world.sends(), world.end("later")) == ({"later": 1}, "sent")


def test_a_message_put_just_before_the_mailbox_was_lost_is_sent_after_an_operator_resends_it_by_id(
    loss: Loss,
) -> None:
    loss.send("welcome")
    loss.forget()
    world = loss.world
    world.put(mail("just-put"))
    loss.lose()
    assert loss.answer()["unknown"] == 2
    assert scan(of_mail(world), world.clock.sleep) == (0, 0)
    assert send_again(of_mail(world), "just-put") == (1, 0)
    world.settle()
    assert (world.sends(), world.end("just-put")) == ({"welcome": 1, "just-put": 1}, "sent")
    assert loss.answer()["unknown"] == 1


def test_a_second_restore_copies_no_item_and_lists_the_same_messages(loss: Loss) -> None:
    loss.send("welcome", "news")
    loss.forget()
    loss.lose()
    first, names = loss.answer(), loss.named()
    again = loss.answer()
    assert (first["copied"], again["copied"], again["kept"], again["unknown"]) == (2, 0, 2, 2)
    assert loss.named() == names == ["news", "welcome"]
    assert loss.world.sends() == {"welcome": 1, "news": 1}


def test_a_producer_gets_existed_for_a_put_of_a_restored_item_and_conflict_if_it_is_changed(
    loss: Loss,
) -> None:
    item = mail("welcome")
    loss.world.put(item)
    loss.lose()
    loss.restore()
    assert MailboxWriter(loss.world.dynamodb, "mailbox").put(item).state == "existed"
    assert MailboxWriter(loss.world.dynamodb, "mailbox").put(item | {"first_name": "Bo"}).state == "conflict"


def test_a_restored_message_that_an_operator_resends_is_queued_without_the_restore_mark(loss: Loss) -> None:
    loss.send("welcome")
    loss.lose()
    loss.restore()
    (message,) = resend(of_mail(loss.world), "welcome", force=True)
    assert message.result == "resent"
    (queued,) = loss.world.queues.messages[MAIL]
    assert RESTORED not in json.loads(queued.body)
    loss.world.settle()
    assert sends(loss.world) == {"welcome": 2}


def test_a_restore_prints_the_number_and_20_ids_of_messages_without_ledger_items_and_a_command(
    loss: Loss,
) -> None:
    loss.send(*(f"welcome-{number}" for number in range(30)))
    loss.forget()
    loss.lose()
    output = loss.restore()
    assert "30 messages have no ledger item" in output
    assert output.count("welcome-") == 20
    assert f"{FILE} lists them all, the first being welcome-" in output
    assert "mailroom messages resend - --stage dev < FILE" in output


def test_a_restore_writes_no_file_of_message_ids_if_the_ledger_has_every_message(
    loss: Loss, tmp_path: Path
) -> None:
    loss.send("welcome")
    loss.lose()
    assert "have no ledger item" not in loss.restore()
    assert [*tmp_path.iterdir()] == []


def test_a_copy_of_a_restored_mailbox_item_under_another_id_fails_as_invalid(loss: Loss) -> None:
    loss.send("welcome")
    loss.lose()
    loss.restore()
    (restored,) = loss.items()
    loss.world.items = [plain(restored) | {"id": "welcome-again"}]
    loss.world.stream()
    assert loss.world.end("welcome-again") == "failed: invalid"
    assert loss.world.found("welcome-again")["error"]["field"] == "restored_id"
