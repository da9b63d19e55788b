"""A stage that moves its texts to another account: at every outside call of any function, and in a crash."""

from typing import Any

import pytest

from tests.support.faults.changes import each_change
from tests.support.faults.sms_and_push_world import SMS, NewWorld, PeopleWorld, fated_sms

HOLD = {"on_unknown": "hold"}
TEXTS = (fated_sms("silent-a"), fated_sms("lost-answer-silent"), fated_sms("throttled-once-silent"))
AWS, TWILIO = {"sms_provider": "aws"}, {"sms_provider": "twilio"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(AWS, TWILIO, id="another provider"),
        pytest.param({"account": "ours"}, {"account": "our new one"}, id="another account"),
    ],
)
def test_an_sms_message_that_one_account_may_have_accepted_is_not_sent_by_another_account(
    new_people_world: NewWorld, before: dict[str, Any], after: dict[str, Any]
) -> None:
    def begun() -> PeopleWorld:
        world = new_people_world()
        world.changed |= {**HOLD, **before}
        world.enqueue(*TEXTS)
        return world

    for world, where in each_change(begun, after):
        assert max(world.sends().values(), default=0) <= 1, where
        assert not world.queues.dead[SMS], where
        for each in TEXTS:
            ended = world.found(each["id"])
            known = (ended["status"], ended.get("error", {}).get("code"))
            assert known in {("sent", None), ("failed", "outcome_unknown")}, where
            assert ended["status"] == "failed" or world.sends()[each["id"]] == 1, where
