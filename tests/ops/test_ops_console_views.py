"""Each template of the console beside the Struct of its values."""

import pytest
from jinja2 import Environment
from jinja2.meta import find_undeclared_variables
from jinja2.nodes import Import, Macro, Name

from mailroom_ops.console.server import environment_of
from mailroom_ops.console.site import Site, View
from tests.support.ops.console import HOME

OF_EVERY_PAGE = {"page", "title", "request", "now"}
"""Names that each template has besides its view and the globals."""
VIEWS = {view.file_name(): view for view in View.__subclasses__()}


@pytest.fixture(scope="module")
def environment() -> Environment:
    return environment_of(Site(None, "dev"), HOME)  # type: ignore[arg-type]


def names_in(environment: Environment, file: str) -> set[str]:
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, file)
    tree = environment.parse(source)
    # Jinja counts names as undeclared that are set outside of a block, or in one branch only.
    own = {node.target for node in tree.find_all(Import)} | {node.name for node in tree.find_all(Macro)}
    own |= {node.name for node in tree.find_all(Name) if node.ctx == "store"}
    return find_undeclared_variables(tree) - own - {*environment.globals}


def test_each_template_has_a_view_of_its_name(environment: Environment) -> None:
    assert {*environment.list_templates()} - {"base.html", "parts.html"} == VIEWS.keys()


@pytest.mark.parametrize("file", sorted(VIEWS))
def test_a_template_has_no_name_that_its_view_lacks(environment: Environment, file: str) -> None:
    assert names_in(environment, file) <= {*VIEWS[file].__struct_fields__, *OF_EVERY_PAGE}


def test_the_parts_of_all_pages_need_no_view(environment: Environment) -> None:
    assert names_in(environment, "base.html") <= OF_EVERY_PAGE
    assert names_in(environment, "parts.html") == set()
