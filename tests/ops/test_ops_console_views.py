"""Each template of the console beside the Struct of its values."""

import pytest
from jinja2 import DictLoader, Environment
from msgspec import Struct

from mailroom_ops.console.application import environment_of
from mailroom_ops.console.server import PAGES
from mailroom_ops.console.site import Site, View
from tests.support.ops.console import HOME
from tests.support.ops.views import Walk


class Entry(Struct):
    """A part of a view."""

    code: str


class Stranger(View, frozen=True):
    """Values of a template that asks for more than there is."""

    name: str
    entries: list[Entry]


@pytest.fixture
def jinja_environment() -> Environment:
    return environment_of(Site(None, "dev"), HOME, PAGES)  # type: ignore[arg-type]


VIEWS = sorted(
    (view for view in View.__subclasses__() if view is not Stranger), key=lambda view: view.file_name()
)


def test_each_html_template_of_the_console_has_a_view_of_its_name(jinja_environment: Environment) -> None:
    pages = {*jinja_environment.list_templates()} - {"base.html", "parts.html"}
    assert pages == {view.file_name() for view in VIEWS}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.file_name())
def test_an_html_template_of_the_console_uses_only_fields_of_its_view(
    jinja_environment: Environment, view: type[View]
) -> None:
    assert Walk(jinja_environment).through(view) == []


def test_the_check_of_html_templates_reports_names_and_attributes_that_a_view_lacks(
    jinja_environment: Environment,
) -> None:
    source = "{{ done }}{% for entry in entries %}{{ entry.code }}{{ entry.count }}{% endfor %}{{ name[0] }}"
    jinja_environment.loader = DictLoader({"stranger.html": source})
    faults = [fault.partition(": ")[2] for fault in Walk(jinja_environment).through(Stranger)]
    assert faults == ["its view has no done", f"{Entry} has no count"]
