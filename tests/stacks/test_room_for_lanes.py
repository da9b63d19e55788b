"""As many lanes as the stack of the channels has room for, and not one more."""

from mailroom_stacks.settings.channels import MOST_LANES, Channel, channels_faults
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.settings import Settings
from tests.support.stacks.refusals import STAGES
from tests.support.stacks.templates import Template, Templates
from tests.support.stacks.variants import PUSH, PUSH_ROW, variant

MOST_OUTPUTS = 200
"""CloudFormation's limit a stack:
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html."""
OF_A_SECRET = 2
"""Outputs of a secret, which a row may have of its own."""
HALVES = {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}


def outputs(template: Template) -> int:
    """How many a stack has."""
    return len(template.body["Outputs"])


def test_all_lanes_that_synth_accepts_fit_into_their_stack_and_one_more_would_not(dev: Templates) -> None:
    six = {
        "channels.sms.lanes": HALVES,
        "channels.push": {**PUSH_ROW, "lanes": HALVES},
        "push": PUSH,
    }
    three = outputs(dev["channels"])
    a_lane, rest = divmod(outputs(variant(six)["channels"]) - three, 3)
    assert (rest, three) == (0, 3 * a_lane)
    assert MOST_LANES * (a_lane + OF_A_SECRET) <= MOST_OUTPUTS < (MOST_LANES + 1) * a_lane


def test_one_lane_more_is_refused_with_the_names_of_all() -> None:
    settings = load(STAGES, "dev")
    mail = settings.channels["mail"]
    eight = dict.fromkeys(("mail", "letter", "chat", "post"), mail)
    assert not refusals(settings, eight)
    nine = {**eight, "sms": settings.channels["sms"]}
    assert refusals(settings, nine) == [
        "channels: mail, mail-bulk, letter, letter-bulk, chat, chat-bulk, post, post-bulk, sms are 9 lanes, "
        "and their stack has room for 8: CloudFormation takes 200 outputs a stack, and each lane has 23; "
        "leave out a lane or a row."
    ]


def refusals(settings: Settings, rows: dict[str, Channel]) -> list[str]:
    """What is said of these rows as a whole."""
    broken = channels_faults(rows, settings.mail, settings.times, settings.retention)
    return [each for each in broken if each.startswith("channels:")]
