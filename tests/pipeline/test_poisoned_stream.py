"""A batch that the mailbox's stream gives up on is complete in S3, and `repair --given-up` dispatches it."""

import json

import pytest

from mailroom.aws.dynamo_values import plain
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.shared import Pipeline
from tests.support.pipeline.trouble import NEIGHBOURS, POISONED, Trouble, unprocessed

REPLAY = ("messages", "resend", "--given-up", "--stage", "local")


def counts(printed: str) -> tuple[int, int, int]:
    """Batches found, their records, and batches left, as --json says it."""
    answer = json.loads(printed)
    return answer["found"], answer["records"], answer["left"]


def test_lambda_writes_a_given_up_stream_batch_to_the_bucket_with_only_the_whole_poisoned_record(
    trouble: Trouble,
) -> None:
    (document,) = trouble.given_up
    assert document["requestContext"]["condition"] == "RetryAttemptsExhausted"
    (record,) = json.loads(document["payload"])["Records"]
    assert plain(record["dynamodb"]["NewImage"]) == POISONED


@pytest.mark.usefixtures("trouble")
def test_each_message_beside_the_poisoned_stream_record_is_sent_once(pipeline: Pipeline) -> None:
    assert all(pipeline.one_mail(item["id"]) for item in NEIGHBOURS)


@pytest.mark.usefixtures("trouble")
def test_a_replay_sends_the_message_of_the_poisoned_record_and_empties_the_bucket(pipeline: Pipeline) -> None:
    assert not pipeline.ledger("poisoned")
    looked = operator(pipeline, *REPLAY, "--dry-run")
    assert looked.exit_code == 1, looked.stderr
    assert "1 batch waits" in looked.stdout
    assert not pipeline.ledger("poisoned")
    replayed = operator(pipeline, *REPLAY, "--json", "--yes")
    assert replayed.exit_code == 0, replayed.stderr
    assert counts(replayed.stdout) == (1, 1, 0)
    assert pipeline.one_mail("poisoned")["content"]["text"] == POISONED["text"]
    assert not unprocessed(pipeline)
    assert counts(operator(pipeline, *REPLAY, "--json").stdout) == (0, 0, 0)
