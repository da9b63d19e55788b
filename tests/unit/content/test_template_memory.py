"""Templates: a rendering never affects the next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mailroom.content.engine import Engine
from mailroom.content.templates import FILES, Templates, engine_of
from mailroom.content.variables import values_of
from tests.support.unit.shelf import OURS

STATE = (
    "{% set seen = namespace(last='nobody', count=0) %}{% set shade = cycler(['odd', 'even']) %}"
    "{% set comma = joiner() %}"
    "{% macro row(x) %}{% set seen.count = seen.count + 1 %}{{ comma() }}{{ seen.count }}. "
    "{{ shade.next() }} {{ x }} after {{ seen.last }}{% set seen.last = x %}{% endmacro %}"
)
"""A part whose names can be changed: each was kept from mail to mail by Jinja2's cache of imports."""
USES = {
    "import": "{% import '_parts/rows.txt' as parts %}{{ parts.row(name) }}{{ parts.row('Eve') }}",
    "import with context": "{% import '_parts/rows.txt' as parts with context %}{{ parts.row(name) }}",
    "from import": "{% from '_parts/rows.txt' import row %}{{ row(name) }}{{ row(name) }}",
    "include": "{% include '_parts/rows.txt' %}{{ seen is defined }}",
    "extends": "{% extends '_parts/base.txt' %}{% block inner %}{{ row(name) }}{% endblock %}",
    "a macro's default": "{% macro m(x, rows=namespace(n=0)) %}{% set rows.n = rows.n + x %}{{ rows.n }}"
    "{% endmacro %}{{ m(1) }}{{ m(2) }}{{ name }}",
    "loop.changed": "{% for x in [name, name] %}{{ loop.changed(x) }}{% endfor %}",
    "its own name": "{% set name = name ~ '!' %}{{ name }}",
}
PARTS = {
    "_parts/rows.txt": STATE,
    "_parts/base.txt": STATE + "{% block inner %}{% endblock %}",
    **{f"{use}/body.txt": source for use, source in USES.items()},
}


def of_a_folder(folder: Path) -> Engine:
    for name, source in PARTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(source)
    return engine_of(folder)


def of_a_bundle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    of_a_folder(folder)
    monkeypatch.chdir(folder)
    return engine_of(Path())


@pytest.mark.parametrize("source", ["folder", "bundle", "published"])
@pytest.mark.parametrize("use", USES)
def test_the_content_of_a_mail_does_not_depend_on_the_mails_rendered_before_it(
    use: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: dict[str, Callable[[], Engine]] = {
        "folder": lambda: of_a_folder(tmp_path),
        "bundle": lambda: of_a_bundle(tmp_path, monkeypatch),
        "published": lambda: engine_of(PARTS),
    }
    engine = engines[source]()
    ada, bob, again = (
        engine.render(f"{use}/body.txt", values_of({"name": name})) for name in ("Ada", "Bob", "Ada")
    )
    assert again == ada
    assert "Ada" not in bob
    assert bob == engines[source]().render(f"{use}/body.txt", values_of({"name": "Bob"}))


@pytest.mark.parametrize("name", Templates(OURS).names())
def test_a_mail_of_a_shipped_template_does_not_depend_on_the_mails_rendered_before_it(name: str) -> None:
    texts = engine_of(OURS).variables(*(f"{name}/{file}" for file in FILES))
    mails: list[dict[str, Any]] = [
        {text: f"{person}'s {text}" for text in texts} | {"new_followers": 3, "followers": [person]}
        for person in ("Ada", "Bob", "Ada")
    ]
    ada, bob, again = map(Templates(OURS).render, [name] * 3, mails)
    assert again == ada
    assert "Ada" not in f"{bob}"
