"""Variables that are lists and maps in the console's form: rows and groups of cells instead of JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from mailroom_ops.console.pages import form
from mailroom_ops.console.site import Goto, Request, Site
from tests.support.ops.console import Browser, values_of
from tests.support.ops.message import MAILBOX, Stage

LINES = [{"item": "Engine", "count": 1, "gift": False}, {"item": "007", "count": 2, "gift": True}]
EXAMPLE: dict[str, Any] = {
    "to": "ada@example.com",
    "first_name": "Ada",
    "lines": LINES,
    "notes": ["Soon", "Mind the step"],
    "address": {"city": "London", "floor": 3},
    "nested": [{"of": [1]}],
}
ORDER = "Dear {{ first_name }},{% for line in lines %} {{ line.count }} x {{ line.item }}{% endfor %}"
CHOSEN = {"id": "m", "to": "ada@example.com", "template": "order", "var.first_name": "Ada"}
"""Fields of a message by the template `order`."""
LINE = {"var.lines[0][item]": "Engine", "var.lines[0][count]": "1", "var.lines[0][gift]": "false"}


@pytest.fixture
def stage(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a stage whose template `order` has lists and a map."""
    folder = tmp_path / "mail" / "order"
    (folder / "examples").mkdir(parents=True)
    (folder / "subject.txt").write_text("Your order")
    (folder / "body.txt").write_text(ORDER)
    (folder / "examples" / "one.json").write_text(json.dumps(EXAMPLE))
    for module in ("console.pages.form", "messages.items"):
        monkeypatch.setattr(f"mailroom_ops.{module}.TEMPLATES", tmp_path)
    stage.functions.environments = {"send-mail": {}}
    return stage


def post_step(site: Site, step: str, **fields: str) -> Any:
    return form.show(site, Request({"channel": "mail"}, {**fields, "step": step}))


def rows_of(shown: dict[str, Any]) -> dict[str, list[list[str]]]:
    """Return the names of the cells in each row by variable."""
    return {
        variable: [[*row.values()] for row in rows.values()] for variable, rows in shown["variables"].items()
    }


def test_the_form_shows_lists_and_maps_of_a_templates_example_as_cells_and_a_nested_list_as_json(
    site: Site,
) -> None:
    shown = values_of(post_step(site, "change", **CHOSEN))
    cells = [[f"var.lines[{row}][{key}]" for key in ("item", "count", "gift")] for row in range(2)]
    assert rows_of(shown) == {
        "lines": cells,
        "notes": [["var.notes[0]"], ["var.notes[1]"]],
        "address": [["var.address[city]", "var.address[floor]"]],
        "first_name": [["var.first_name"]],
        "nested": [["var.nested"]],
    }
    assert shown["examples"]["var.lines[1][item]"] == "007"


def test_cells_of_the_form_become_lists_and_maps_of_the_examples_types_without_blank_rows(
    site: Site, stage: Stage
) -> None:
    cells = {
        **LINE,
        "var.lines[1][item]": "",
        "var.lines[1][count]": " ",
        "var.lines[1][gift]": "",
        "var.lines[4][item]": "42",
        "var.lines[4][count]": "2.50",
        "var.lines[4][gift]": "true",
        "var.notes[0]": "",
        "var.notes[1]": "7",
        "var.address[city]": "",
        "var.address[floor]": "-1",
    }
    assert post_step(site, "send", **CHOSEN, **cells) == Goto("/message?id=m&channel=mail")
    item = stage.mailbox()["m"]
    second = {"item": "42", "count": 2.5, "gift": True}
    assert item["lines"] == [{"item": "Engine", "count": 1, "gift": False}, second]
    assert (item["notes"], item["address"]) == (["7"], {"city": "", "floor": -1})


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("var.lines[0][count]", "two", "lines[0][count]: 'two' is not a number, such as 1"),
        ("var.lines[0][count]", "", "lines[0][count]: '' is not a number, such as 1"),
        ("var.lines[0][gift]", "maybe", "lines[0][gift]: 'maybe' is not true or false"),
    ],
)
def test_a_cell_of_another_type_than_the_examples_is_refused_at_its_field(
    site: Site, stage: Stage, name: str, text: str, fault: str
) -> None:
    page = (
        Browser(stage.session)
        .enter()
        .post("/send?channel=mail", {**CHOSEN, **LINE, name: text, "step": "send"})
    )
    assert page.status == 400
    assert f'<a href="#f-{name}">' in page.text
    assert f'id="f-{name}"' in page.text
    assert f'<p class="fault" id="e-{name}">{escape(fault)}</p>' in page.text
    assert stage.mailbox() == {}


def test_the_form_refuses_a_list_without_a_filled_row_at_the_rows_of_the_list(site: Site) -> None:
    shown = values_of(post_step(site, "send", **CHOSEN, **dict.fromkeys(LINE, "")))
    assert [*shown["faults"]] == ["var.lines"]
    assert shown["elsewhere"] == []


def test_buttons_of_the_form_add_and_remove_a_row_of_a_list_without_a_script(stage: Stage) -> None:
    browser = Browser(stage.session).enter()

    def rows(button: str, value: str, **cells: str) -> list[str]:
        page = browser.post("/send?channel=mail", {**CHOSEN, **cells, button: value})
        assert page.status == 200
        return [each.split('"')[0] for each in page.text.split(' name="var.lines')[1:]]

    first, second, third = ([f"[{row}][{key}]" for key in ("item", "count", "gift")] for row in range(3))
    assert rows("add", "lines", **LINE) == [*first, *second]
    both = {**LINE, **{name.replace("[0]", "[1]"): "x" for name in LINE}}
    assert rows("remove", "var.lines[0]", **both) == second
    assert rows("add", "lines", **{f"var.lines{name}": "x" for name in second}) == [*second, *third]


COPIED: dict[str, Any] = {
    "template": "order",
    "first_name": "Ada",
    "lines": [{"item": "Engine, small", "count": 1, "gift": False}, {"item": "", "count": 3, "gift": True}],
    "notes": ["One\nTwo", ""],
    "address": {"floor": 3, "city": "Rome"},
    "codes": ["42", "null", '"x"', "9.50"],
    "uneven": [{"a": 1}, {"b": 2}],
    "mixed": [1, {"a": 1}],
    "empty": [],
    "none": {},
    "nested": [[1]],
    "odd": {"a.b": 1},
    "nothing": [None],
}


def test_the_form_for_a_copy_of_a_mail_shows_its_rows_and_sends_the_same_variables(
    site: Site, stage: Stage
) -> None:
    stage.put(MAILBOX, id="o-1", event_type="mail", to="ada@exmaple.com", **COPIED)
    shown = values_of(form.show(site, Request({"channel": "mail", "copy": "o-1"})))
    rows = rows_of(shown)
    names = ("lines", "notes", "codes", "uneven", "mixed", "nothing", "empty", "nested")
    assert [len(rows[name]) for name in names] == [2, 2, 4, 2, 2, 1, 1, 1]
    assert [rows[name] for name in ("empty", "nested", "odd")] == [
        [["var.empty"]],
        [["var.nested"]],
        [["var.odd"]],
    ]
    values = shown["values"]
    assert isinstance(post_step(site, "send", **values, to="ada@example.com"), Goto)
    copied = stage.mailbox()[values["id"]]
    assert {name: copied[name] for name in COPIED} == COPIED


def test_the_form_shows_a_time_in_a_date_field_unless_such_a_field_cannot_show_it(stage: Stage) -> None:
    browser = Browser(stage.session).enter()
    for time, typed in (("2027-11-21T09:00", ' type="datetime-local"'), ("tomorrow", "")):
        page = browser.post("/send?channel=mail", {**CHOSEN, "send_at": time, "step": "change"})
        start = page.text.index('name="send_at"')
        assert f'{typed} value="{time}"' in page.text[start : start + 300]
        assert ('type="datetime-local"' in page.text[start : start + 300]) == bool(typed)
