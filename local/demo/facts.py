"""What the demo has to know of the stage that it runs on."""

from dataclasses import dataclass

from local.aws import LocalSession, patient
from local.state import State


@dataclass(frozen=True)
class Facts:
    """`max_attempts` of a fax, `function_seconds` that its sender may take, and the secret that signs."""

    max_attempts: int
    function_seconds: int
    signing_secret: str

    @classmethod
    def of(cls, running: State) -> "Facts":
        """Asked of the deployed stage itself."""
        session, url = LocalSession(), running.endpoints.aws
        functions = session.client("lambda", endpoint_url=url, config=patient())
        sender = functions.get_function_configuration(FunctionName=running.outputs["SendFaxFunctionName"])
        secrets = session.client("secretsmanager", endpoint_url=url, config=patient())
        return cls(
            int(sender["Environment"]["Variables"]["MAX_ATTEMPTS"]),
            sender["Timeout"],
            secrets.get_secret_value(SecretId=running.outputs["WebhookSigningSecretName"])["SecretString"],
        )
