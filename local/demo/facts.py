"""What the demo has to know of the stage that it runs on."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

from local.aws import STAGE, LocalSession, patient
from local.stage.workspace import REPOSITORY, State


@dataclass(frozen=True)
class Facts:
    """`max_attempts` of a fax, `function_seconds` that its sender may take, the key that the webhook receiver
    verifies with, and the ARNs of what may be pushed to: platform applications by name, and topics."""

    max_attempts: int
    function_seconds: int
    receivers_key: str
    applications: dict[str, str]
    topics: list[str]

    @classmethod
    def of(cls, running: State) -> "Facts":
        """Asked of the deployed stage itself."""
        session, url = LocalSession(), running.endpoints.aws
        functions = session.client("lambda", endpoint_url=url, config=patient())
        sender = functions.get_function_configuration(FunctionName=running.outputs["SendFaxFunctionName"])
        pusher = functions.get_function_configuration(FunctionName=running.outputs["SendPushFunctionName"])
        pushes = pusher["Environment"]["Variables"]
        return cls(
            int(sender["Environment"]["Variables"]["MAX_ATTEMPTS"]),
            sender["Timeout"],
            _receivers_key(running),
            json.loads(pushes["PLATFORM_APPLICATIONS"]),
            json.loads(pushes["TOPICS"]),
        )


def _receivers_key(running: State) -> str:
    """Asked of the operator's command, as whoever runs a receiver gets it."""
    command = ["ops", "webhook-key", running.endpoints.providers, "--stage", STAGE]
    printed = subprocess.check_output(
        [sys.executable, "-m", *command], cwd=REPOSITORY, env=os.environ | running.variables(), text=True
    )
    return printed.strip()
