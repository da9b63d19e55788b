"""An import may be run again: what was sent is not sent once more."""

from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline


def test_a_second_put_of_the_same_item_sends_no_second_mail(pipeline: Pipeline) -> None:
    pipeline.put(mail_item("again"))
    first = pipeline.one_mail("again")
    pipeline.until_status("delivered", "again")
    row = pipeline.ledger("again")
    pipeline.put(mail_item("again"), mail_item("again", first_name="Grace"))
    settle(pipeline, "after-again")
    assert pipeline.mails("again") == [first]
    assert pipeline.ledger("again") == row


def test_an_item_that_is_deleted_and_put_again_sends_no_second_mail(pipeline: Pipeline) -> None:
    pipeline.put(mail_item("reborn"))
    first = pipeline.one_mail("reborn")
    pipeline.until_status("delivered", "reborn")
    row = pipeline.ledger("reborn")
    pipeline.delete("reborn")
    pipeline.put(mail_item("reborn", first_name="Grace"))
    sender = pipeline.output("SendMailFunctionName")
    pipeline.until_logged(sender, "already done", '"reborn"')
    assert pipeline.mails("reborn") == [first]
    assert pipeline.ledger("reborn") == row


def test_a_failed_item_that_is_corrected_and_put_again_stays_failed_unless_its_id_is_new(
    pipeline: Pipeline,
) -> None:
    pipeline.put(mail_item("wrong", email="nobody"))
    sentence = pipeline.failure("wrong")
    pipeline.delete("wrong")
    pipeline.put(mail_item("wrong", email="ada@example.com"), mail_item("right", email="ada@example.com"))
    pipeline.one_mail("right")
    sender = pipeline.output("SendMailFunctionName")
    pipeline.until_logged(sender, "already done", '"wrong"')
    assert pipeline.failure("wrong") == sentence


def settle(pipeline: Pipeline, id_: str) -> None:
    """Wait until messages put later have all been sent: by then an earlier put has had its effect."""
    names = [f"{id_}-{number}" for number in range(20)]  # enough for each lane of the stream
    pipeline.put(*(mail_item(name) for name in names))
    pipeline.until_ended(*names)
