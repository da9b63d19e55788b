"""Deploys a cloud assembly to the emulator with boto3, in a second, with the same result as `cdk deploy`."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parseaddr
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mailroom.content.versions import CURRENT, DEPLOYED, read_choices
from mailroom.providers.webhooks.signing import host_key
from mailroom_local.aws import ACCOUNT, REGION, STAGE, LocalSession, patient
from mailroom_local.processes import wait_until
from mailroom_local.providers.server import CREDENTIALS

if TYPE_CHECKING:
    from types_boto3_cloudformation.literals import CapabilityType
    from types_boto3_cloudformation.type_defs import StackTypeDef
    from types_boto3_lambda.type_defs import FunctionConfigurationTypeDef

PUSH_CREDENTIAL = {"PlatformCredential": "local"}
BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
CAPABILITIES: "list[CapabilityType]" = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
DEPLOY_SECONDS = 120
UNCHANGED = "No updates are to be performed"
"""Text in CloudFormation's error for an update that changes nothing."""
PROVIDERS = "http://providers.invalid"
"""Placeholder of the simulators' URL in templates: the URL differs at each start, but templates are
synthesized only once."""


@dataclass(frozen=True)
class Asset:
    """A file or a folder of the assembly, and the S3 bucket and key from which its stack reads it."""

    source: Path
    zipped: bool
    bucket: str
    key: str

    def content(self) -> bytes:
        """Return the data to upload. For a folder it is an empty archive whose comment is the folder's path,
        from which the emulator copies the files: zipping, uploading and unpacking 17,000 files takes five
        seconds of CPU time."""
        if not self.zipped:
            return self.source.read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.comment = str(self.source.resolve()).encode()
        return buffer.getvalue()


@dataclass(frozen=True)
class StackArtifact:
    """Stack of the assembly: its name, template and assets."""

    name: str
    template: Path
    assets: tuple[Asset, ...]


def read_assembly(folder: Path) -> list[StackArtifact]:
    """Return the stacks of an assembly, each after its dependencies."""
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
    stacks = {name for name, artifact in artifacts.items() if artifact["type"] == "aws:cloudformation:stack"}
    ordered = TopologicalSorter(
        {name: artifact.get("dependencies", []) for name, artifact in artifacts.items()}
    )
    return [_stack(folder, name, artifacts) for name in ordered.static_order() if name in stacks]


def _stack(folder: Path, name: str, artifacts: dict[str, Any]) -> StackArtifact:
    properties = artifacts[name]["properties"]
    manifests = [
        folder / artifacts[dependency]["properties"]["file"]
        for dependency in artifacts[name].get("dependencies", [])
        if artifacts[dependency]["type"] == "cdk:asset-manifest"
    ]
    assets = [asset for manifest in manifests for asset in _assets(folder, manifest)]
    return StackArtifact(
        properties.get("stackName", name), folder / properties["templateFile"], tuple(assets)
    )


def _assets(folder: Path, manifest: Path) -> list[Asset]:
    return [
        Asset(
            source=folder / file["source"]["path"],
            zipped=file["source"].get("packaging") == "zip",
            bucket=_resolved(destination["bucketName"]),
            key=_resolved(destination["objectKey"]),
        )
        for file in json.loads(manifest.read_text())["files"].values()
        for destination in file["destinations"].values()
    ]


def _resolved(text: str) -> str:
    """Return a text with its placeholders replaced. A stack without a fixed account and region has them in
    the name of its asset bucket."""
    for placeholder, value in (("AccountId", ACCOUNT), ("Region", REGION), ("Partition", "aws")):
        text = text.replace("${AWS::" + placeholder + "}", value)
    return text


class DeployError(RuntimeError):
    """A stack could not be created or updated. The message lists the reasons of CloudFormation."""


class EmulatorDeployment:
    """Deployment of the stacks of one assembly to one emulator."""

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

    def create_secret(self, name: str, secret: Mapping[str, Any]) -> None:
        """Create a secret that the stacks only read, such as the secret of a database."""
        self._secrets.create_secret(Name=name, SecretString=json.dumps(secret))

    def deploy(self, folder: Path, providers: str) -> dict[str, str]:
        """Create or update every stack, with the simulators' URL `providers` instead of PROVIDERS. Then do
        what an operator does in a real account: verify the mail senders, store the providers' credentials in
        their secrets, and create platform applications and topics for push messages. Return the outputs of
        all stacks by name."""
        self._ssm.put_parameter(Name=BOOTSTRAP_VERSION, Value="30", Type="String", Overwrite=True)
        stacks = read_assembly(folder)
        buckets = {asset.bucket for stack in stacks for asset in stack.assets}
        for bucket in sorted(buckets):
            self._s3.create_bucket(Bucket=bucket)
        outputs: dict[str, str] = {}
        for stack in stacks:
            outputs |= self._apply(stack, providers)
        variables = [function.get("Environment", {}).get("Variables", {}) for function in self._functions()]
        self._verify_senders(variables)
        self._create_push_targets(variables)
        for output, credentials in CREDENTIALS.items():
            if output in outputs:
                secret = json.dumps(credentials)
                self._secrets.put_secret_value(SecretId=outputs[output], SecretString=secret)
        return outputs

    def webhook_key(self, host: str) -> str:
        """Return the key with which receivers on a host verify webhooks."""
        return host_key(self._secret(f"mailroom-{STAGE}-webhook-keys"), host)

    def database_url(self, secret: str) -> str:
        """Return the URL with which psql and database drivers connect to the database whose login is in
        `secret`."""
        fields = json.loads(self._secret(secret))
        return "postgresql://{username}:{password}@{host}:{port}/{dbname}".format(**fields)

    def published(self, bucket: str) -> list[str]:
        """Return the templates whose current version is a published one, such as mail/welcome."""
        try:
            reply = self._s3.get_object(Bucket=bucket, Key=CURRENT)
        except self._s3.exceptions.NoSuchKey:
            return []
        choices = read_choices(reply["Body"].read())
        return sorted(path for path, choice in choices.items() if choice.version != DEPLOYED)

    def _secret(self, name: str) -> str:
        return self._secrets.get_secret_value(SecretId=name)["SecretString"]

    def _apply(self, stack: StackArtifact, providers: str) -> dict[str, str]:
        url = ""
        for asset in stack.assets:
            content = asset.content()
            # The CDK lists the template among the assets. It is uploaded too, because CloudFormation reads a
            # template over 51,200 bytes only from S3.
            if asset.source == stack.template:
                content = content.replace(PROVIDERS.encode(), providers.encode())
                url = f"{self._url}/{asset.bucket}/{asset.key}"
            self._s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=content)
        if not url:
            raise DeployError(
                f"{stack.name}: {stack.template.name} is not in its asset manifest; run synth again."
            )
        names = {each["StackName"] for each in self._formation.describe_stacks()["Stacks"]}
        put = self._formation.update_stack if stack.name in names else self._formation.create_stack
        try:
            put(StackName=stack.name, TemplateURL=url, Capabilities=CAPABILITIES)
        except self._formation.exceptions.ClientError as error:
            if UNCHANGED not in str(error):
                raise
        wait_until(
            lambda: not self._stack(stack.name)["StackStatus"].endswith("_IN_PROGRESS"), DEPLOY_SECONDS
        )
        deployed = self._stack(stack.name)
        if deployed["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            raise DeployError(self._reasons(stack.name))
        return {each["OutputKey"]: each["OutputValue"] for each in deployed.get("Outputs", [])}

    def _stack(self, name: str) -> "StackTypeDef":
        return self._formation.describe_stacks(StackName=name)["Stacks"][0]

    def _reasons(self, stack: str) -> str:
        events = self._formation.describe_stack_events(StackName=stack)["StackEvents"]
        failed = [event for event in reversed(events) if event.get("ResourceStatus", "").endswith("_FAILED")]
        reasons = [
            f"  {event.get('LogicalResourceId')} ({event.get('ResourceType')}): "
            f"{event.get('ResourceStatusReason', 'no reason given')}"
            for event in failed
        ]
        return "\n".join([f"Stack {stack} could not be deployed:", *reasons])

    def _functions(self) -> "list[FunctionConfigurationTypeDef]":
        pages = self._lambda.get_paginator("list_functions").paginate()
        return [function for page in pages for function in page["Functions"]]

    def _verify_senders(self, variables: Sequence[Mapping[str, str]]) -> None:
        """Verify the addresses from which the functions may send."""
        senders = {
            sender for settings in variables for sender in json.loads(settings.get("MAIL_SENDERS", "[]"))
        }
        for sender in sorted(senders):
            with suppress(self._ses.exceptions.AlreadyExistsException):
                self._ses.create_email_identity(EmailIdentity=parseaddr(sender)[1])

    def _create_push_targets(self, variables: Sequence[Mapping[str, str]]) -> None:
        """Create the platform applications and topics to which the functions may publish."""
        for settings in variables:
            for arn in json.loads(settings.get("PLATFORM_APPLICATIONS", "{}")).values():
                _, platform, name = arn.split("/")
                self._sns.create_platform_application(
                    Name=name, Platform=platform, Attributes=PUSH_CREDENTIAL
                )
            for arn in json.loads(settings.get("TOPICS", "[]")):
                self._sns.create_topic(Name=arn.rpartition(":")[2])
