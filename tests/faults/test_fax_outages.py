"""The fax gateway during long outages of a line, a provider or a function."""

from collections.abc import Callable

from tests.support.faults.base import FUNCTION_SECONDS
from tests.support.faults.fax_world import RULES, THERE, TIMES, FaxWorld, fated_fax

NewFaxWorld = Callable[..., FaxWorld]


def run_sender(world: FaxWorld, times: int) -> None:
    """So many invocations of the sender, each when its record is visible."""
    for _ in range(times):
        due = world.fifo.next_visible()
        if due is None:
            return
        world.clock.now = max(world.clock.now, due)
        world.send_fax()


def test_a_fax_to_an_always_busy_line_fails_after_its_last_attempt_without_a_dead_letter(
    new_fax_world: NewFaxWorld,
) -> None:
    world = new_fax_world(20)
    world.put(fated_fax("busy"), fated_fax("good"))
    world.settle()
    tries = [
        ("tmp_fail", f"Failed to deliver fax (attempt {n} of 20). Fax status: busy") for n in range(1, 20)
    ]
    given_up = ("perm_fail", "Failed to deliver fax after 20 tries. Last attempt status: busy")
    assert world.callbacks("busy") == [*tries, given_up]
    assert (world.found("busy")["status"], world.found("busy")["attempts"]) == ("failed", 20)
    assert not world.fifo.dead
    assert not any(world.queues.dead.values())
    assert [call.name for call in world.network.calls] == ["busy", "good", *["busy"] * 19]


def test_faxes_become_dead_letters_if_the_provider_is_down_and_a_later_redrive_delivers_them(
    new_fax_world: NewFaxWorld,
) -> None:
    world = new_fax_world()
    world.put(fated_fax("good"), fated_fax("good-there", THERE))
    world.network.down = True
    run_sender(world, 500)
    assert sorted(letter.group for letter in world.fifo.dead) == sorted(["+16175551234", THERE])
    assert world.network.calls == []
    assert world.callbacks("good") == []
    world.network.down = False
    world.fifo.redrive()
    world.settle()
    assert world.network.delivered() == {"good": 1, "good-there": 1}


def test_a_submitted_fax_keeps_its_line_locked_during_an_outage_and_is_delivered_afterwards(
    new_fax_world: NewFaxWorld,
) -> None:
    world = new_fax_world()
    world.put(fated_fax("slow"), fated_fax("good"))
    world.outside.intrude = (3, lambda: setattr(world.network, "down", True))  # the first poll of the fax
    run_sender(world, 1)
    began = world.clock()
    while world.clock() < began + TIMES.longest_fax - 100:
        run_sender(world, 1)
        assert [call.name for call in world.network.calls] == ["slow"]
        assert not world.fifo.dead
    world.network.down = False
    world.settle()
    assert [call.name for call in world.network.calls] == ["slow", "good"]
    assert world.found("slow")["status"] == "delivered"
    assert set(world.network.most_at_once().values()) == {1}


def test_a_submitted_fax_locks_its_line_for_the_longest_fax_time_whenever_the_ledger_goes_down(
    new_fax_world: NewFaxWorld,
) -> None:
    for at in (*range(16), *range(16, 1_000, 16)):
        world = new_fax_world()
        world.jitter = 0.0  # each wait is at its shortest
        world.put(fated_fax("endless"))
        world.fifo.letters[0].receives = RULES.last_submit_receive - 1
        world.outside.intrude = (at, lambda stream=world.stream: setattr(stream, "down", True))
        while not world.fifo.dead:
            run_sender(world, 1)
        if not world.stream.down:
            break
        for call in world.network.calls:  # no submit if the outage began before it
            assert world.clock() >= call.began + TIMES.longest_fax
    assert at > 100


def test_a_fax_whose_send_fax_is_killed_at_every_poll_is_delivered_without_a_further_submit(
    new_fax_world: NewFaxWorld,
) -> None:
    world = new_fax_world()
    world.put(fated_fax("slow"), fated_fax("good"))
    for _ in range(12):
        world.outside.stop = (len(world.outside.calls) + 3, "before")
        run_sender(world, 1)
        if len(world.network.calls) > 1:
            break
    world.outside.stop = None
    world.settle()
    assert [call.name for call in world.network.calls] == ["slow", "good"]
    assert world.found("slow")["status"] == world.found("good")["status"] == "delivered"
    assert set(world.network.most_at_once().values()) == {1}


def test_a_fax_that_takes_several_invocations_is_submitted_once(new_fax_world: NewFaxWorld) -> None:
    world = new_fax_world()
    world.put(fated_fax("slow"))
    world.settle()
    assert [call.name for call in world.network.calls] == ["slow"]
    (call,) = world.network.calls
    assert call.ends - call.began > 2 * FUNCTION_SECONDS
    assert world.found("slow")["attempts"] == 1


def test_a_fax_received_too_often_before_its_submit_becomes_a_dead_letter_that_a_redrive_delivers(
    new_fax_world: NewFaxWorld,
) -> None:
    world = new_fax_world()
    world.put(fated_fax("good"))
    world.fifo.letters[0].receives = 30
    run_sender(world, 500)
    assert world.network.calls == []
    assert len(world.fifo.dead) == 1
    assert "completedAt" not in world.found("good")
    world.fifo.redrive()
    world.settle()
    assert world.network.delivered() == {"good": 1}


def test_an_invalid_queue_message_becomes_a_dead_letter_soon_and_valid_faxes_are_delivered(
    new_fax_world: NewFaxWorld,
) -> None:
    world = new_fax_world()
    world.fifo.put('{"to": "+16175551234"}', "+16175551234", "no-id")
    world.put(
        fated_fax("good"),
        fated_fax("not-a-number", "12"),
        fated_fax("no-https", pdf_url="http://files.example/x.pdf"),
    )
    began = world.clock()
    world.settle()
    assert [letter.body for letter in world.fifo.dead] == ['{"to": "+16175551234"}']
    assert world.clock() - began < 120
    assert world.network.delivered() == {"good": 1}
    for name, field in (("not-a-number", "to"), ("no-https", "pdf_url")):
        assert world.found(name)["error"]["message"].startswith(field)
        assert [status for status, _ in world.callbacks(name)] == ["perm_fail"]
