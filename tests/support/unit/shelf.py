"""Templates that a test writes for itself."""

from pathlib import Path
from typing import Any

import pytest

from mailroom.content.templates import Content, Templates
from mailroom.errors import Invalid
from tests.support import ROOT

OURS = ROOT / "templates" / "mail"


class Shelf:
    """Templates that a test writes for itself."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, **parts: str) -> None:
        """`subject`, `html`, `text` of a template."""
        files = {"subject": "subject.txt", "html": "body.html", "text": "body.txt"}
        (self.root / name).mkdir(parents=True, exist_ok=True)
        for part, source in parts.items():
            (self.root / name / files[part]).write_text(source, encoding="utf-8")

    def render(self, **variables: Any) -> Content:
        return Templates(self.root).render("a", variables)

    def text(self, source: str, **variables: Any) -> str | None:
        """Return the text of a rendered body."""
        self.put("a", subject="Hello", text=source)
        return self.render(**variables).text

    def problem(self, source: str, **variables: Any) -> str:
        """The sentence of a text body that cannot be rendered."""
        with pytest.raises(Invalid) as caught:
            self.text(source, **variables)
        return str(caught.value)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)
