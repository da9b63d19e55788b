"""A count that grew is said in the changelog, and one that fell is kept."""

import pytest

from bench.least import faults, lowered

LEAST = {"modules.send_mail": 22, "calls_by_name.UpdateItem": 2.0, "bundle_kb.send_mail": 1000}


def said(note: str = "", **changed: float) -> list[str]:
    """The faults of these figures, by the changelog's unreleased part."""
    names = {name.rpartition(".")[2]: name for name in LEAST}
    now = LEAST | {names.get(name, f"calls_by_name.{name}"): figure for name, figure in changed.items()}
    return [*faults(now, LEAST, f"# Changelog\n\n## [Unreleased]\n\n- {note}\n\n## [0.2.0]\n\n- Old.\n")]


def test_what_is_as_it_was_needs_no_word() -> None:
    assert said() == []


def test_what_grew_is_told_with_both_figures_and_what_to_do() -> None:
    (sentence,) = said(UpdateItem=2.1)
    assert sentence == (
        "`calls_by_name.UpdateItem` grew from 2.0 to 2.1: make it smaller again, or say why in CHANGELOG.md, "
        "under Unreleased, with these words in the text: `calls_by_name.UpdateItem` 2.1."
    )


@pytest.mark.parametrize("note", ["(`calls_by_name.UpdateItem` 2.1).", "`calls_by_name.UpdateItem`\n  2.1"])
def test_a_note_with_the_name_and_the_figure_lets_it_grow(note: str) -> None:
    assert said(note, UpdateItem=2.1) == []


def test_a_note_of_another_figure_does_not() -> None:
    assert len(said("`calls_by_name.UpdateItem` 2.1", UpdateItem=2.2)) == 1


def test_a_note_of_an_earlier_release_does_not() -> None:
    assert len(said("\n## [0.2.1]\n\n- `calls_by_name.UpdateItem` 2.1", UpdateItem=2.1)) == 1


def test_a_call_that_is_new_grew_from_nothing() -> None:
    (sentence,) = said(TransactWriteItems=0.1)
    assert "grew from 0 to 0.1" in sentence


def test_what_fell_is_to_be_kept() -> None:
    (sentence,) = said(UpdateItem=1.0)
    assert "fell from 2.0 to 1.0: run `make least`" in sentence


def test_a_note_of_what_has_not_grown_is_to_be_taken_out() -> None:
    (sentence,) = said("`calls_by_name.UpdateItem` 2.1")
    assert "take its 2.1 out" in sentence


@pytest.mark.parametrize(("kilobytes", "sentences"), [(990, 0), (1010, 0), (989, 1), (1011, 1)])
def test_a_line_of_code_in_a_bundle_is_no_news_and_a_hundredth_is(kilobytes: int, sentences: int) -> None:
    assert len([*faults(LEAST | {"bundle_kb.send_mail": kilobytes}, LEAST, "")]) == sentences


def test_keeping_lowers_and_never_raises() -> None:
    now = {"modules.send_mail": 23, "calls_by_name.UpdateItem": 1.0, "calls_by_name.TransactWriteItems": 1.0}
    assert lowered(now, LEAST) == {"modules.send_mail": 22, "calls_by_name.UpdateItem": 1.0}
