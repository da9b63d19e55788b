"""AWS's own descriptions of its requests: our clients check none, so that the tests must."""

from typing import Any

import botocore.session
from botocore.validate import ParamValidator


def problems(service: str, operation: str, arguments: dict[str, Any]) -> str:
    """What the service's model has against a request; "": nothing."""
    model = botocore.session.get_session().get_service_model(service)
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    report: str = ParamValidator().validate(arguments, shape).generate_report()
    return report
