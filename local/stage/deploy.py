"""Deploys a cloud assembly to the emulator with boto3 alone, as `cdk deploy` would, in a second."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.utils import parseaddr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.aws import LocalSession, patient
from local.providers.twilio_account import SECRET as TWILIO_SECRET
from local.stage import assembly
from local.stage.assembly import StackArtifact
from local.stage.processes import wait_until

if TYPE_CHECKING:
    from types_boto3_cloudformation.literals import CapabilityType
    from types_boto3_cloudformation.type_defs import StackTypeDef

CREDENTIALS = {
    "FaxSecretName": {"project": "local", "token": "local", "api_key": "local"},
    "TwilioSecretName": TWILIO_SECRET,
}
"""What the providers' simulators take, by the output that names the secret."""
PUSH_CREDENTIAL = {"PlatformCredential": "local"}
BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
CAPABILITIES: "list[CapabilityType]" = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
DEPLOY_SECONDS = 120
PROVIDERS = "http://providers.invalid"
"""Stands for the simulators' URL in templates: it is another at each start, and they are synthesized once."""


class DeployError(RuntimeError):
    """A stack could not be created; the message lists CloudFormation's own reasons."""


class Deployment:
    """The stacks of one assembly on one emulator."""

    def __init__(self, url: str) -> None:
        session = LocalSession()
        self._url = url
        self._formation = session.client("cloudformation", endpoint_url=url, config=patient())
        self._s3 = session.client("s3", endpoint_url=url, config=patient())
        self._ssm = session.client("ssm", endpoint_url=url, config=patient())
        self._lambda = session.client("lambda", endpoint_url=url, config=patient())
        self._ses = session.client("sesv2", endpoint_url=url, config=patient())
        self._sns = session.client("sns", endpoint_url=url, config=patient())
        self._secrets = session.client("secretsmanager", endpoint_url=url, config=patient())

    def keep(self, name: str, secret: Mapping[str, Any]) -> None:
        """Create a secret of somebody else's, which the stacks only read: a database's, for one."""
        self._secrets.create_secret(Name=name, SecretString=json.dumps(secret))

    def deploy(self, folder: Path, providers: str) -> dict[str, str]:
        """Create every stack, with the simulators' URL `providers` in place of PROVIDERS, and do what a
        person does in a real account: verify the mail senders, put the providers' credentials, create
        platform applications and topics for pushes. The outputs of all stacks, by their names."""
        self._ssm.put_parameter(Name=BOOTSTRAP_VERSION, Value="30", Type="String", Overwrite=True)
        stacks = assembly.read(folder)
        buckets = {asset.bucket for stack in stacks for asset in stack.assets}
        for bucket in sorted(buckets):
            self._s3.create_bucket(Bucket=bucket)
        outputs: dict[str, str] = {}
        for stack in stacks:
            outputs |= self._create(stack, providers)
        variables = self._variables()
        self._verify_senders(variables)
        self._create_push_targets(variables)
        for output, credentials in CREDENTIALS.items():
            if output in outputs:
                secret = json.dumps(credentials)
                self._secrets.put_secret_value(SecretId=outputs[output], SecretString=secret)
        return outputs

    def _create(self, stack: StackArtifact, providers: str) -> dict[str, str]:
        for asset in stack.assets:
            content = asset.content()
            if asset.source == stack.template:
                content = content.replace(PROVIDERS.encode(), providers.encode())
            self._s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)
        self._formation.create_stack(
            StackName=stack.name, TemplateURL=self._template_url(stack), Capabilities=CAPABILITIES
        )
        wait_until(
            lambda: not self._stack(stack.name)["StackStatus"].endswith("_IN_PROGRESS"), DEPLOY_SECONDS
        )
        created = self._stack(stack.name)
        if created["StackStatus"] != "CREATE_COMPLETE":
            raise DeployError(self._reasons(stack.name))
        return {each["OutputKey"]: each["OutputValue"] for each in created.get("Outputs", [])}

    def _stack(self, name: str) -> "StackTypeDef":
        return self._formation.describe_stacks(StackName=name)["Stacks"][0]

    def _template_url(self, stack: StackArtifact) -> str:
        """CDK lists the template among the assets; a body over 51,200 bytes may only come from S3."""
        for asset in stack.assets:
            if asset.source == stack.template:
                return f"{self._url}/{asset.bucket}/{asset.key}"
        raise DeployError(f"{stack.name}: {stack.template.name} is not in its asset manifest; synth anew.")

    def _reasons(self, stack: str) -> str:
        events = self._formation.describe_stack_events(StackName=stack)["StackEvents"]
        failed = [each for each in reversed(events) if each.get("ResourceStatus", "").endswith("_FAILED")]
        reasons = [
            f"  {each.get('LogicalResourceId')} ({each.get('ResourceType')}): "
            f"{each.get('ResourceStatusReason', 'no reason given')}"
            for each in failed
        ]
        return "\n".join([f"Stack {stack} could not be created:", *reasons])

    def _variables(self) -> list[Mapping[str, str]]:
        """The environment of each function."""
        return [
            function.get("Environment", {}).get("Variables", {})
            for page in self._lambda.get_paginator("list_functions").paginate()
            for function in page["Functions"]
        ]

    def _verify_senders(self, variables: Sequence[Mapping[str, str]]) -> None:
        """The addresses that the functions may send from."""
        senders = {sender for each in variables for sender in json.loads(each.get("MAIL_SENDERS", "[]"))}
        for sender in sorted(senders):
            with suppress(self._ses.exceptions.AlreadyExistsException):
                self._ses.create_email_identity(EmailIdentity=parseaddr(sender)[1])

    def _create_push_targets(self, variables: Sequence[Mapping[str, str]]) -> None:
        """The platform applications and topics that the functions may publish to."""
        for each in variables:
            for arn in json.loads(each.get("PLATFORM_APPLICATIONS", "{}")).values():
                _, platform, name = arn.split("/")
                self._sns.create_platform_application(
                    Name=name, Platform=platform, Attributes=PUSH_CREDENTIAL
                )
            for arn in json.loads(each.get("TOPICS", "[]")):
                self._sns.create_topic(Name=arn.rpartition(":")[2])
