"""Deployed resources keep their names: a changed logical id or physical name replaces a resource, and loses
its content. The lists in deployed/ are those of the last intended change: `python -m
tests.stacks.test_deployed_names` writes them."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
from tests.support.stacks.names import PHYSICAL
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import variant

LISTS = Path(__file__).with_name("deployed")


@pytest.mark.parametrize("name", ["dev", "prod", "everything"])
def test_deployed_resources_keep_their_stack_their_logical_id_and_their_name(
    name: str, request: pytest.FixtureRequest
) -> None:
    templates: Templates = request.getfixturevalue(name)
    assert _named(templates) == (LISTS / f"{name}.txt").read_text().splitlines()


def _named(templates: Templates) -> list[str]:
    return sorted(line for stack in templates.stacks for line in _of_stack(stack, templates[stack].body))


def _of_stack(stack: str, body: dict[str, dict[str, dict[str, object]]]) -> Iterator[str]:
    for logical, resource in body["Resources"].items():
        properties = resource.get("Properties")
        given = properties if isinstance(properties, dict) else {}
        names = {key: given[key] for key in PHYSICAL if key in given}
        # The names of versions and assets contain a hash of their content, so they are not fixed.
        yield f"{stack} {logical} {resource['Type']} {json.dumps(names, sort_keys=True)}"
    for logical, output in body.get("Outputs", {}).items():
        yield f"{stack} {logical} output {json.dumps(output.get('Export'), sort_keys=True)}"


def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        everything = variant(EVERYTHING, campaigns=of_each_kind(Path(folder)))
        stages = {name: variant({}, name) for name in ("dev", "prod")}
        for name, templates in {**stages, "everything": everything}.items():
            (LISTS / f"{name}.txt").write_text("\n".join(_named(templates)) + "\n")


if __name__ == "__main__":
    _write()
