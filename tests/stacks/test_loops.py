"""Lambda stops a loop of functions over queues, unless each function of it says otherwise."""

from tests.support.stacks.loops import loops, recursion_allowed
from tests.support.stacks.templates import Templates


def test_a_loop_of_functions_over_queues_alone_is_left_only_if_each_function_allows_it(
    whole: Templates,
) -> None:
    feeding_themselves = {"mailroom-dev-collect", "mailroom-dev-send-fax"}
    assert {*loops(whole)} == {frozenset({name}) for name in feeding_themselves}
    assert recursion_allowed(whole) == feeding_themselves
