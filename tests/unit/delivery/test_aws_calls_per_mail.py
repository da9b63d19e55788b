"""Cost of a mail, counted on the requests of the real dispatch and sender: it does not grow unnoticed.

If a count has to grow, change it here, and give the reason in CHANGELOG.md.
"""

import pytest

from lab.bench import counted


@pytest.mark.process
def test_ten_mails_of_a_batch_take_24_aws_calls_and_20_write_units_and_do_not_write_a_log_line() -> None:
    figures = counted.mails()
    assert figures["calls_by_name"] == {
        "BatchExecuteStatement": 0.1,  # the claims of a batch
        "BatchGetItem": 0.1,  # the choices of the recipients
        "SendEmail": 1.0,
        "SendMessageBatch": 0.1,
        "UpdateItem": 1.1,  # the completion; and the batch is counted in the day's budget
    }
    assert figures["write_units_per_mail"] == 2.0
    assert figures["log_lines_per_mail"] == 0.0
