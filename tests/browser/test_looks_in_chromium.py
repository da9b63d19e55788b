"""The looks of the console's pages, measured in a real Chromium: `make browser`."""

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import ROOT, Stage, admitted
from tests.browser.test_console_in_chromium import mail_to_ada

api = pytest.importorskip("playwright.sync_api", reason="it needs a real Chromium: make browser")
expect = api.expect
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
LONG = "A subject that is far too long for the line of a list, because it repeats the name of the shop"
ROW = 40
"""Pixels of a line of a list."""


@pytest.fixture
def wide(stage: Stage, chromium: Any) -> Iterator[Any]:
    """Yield a page in a window of the width of a notebook."""
    with admitted(stage, chromium, viewport=WIDE) as page:
        yield page


def heights(page: Any, selector: str) -> list[float]:
    return [box["height"] for box in (part.bounding_box() for part in page.locator(selector).all())]


def in_list(page: Any, path: str, id_: str) -> Any:
    """Return the row of a message, once the list has it."""
    page.goto(f".{path}")
    row = page.locator(".lines li").filter(has_text=id_)
    expect(row).to_be_visible()
    return row


def test_a_message_in_a_list_is_one_line_with_its_time_channel_recipient_subject_and_id(
    stage: Stage, wide: Any
) -> None:
    stage.put(**mail_to_ada("line-1", to="line@example.com", subject=LONG))
    row = in_list(wide, "/messages?q=line@example.com", "line-1")
    expect(row.locator(".clock")).to_have_text(re.compile(r"^\w+ \d\d, \d\d:\d\d:\d\d$"))
    for cell, words in ((".icon title", "mail"), (".who", "line@example.com"), (".id", "line-1")):
        expect(row.locator(cell)).to_have_text(words)
    expect(row.get_by_role("link")).to_have_attribute("title", f"{LONG} · line@example.com · line-1")
    assert {*heights(wide, ".lines li")} == {ROW}


def test_a_failed_message_in_a_list_is_one_line_that_contains_its_reason(stage: Stage, wide: Any) -> None:
    stage.put(**mail_to_ada("line-2", to="line@"))
    row = in_list(wide, "/failures", "line-2")
    expect(row.get_by_role("link")).to_contain_text("to: 'line@' is not a mail address")
    assert {*heights(wide, ".lines li")} == {ROW}


def test_a_message_in_a_list_takes_at_most_two_lines_of_text_on_a_phone(stage: Stage, page: Any) -> None:
    stage.put(**mail_to_ada("line-3", to="phone@example.com", subject=LONG))
    page.set_viewport_size(PHONE)
    in_list(page, "/messages?q=phone@example.com", "line-3")
    assert heights(page, ".lines li")[0] < 1.6 * ROW


@pytest.fixture
def itemized() -> Iterator[str]:
    """A template with a list of maps, which exists during the test only."""
    folder = ROOT / "templates" / "mail" / "looks-itemized"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "examples").mkdir(parents=True)
    (folder / "subject.txt").write_text("Order {{ order }}\n")
    (folder / "body.txt").write_text("{% for line in lines %}{{ line.what }} {{ line.price }}{% endfor %}\n")
    (folder / "examples" / "one.json").write_text(
        '{"order": "1", "lines": [{"what": "Tea", "quantity": 1, "colour": "green", "price": "3.20"}]}\n'
    )
    yield folder.name
    shutil.rmtree(folder)


def test_the_input_rows_of_a_list_variable_are_not_wider_than_their_form(
    stage: Stage, wide: Any, itemized: str
) -> None:
    lines = [{"what": "Tea", "quantity": 1, "colour": "green", "price": "3.20"}] * 2
    order = mail_to_ada("rows-1", template=itemized, order="1", lines=lines)
    del order["subject"], order["text"]
    stage.put(**order)
    wide.goto("./send?channel=mail&copy=rows-1")
    rows, form = wide.locator(".rows"), wide.locator("#item").bounding_box()
    expect(rows.get_by_role("button", name="Remove row 2 of lines")).to_be_visible()
    box = rows.locator("table").bounding_box()
    assert box["x"] + box["width"] <= form["x"] + form["width"]


def test_a_long_list_of_recipients_of_a_mail_is_folded_until_it_is_clicked(stage: Stage, wide: Any) -> None:
    stage.put(**{**mail_to_ada("fifty"), "to": [f"person{number}@example.com" for number in range(50)]})
    in_list(wide, "/messages?q=fifty", "fifty").get_by_role("link").click()
    to = wide.locator(".letter dd").filter(has_text="person0@example.com")
    expect(to).to_contain_text("person1@example.com and 48 more")
    assert to.bounding_box()["height"] < 2 * ROW
    to.get_by_text("and 48 more").click()
    expect(to.get_by_text("person49@example.com")).to_be_visible()


MIDDLES = """row => [...row.querySelectorAll("th, .button, button, input:not([type=hidden])")].map(part => {
  const range = document.createRange();
  range.selectNodeContents(part);
  const box = (part.matches("th") ? range : part).getBoundingClientRect();
  return box.top + box.height / 2;
})"""
"""Heights of the middles of a row's title and of its controls."""


@pytest.mark.parametrize("path", ["/lanes", "/dead-letters"])
def test_a_row_of_lanes_or_dead_letters_has_its_title_and_its_controls_on_one_line(
    stage: Stage, wide: Any, path: str
) -> None:
    stage.bury("mail", mail_to_ada("aligned", attempt=1))
    wide.goto(f".{path}")
    middles = wide.locator("tbody tr").first.evaluate(MIDDLES)
    assert len(middles) == 3
    assert max(middles) - min(middles) <= 1


@pytest.mark.parametrize("height", [60, 2_000])
@pytest.mark.parametrize("doctype", ["<!doctype html>", ""])
def test_the_frame_of_a_mail_is_as_high_as_the_mail(
    stage: Stage, wide: Any, height: int, doctype: str
) -> None:
    id_ = f"high-{height}-{len(doctype)}"
    body = f"<body style='margin: 0'><div style='height: {height}px'>Hi</div>"
    stage.put(**mail_to_ada(id_, html=f"{doctype}{body}"))
    in_list(wide, f"/messages?q={id_}", id_).get_by_role("link").click()
    frame = wide.locator("iframe")
    expect(frame).to_have_css("height", f"{height + 2}px")
    wide.get_by_text("Source", exact=True).click()
    wide.set_viewport_size({"width": 700, "height": 800})
    wide.get_by_text("Preview", exact=True).click()
    expect(frame).to_have_css("height", f"{height + 2}px")


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.textContent || document.activeElement.id"))


def test_the_console_has_keys_to_search_move_through_rows_open_a_message_and_close_a_section(
    stage: Stage, wide: Any
) -> None:
    for number in range(3):
        stage.put(**mail_to_ada(f"key-{number}", to="keys@example.com", subject=f"Key {number}"))
    wide.goto("./messages?q=keys@example.com&live=off")
    rows = wide.locator(".lines li")
    while rows.count() < 3:
        wide.wait_for_timeout(300)
        wide.reload()
    subjects = [row.text_content() for row in rows.locator("a").all()]
    for key, index in (("j", 0), ("j", 1), ("j", 2), ("j", 2), ("k", 1), ("k", 0), ("k", 0)):
        wide.keyboard.press(key)
        assert focused(wide) == subjects[index]
    wide.keyboard.press("/")
    assert focused(wide) == "find"
    wide.keyboard.press("End")
    wide.keyboard.type("/jk")  # typed keys reach a field
    expect(wide.get_by_role("searchbox")).to_have_value("keys@example.com/jk")
    wide.keyboard.press("Escape")
    wide.keyboard.press("j")
    wide.keyboard.press("Enter")
    expect(wide.get_by_role("heading", level=1)).to_have_text(subjects[0])
    wide.goto("./people?recipient=keys@example.com")
    wide.get_by_text("Turn off").first.click()
    expect(wide.locator("details[open]")).to_have_count(1)
    wide.keyboard.press("Escape")
    expect(wide.locator("details[open]")).to_have_count(0)
    assert wide.evaluate("document.activeElement === document.body")


def test_the_filters_of_messages_are_folded_under_their_number_on_a_phone_and_open_on_a_wide_screen(
    page: Any,
) -> None:
    page.set_viewport_size(PHONE)
    page.goto("./messages?status=sent&event_type=mail&template=")
    field = page.get_by_label("Template")
    expect(field).to_be_hidden()
    page.get_by_text("Filters (2)").click()
    expect(field).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.set_viewport_size(WIDE)
    expect(field).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).to_be_visible()
