"""What the demo has to know of the stage that it runs on."""

import json
from dataclasses import dataclass

from local.aws import LocalSession, patient
from local.state import State
from mailroom.signing import host_key
from mailroom.url import host_of


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
        secrets = session.client("secretsmanager", endpoint_url=url, config=patient())
        return cls(
            int(sender["Environment"]["Variables"]["MAX_ATTEMPTS"]),
            sender["Timeout"],
            host_key(
                secrets.get_secret_value(SecretId=running.outputs["WebhookKeysSecretName"])["SecretString"],
                host_of(running.endpoints.providers),
            ),
            json.loads(pushes["PLATFORM_APPLICATIONS"]),
            json.loads(pushes["TOPICS"]),
        )
