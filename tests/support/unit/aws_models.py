"""AWS's own descriptions of its requests: our clients check none, so that the tests must."""

from typing import Any

import botocore.session
from botocore.validate import ParamValidator


def problems(service: str, operation: str, arguments: dict[str, Any]) -> str:
    """Return the error of the service's model about a request, or an empty text."""
    model = botocore.session.get_session().get_service_model(service)
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    report: str = ParamValidator().validate(arguments, shape).generate_report()
    return report
