"""A function's settings are read in one way, and refused with a sentence if they are invalid."""

import pytest
from msgspec import Struct

from mailroom_ops.shared.deployed_stage import function_settings, function_variables
from mailroom_ops.shared.screen import Refused
from tests.support.ops.repair import Functions


class Settings(Struct, frozen=True, rename="upper"):
    """Settings of a function."""

    name: str
    lanes: dict[str, list[str]]
    seconds: float = 1


def functions_with(**variables: str) -> Functions:
    return Functions({"mailroom-dev-f": variables})


def settings_of_function(**variables: str) -> Settings:
    return function_settings(functions_with(**variables), "mailroom-dev-f", Settings)  # type: ignore[arg-type]


def test_the_settings_of_a_deployed_function_are_parsed_from_its_environment_variables() -> None:
    found = settings_of_function(
        NAME="a", LANES='{"mail": ["normal"]}', SECONDS="2.5", OTHER="{ no JSON, and not asked for"
    )
    assert found == Settings("a", {"mail": ["normal"]}, 2.5)


@pytest.mark.parametrize("lanes", [{}, {"LANES": "{"}, {"LANES": "none"}])
def test_the_error_about_settings_of_another_version_names_the_function_and_the_setting(
    lanes: dict[str, str],
) -> None:
    with pytest.raises(
        Refused, match=r"The settings of mailroom-dev-f are those of another version: .*LANES"
    ):
        settings_of_function(NAME="a", **lanes)


def test_the_error_about_a_missing_function_names_the_function() -> None:
    with pytest.raises(Refused, match="There is no function mailroom-dev-g in this account"):
        function_variables(functions_with(), "mailroom-dev-g")  # type: ignore[arg-type]
