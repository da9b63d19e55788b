"""Templates: whatever its operations and variables, a rendering takes little time and memory from its
function."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.bench.template_operations import FILTERS, METHODS, TESTS, cost_of, drawn, drawn_source
from mailroom.content import own_process
from mailroom.content.engine import FUEL, SMALL_FUEL, SMALL_VARIABLES_BYTES, TemplateFault
from mailroom.content.own_process import MAX_CPU_SECONDS, MAX_MEGABYTES, ExhaustedError
from mailroom.content.templates import engine_of
from mailroom.content.variables import values_of

TOO_MUCH = (
    f"template: a/body.txt takes more than {MAX_CPU_SECONDS:g} s or {MAX_MEGABYTES} MB; "
    "loop over less, send smaller variables, and write no value that contains itself"
)


def render(source: str, **variables: Any) -> str:
    return engine_of({"a/body.txt": source}).render("a/body.txt", values_of(variables))


@pytest.mark.process
def test_template_operations_with_extreme_operands_stay_within_the_limits_of_time_and_memory() -> None:
    for seed in range(60):
        source, variables = drawn(seed)
        # The CPU time is that of processes, which do not count the time for which they wait.
        seconds, megabytes, result = cost_of(source, variables)
        assert (seconds <= 1.5, megabytes <= 40) == (True, True), (seed, seconds, megabytes, result, source)


def test_the_random_templates_use_each_filter_test_and_method_of_the_template_engine() -> None:
    sources = " ".join(drawn_source(seed)[0] for seed in range(2000))
    undrawn = [name for name in (*FILTERS, *TESTS, *METHODS) if name not in sources]
    assert undrawn == []
    assert len(FILTERS) > 50
    assert len(TESTS) > 30


@pytest.mark.process
@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("{{ greeting|format(order) }}", {"greeting": "%(a).1s" * 9_000, "order": {"a": [0] * 30_000}}),
        ("{{ greeting|format(order) }}", {"greeting": "%(a)s" * 12_000, "order": {"a": "x" * 60_000}}),
        ("{{ order|tojson(0 + n) }}", {"order": [1], "n": 10**9}),
        ("{{ [order]|map('tojson', n)|join }}", {"order": [1], "n": 10**9}),
        ("{{ p. format(x) }}", {"p": "{0}" * 20_000, "x": "x" * 60_000}),
        (
            "{{ rows|map(**options)|list }}",
            {"rows": ["a"] * 15_000, "options": {"attribute": "0." * 30_000 + "0"}},
        ),
        ("{{ v|wordwrap(width=1, wrapstring=w) }}", {"v": "a " * 30_000, "w": "b" * 60_000}),
        (
            "{% set ns = namespace(a=1) %}{% for x in range(n) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
            "{{ ns.a }}",
            {"n": 40},
        ),
        ("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", {}),
        # These have small variables.
        ("Total: {{ price * quantity }} EUR", {"price": [1], "quantity": 10**8}),
        ("{{ ''.join(['*'] * rating) }}", {"rating": 10**8}),
        ("{{ greeting.format(name) }}", {"greeting": "{0:99999999}" * 5, "name": "x"}),
        (
            "{{ t|replace('a', b)|wordwrap(width=1, wrapstring=w) }}",
            {"t": "a" * 200, "b": "b " * 250, "w": "d" * 3000},
        ),
        (
            "{% macro m(f, x, n) %}{% if n %}{{ f(f, [x, x], n - 1) }}{% else %}{{ x }}{% endif %}"
            "{% endmacro %}{{ m(m, 1, n) }}",
            {"n": 24},
        ),
    ],
)
def test_a_rendering_that_takes_too_much_time_or_memory_is_refused_with_the_limits(
    source: str, variables: dict[str, Any]
) -> None:
    with pytest.raises(TemplateFault) as caught:
        render(source, **variables)
    assert str(caught.value) == TOO_MUCH


@pytest.mark.parametrize(
    ("source", "is_cheap"),
    [
        ("Dear {{ name }}", True),
        ("{{ price * quantity }}", False),
        ("{% if deep %}{% set deep = false %}{% include 'a/body.txt' %}{% endif %}", False),
    ],
    ids=["cheap", "a costly operation", "a template that uses itself"],
)
def test_a_template_that_may_take_much_work_is_rendered_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, source: str, is_cheap: bool
) -> None:
    works = list[Callable[[], bytes]]()

    def run(work: Callable[[], bytes]) -> bytes:
        works.append(work)
        return work()

    monkeypatch.setattr(own_process, "run", run)
    render(source, name="Ada", price=2, quantity=3, deep=False)
    assert len(works) == (not is_cheap)


@pytest.mark.process
def test_a_rendering_in_a_process_of_its_own_has_the_same_result_as_in_the_callers_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes, run = list[object](), own_process.run

    def counted(work: Callable[[], bytes]) -> bytes:
        processes.append(work)
        return run(work)

    monkeypatch.setattr(own_process, "run", counted)
    source = "{% for x in rows %}{{ loop.index }} {{ x.name }} é, {% endfor %}{{ total }}"
    rows = [{"name": f"n{number}"} for number in range(5)]
    small = render(source, rows=rows, total=1)
    assert processes == []
    large = render(source, rows=rows, total=1, unused="x" * SMALL_VARIABLES_BYTES)
    assert (large, len(processes)) == (small, 1)
    assert render("{% for x in range(n) %}.{% endfor %}", n=SMALL_FUEL) == "." * SMALL_FUEL
    assert len(processes) == 2
    with pytest.raises(TemplateFault) as caught:
        render("{{ a }}{{ missing }}", a="x" * SMALL_VARIABLES_BYTES)
    assert (caught.value.field, caught.value.place) == ("missing", "a/body.txt:1")
    text = "x" * 500_000  # MiniJinja's error about used-up fuel lacks a line
    assert render(f"{text}{{{{ a }}}}", a=1) == f"{text}1"
    with pytest.raises(TemplateFault) as caught:
        render("{% for x in range(99999) %}{{ a }}{% endfor %}", a=1)
    assert f"it takes over {FUEL:,} steps" in str(caught.value)


@pytest.mark.process
def test_each_thread_gets_the_result_of_the_process_that_it_started() -> None:
    results = dict[int, bytes]()

    def ask(number: int) -> None:
        results[number] = own_process.run(lambda: f"{number}".encode() * 100_000)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: f"{number}".encode() * 100_000 for number in range(8)}


@pytest.mark.process
@pytest.mark.parametrize("work", ["time", "memory", "exit", "error"])
def test_work_that_ends_its_process_or_exceeds_a_limit_raises_an_error_in_the_caller(
    work: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def endless() -> bytes:
        while True:
            pass

    def failing() -> bytes:
        raise ValueError

    works = {"time": endless, "memory": lambda: b"x" * 2**26, "exit": lambda: os._exit(3), "error": failing}
    with pytest.raises(ChildProcessError if work == "error" else ExhaustedError):
        own_process.run(works[work])
    assert ("ValueError" in capfd.readouterr().err) == (work == "error")


def test_open_files_are_closed_if_a_process_for_work_cannot_be_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(BlockingIOError):
        own_process.run(lambda: b"")
    assert len([*Path("/proc/self/fd").iterdir()]) == before
