"""What a deployed function was told by its stack: a stage may be of another version than the one here."""

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from mailroom import environment
from ops.screen import NotDeployed, Refused

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

T = TypeVar("T", bound=Struct)


def function_variables(functions: "LambdaClient", name: str) -> dict[str, str]:
    """A function's environment, as it stands there: lists and maps are JSON. Raises NotDeployed where there
    is no such function."""
    try:
        reply = functions.get_function_configuration(FunctionName=name)
    except functions.exceptions.ResourceNotFoundException:
        raise NotDeployed(f"function {name}") from None
    return dict(reply.get("Environment", {}).get("Variables", {}))


def function_settings(functions: "LambdaClient", name: str, kind: type[T]) -> T:
    """A function's settings, as it reads them itself. Raises Refused where there is no such function, or
    where it is of a version that sets others."""
    try:
        return environment.read(kind, function_variables(functions, name))
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of {name} are not as this version knows them: {error}. Deploy this version, or "
            "use the command of the version that is deployed."
        ) from None
