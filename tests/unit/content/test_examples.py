"""Files with the rendering of each example of the repository's templates: `python -m` this module writes them
anew."""

from pathlib import Path

import pytest

from mailroom.channels.preview import Preview
from mailroom_ops.templates.folder import TemplateFolder
from tests.support import ROOT

FOLDER = TemplateFolder(ROOT / "templates")
HERE = Path(__file__).parent / "rendered"
EXAMPLES = [
    (template, name, attributes)
    for template in FOLDER.all()
    for name, attributes in FOLDER.examples(template).items()
]
IDS = [f"{template.channel}-{template.name}-{name}" for template, name, _ in EXAMPLES]


def preview_text(preview: Preview) -> str:
    headers = "".join(f"{name}: {value}\n" for name, value in preview.headers.items())
    parts = [preview.text or "", preview.html or ""]
    return "\n---\n".join([headers, *parts]).rstrip() + "\n"


@pytest.mark.parametrize(("at", "name"), list(enumerate(IDS)), ids=IDS)
def test_each_example_of_a_template_renders_to_the_text_in_its_file(at: int, name: str) -> None:
    template, _, attributes = EXAMPLES[at]
    found = preview_text(FOLDER.look(FOLDER.item(template, attributes)))
    assert found == (HERE / f"{name}.txt").read_text()


def test_each_rendered_file_belongs_to_an_example_of_a_template() -> None:
    assert sorted(each.stem for each in HERE.iterdir()) == sorted(IDS)


if __name__ == "__main__":
    for (template, _, attributes), name in zip(EXAMPLES, IDS, strict=True):
        (HERE / f"{name}.txt").write_text(preview_text(FOLDER.look(FOLDER.item(template, attributes))))
