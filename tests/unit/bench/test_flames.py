"""A sample is its frame's library's; a step of botocore has all that it calls."""

import re

import pytest

from bench.flames import merged

STACKS = {
    "handle (mailroom/worker.py)": 10,
    "_find_and_load (<frozen importlib._bootstrap>)": 9,
    "_make_api_call (botocore/client.py)": 8,
    "sign (botocore/signers.py)": 5,
    "_emit (botocore/hooks.py)": 3,
    "loads (json/__init__.py)": 2,
}


def frame(name: str, row: int, width: int) -> str:
    """As py-spy draws one."""
    name, y = name.replace("<", "&lt;").replace(">", "&gt;"), 52 + 16 * row
    return (
        f'<g><title>{name} ({width} samples, 1.00%)</title><rect x="0%" y="{y}" width="1%" height="15" '
        f'fill="rgb(1,2,3)" fg:x="0" fg:w="{width}"/><text x="0%" y="{y + 10}.5"></text></g>'
    )


@pytest.fixture
def graph() -> str:
    """Frames that each stand on the one before, drawn in another order."""
    frames = [frame(name, row, width) for row, (name, width) in enumerate({"all": 12, **STACKS}.items())]
    return "".join(reversed(frames))


def test_a_library_has_what_its_frames_take_themselves_and_what_nobody_elses_below_take(graph: str) -> None:
    assert merged([graph])[1] == {"Python": 2, "Mailroom": 2, "botocore rest": 3, "botocore sign": 5}


def test_frames_of_pythons_imports_are_left_out_and_the_ones_below_move_up(graph: str) -> None:
    drawn = merged([graph])[0]
    assert "importlib" not in drawn
    assert re.search(r'<title>_make_api_call \(botocore/client.py\) [^>]*><rect x="0.0000%" y="84"', drawn)


def test_of_several_graphs_a_frame_is_drawn_once_with_the_samples_of_all(graph: str) -> None:
    drawn, samples = merged([graph, graph])
    assert re.findall(r"<title>sign [^<]*", drawn) == [
        "<title>sign (botocore/signers.py) (10 samples, 41.67%)"
    ]
    assert samples.total() == 24
