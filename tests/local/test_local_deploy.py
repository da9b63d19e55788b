"""Reading a cloud assembly, and fitting its templates to the emulator."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from lab.harness.function_code import replace_functions
from mailroom_local.aws import LocalSession, patient
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN
from mailroom_local.stage.deploy import PROVIDERS, EmulatorDeployment, read_assembly
from tests.support.local.emulator import create_function, emptied, lambda_client

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"


def write_assembly(folder: Path) -> None:
    """Two stacks, the first by name depending on the other; one with a folder to zip."""
    code = folder / "asset.code"
    (code / "package").mkdir(parents=True)
    (code / "package" / "handler.py").write_text("x = 1\n")
    artifacts: dict[str, Any] = {}
    for name, dependencies in (("a-channels", ["b-mailbox"]), ("b-mailbox", [])):
        (folder / f"{name}.template.json").write_text('{"Resources": {}}')
        files = {
            "template": {
                "source": {"path": f"{name}.template.json", "packaging": "file"},
                "destinations": {"d": {"bucketName": BUCKET, "objectKey": f"{name}.json"}},
            },
            "code": {
                "source": {"path": "asset.code", "packaging": "zip"},
                "destinations": {"d": {"bucketName": BUCKET, "objectKey": "code.zip"}},
            },
        }
        (folder / f"{name}.assets.json").write_text(json.dumps({"files": files}))
        artifacts[f"{name}.assets"] = {
            "type": "cdk:asset-manifest",
            "properties": {"file": f"{name}.assets.json"},
        }
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "dependencies": [f"{name}.assets", *dependencies],
            "properties": {"templateFile": f"{name}.template.json", "stackName": f"mailroom-{name}"},
        }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))


def test_the_local_deployment_reads_the_stacks_of_an_assembly_in_the_order_of_dependencies(
    tmp_path: Path,
) -> None:
    write_assembly(tmp_path)
    assert [stack.name for stack in read_assembly(tmp_path)] == ["mailroom-b-mailbox", "mailroom-a-channels"]


def test_the_local_deployment_reads_each_assets_bucket_and_key_and_notes_an_archives_folder(
    tmp_path: Path,
) -> None:
    write_assembly(tmp_path)
    template, code = read_assembly(tmp_path)[0].assets
    assert (template.bucket, template.key) == (
        "cdk-hnb659fds-assets-000000000000-us-east-1",
        "b-mailbox.json",
    )
    assert template.content() == b'{"Resources": {}}'
    with zipfile.ZipFile(io.BytesIO(code.content())) as archive:
        folder = Path(archive.comment.decode())
    assert folder == (tmp_path / "asset.code").resolve()


TWILIO = {
    "Resources": {"Secret": {"Type": "AWS::SecretsManager::Secret", "Properties": {"Name": "twilio"}}},
    "Outputs": {"TwilioSecretName": {"Value": "twilio"}, "ApiUrl": {"Value": f"{PROVIDERS}/api"}},
}

NOTHING = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}


def test_a_local_deployment_sets_the_api_url_and_secrets_and_creates_identities_apps_and_topics(
    url: str, tmp_path: Path
) -> None:
    write_assembly(tmp_path / "assembly")
    for name in ("a-channels", "b-mailbox"):
        template = json.dumps(TWILIO if name == "a-channels" else NOTHING)
        (tmp_path / "assembly" / f"{name}.template.json").write_text(template)
    application = "arn:aws:sns:us-east-1:000000000000:app/GCM/mailroom-local"
    topic = "arn:aws:sns:us-east-1:000000000000:news"
    variables = {
        "MAIL_SENDERS": '["Mailroom <mailroom@example.com>"]',
        "PLATFORM_APPLICATIONS": json.dumps({"android": application}),
        "TOPICS": json.dumps([topic]),
    }
    create_function(url, "send-push", "", variables)
    create_function(url, "send-mail", "", variables)
    outputs = EmulatorDeployment(url).deploy(tmp_path / "assembly", "http://127.0.0.1:4711")
    session = LocalSession()
    secrets = session.client("secretsmanager", endpoint_url=url, config=patient())
    sns = session.client("sns", endpoint_url=url, config=patient())
    ses = session.client("sesv2", endpoint_url=url, config=patient())
    secret = secrets.get_secret_value(SecretId=outputs["TwilioSecretName"])
    assert outputs["ApiUrl"] == "http://127.0.0.1:4711/api"
    assert json.loads(secret["SecretString"]) == {"account_sid": ACCOUNT_SID, "auth_token": AUTH_TOKEN}
    applications = sns.list_platform_applications()["PlatformApplications"]
    assert [each["PlatformApplicationArn"] for each in applications] == [application]
    assert [each["TopicArn"] for each in sns.list_topics()["Topics"]] == [topic]
    assert ses.get_email_identity(EmailIdentity="mailroom@example.com")


def test_a_function_that_the_local_stage_replaces_runs_the_assemblys_code_at_its_next_invocation(
    emulator: str, tmp_path: Path
) -> None:
    write_assembly(tmp_path / "assembly")
    answer = "def handler(event, context):\n    return {!r}\n"
    (tmp_path / "assembly" / "asset.code" / "index.py").write_text(answer.format("new"))
    url = emptied(emulator)
    create_function(url, "one", answer.format("old"), {})
    invoked = lambda_client(url).invoke(FunctionName="one")
    assert json.loads(invoked["Payload"].read()) == "old"
    assert replace_functions(url, tmp_path / "assembly") == 1
    invoked = lambda_client(url).invoke(FunctionName="one")
    assert json.loads(invoked["Payload"].read()) == "new"
