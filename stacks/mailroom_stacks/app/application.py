"""Builds the stacks of a stage and writes their cloud assembly."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from aws_cdk import App, IPolicyValidationContext, PolicyValidationPluginReport, Stage, Tags, Validations
from aws_cdk.cx_api import CloudAssembly
from cdk_nag import AwsSolutionsChecks

from mailroom_stacks.api import ApiStack
from mailroom_stacks.campaigns import CampaignsStack
from mailroom_stacks.channels import ChannelsStack
from mailroom_stacks.ci_roles import DeployStack, set_deploy_context, warn_where_unpinned
from mailroom_stacks.console import ConsoleStack
from mailroom_stacks.dead_letters import DeadLettersStack
from mailroom_stacks.fax import FaxStack
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.monitoring import MonitoringStack
from mailroom_stacks.paths import CAMPAIGNS, CDK_JSON, TEMPLATES
from mailroom_stacks.routing import RoutingStack
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign
from mailroom_stacks.settings.load import load, load_campaigns, with_providers
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.templates.checks import check
from mailroom_stacks.webhook import WebhookStack


class NagError(Exception):
    """Findings of cdk-nag. The text contains each finding and its construct."""


def synthesize(
    context: Mapping[str, object],
    output: str | None = None,
    campaigns: Path = CAMPAIGNS,
    templates: Path = TEMPLATES,
) -> CloudAssembly:
    """Write the cloud assembly of the stage that `context` names to the folder `output`, with the campaigns
    of the folder `campaigns`. If the CDK's command line runs the app, its context and output override
    `context` and `output`. The templates of the folder `templates` are checked.

    Raises SettingsError for an invalid setting or template, NagError for findings of cdk-nag.
    """
    check_templates(templates)
    # The context of cdk.json has the lowest precedence, as when the CDK's command line passes it.
    context_of_file: dict[str, object] = json.loads(CDK_JSON.read_text())["context"]
    app = App(context={**context_of_file, **context}, outdir=output, analytics_reporting=False)
    settings = load(app.node.try_get_context("mailroom"), app.node.try_get_context("stage"))
    enabled = load_campaigns(settings, campaigns)
    build(app, with_providers(settings, app.node.try_get_context("providers")), enabled)
    return checked(app)


def check_templates(folder: Path = TEMPLATES) -> None:
    """Write warnings about the templates in `folder` to standard error. Raises SettingsError if a template
    cannot be parsed, or if one of its examples fails or is empty."""
    _check_files(
        folder, frozenset((file, file.read_bytes()) for file in folder.rglob("*.*") if file.is_file())
    )


@cache
def _check_files(folder: Path, _files: frozenset[tuple[Path, bytes]]) -> None:
    """Check templates, but only once for all stages of an app. `_files` are their files with their
    content."""
    findings = check(folder)
    sys.stderr.writelines(f"warning: {finding.text}\n" for finding in findings if not finding.fatal)
    if faults := [finding.text for finding in findings if finding.fatal]:
        raise SettingsError("\n".join(faults))


def checked(app: App) -> CloudAssembly:
    """Write the cloud assembly of `app`. Raises NagError for findings of cdk-nag."""
    try:
        return app.synth()
    except RuntimeError as error:
        kind, _, findings = str(error).partition(": ")
        if kind != "ValidationFailed":
            raise
        raise NagError(f"{findings}\nFix the findings of cdk-nag, or accept each with its reason.") from error


FLAGS: Mapping[str, object] = {
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
}
"""Feature flags of the CDK for Mailroom's templates, whatever the app around them sets."""


def build(scope: Stage, settings: Settings, campaigns: Sequence[EnabledCampaign] = ()) -> None:
    """Create all stacks of one stage in `scope`, which is the app or a part of another app, with the stage's
    tags, its bootstrap, and the checks of cdk-nag."""
    for flag, value in FLAGS.items():
        scope.node.set_context(flag, value)
    set_deploy_context(scope, settings)
    storage = MailboxStack(scope, settings)
    warn_where_unpinned(storage, settings)
    feedback = FeedbackStack(scope, settings, storage)
    api = ApiStack(scope, settings, storage, feedback)
    channels = ChannelsStack(scope, settings, storage, feedback, api)
    channels.add_stack_dependency(feedback, "messages are sent with its configuration sets")
    fax = FaxStack(scope, settings, settings.fax, storage) if settings.fax else None
    webhook = WebhookStack(scope, settings, storage)
    routing = RoutingStack(scope, settings, storage, channels, fax, webhook, campaigns)
    workers = [*routing.workers, *channels.fallbacks, feedback.worker]
    if campaigns:
        workers += CampaignsStack(scope, settings, storage, campaigns).workers
    if settings.console:
        ConsoleStack(scope, settings, settings.console, campaigns)
    DeadLettersStack(scope, settings, storage, workers)
    monitoring = MonitoringStack(scope, settings, campaigns)
    storage.add_stack_dependency(monitoring, "subscribers get alarms from the first deployment on")
    if settings.deploy:
        DeployStack(scope, settings, settings.deploy)
    for key, value in settings.deployment.tags.items():
        Tags.of(scope).add(key, value)
    Validations.of(scope).add_plugins(OwnChecks(scope))


class OwnChecks(AwsSolutionsChecks):
    """cdk-nag's checks, limited to the stacks in `scope`. By default cdk-nag checks the whole app."""

    def __init__(self, scope: Stage) -> None:
        super().__init__(scope)
        self._own = scope

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:  # noqa: ARG002 - the context has the app
        """Return the findings. The CDK calls this method during synthesis."""
        return self.validate_scope(self._own)
