"""Writes down every AWS call of the function whose process this is.

Python imports a module of this name when it starts, before any code of the function. All of boto3's clients
build their requests in one method, and the URLs that they sign as well. What is written are names: the
operation, and what the call is about; never what a message says.
"""

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from botocore.client import BaseClient

_names = import_module("called").names_of
_client: Any = BaseClient
_build = _client._emit_api_params
_own = f"{os.environ['AWS_LAMBDA_FUNCTION_NAME']}-{os.getpid()}.jsonl"
_file = Path(os.environ["RECORDED_CALLS"], _own).open("a", buffering=1)  # noqa: SIM115 - as long as the process
_written: set[str] = set()


def _recorded(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
    call = [operation_model.service_model.service_name, operation_model.name, _names(api_params)]
    line = json.dumps(call, sort_keys=True)
    if line not in _written:
        _written.add(line)
        _file.write(f"{line}\n")
    return _build(client, api_params, operation_model, context)


_client._emit_api_params = _recorded
