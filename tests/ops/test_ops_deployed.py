"""A function's settings are read in one way, and refused in words where they cannot be."""

import pytest
from msgspec import Struct

from mailroom_ops.shared.deployed_stage import function_settings, function_variables
from mailroom_ops.shared.screen import Refused
from tests.support.ops.repair import Functions


class Settings(Struct, frozen=True, rename="upper"):
    """Some function's."""

    name: str
    lanes: dict[str, list[str]]
    seconds: float = 1


def functions(**variables: str) -> Functions:
    return Functions({"mailroom-dev-f": variables})


def read(**variables: str) -> Settings:
    return function_settings(functions(**variables), "mailroom-dev-f", Settings)  # type: ignore[arg-type]


def test_settings_are_read_as_the_function_reads_them() -> None:
    found = read(NAME="a", LANES='{"mail": ["normal"]}', SECONDS="2.5", OTHER="{ no JSON, and not asked for")
    assert found == Settings("a", {"mail": ["normal"]}, 2.5)


@pytest.mark.parametrize("lanes", [{}, {"LANES": "{"}, {"LANES": "none"}])
def test_settings_of_another_version_are_refused_by_name(lanes: dict[str, str]) -> None:
    with pytest.raises(
        Refused, match=r"The settings of mailroom-dev-f are those of another version: .*LANES"
    ):
        read(NAME="a", **lanes)


def test_a_missing_function_is_named() -> None:
    with pytest.raises(Refused, match="There is no function mailroom-dev-g in this account"):
        function_variables(functions(), "mailroom-dev-g")  # type: ignore[arg-type]
