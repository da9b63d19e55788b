"""The harness puts the load at the rate of its options."""

from lab.harness.expected import Expected
from lab.harness.run import put_steadily


def test_the_harness_puts_messages_at_a_steady_rate_and_catches_up_at_once_if_it_is_late() -> None:
    now, put = [0.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def take(message: Expected) -> None:
        put.append((int(message.id), now[0]))
        now[0] += 5 if message.id == "1" else 0

    put_steadily([Expected({"id": at}) for at in range(14)], 2, take, lambda: now[0], sleep)
    assert put[:3] == [(0, 0.0), (1, 0.5), (2, 5.5)]
    assert put[10:] == [(10, 5.5), (11, 5.5), (12, 6.0), (13, 6.5)]
