"""`make audit`: cfn-lint reports no problem of a stage with every optional part."""

import json
import subprocess
import sys
from pathlib import Path

from mailroom_stacks.deploy_policy.actions import needed_actions
from mailroom_stacks.deploy_policy.document import documents
from mailroom_stacks.deploy_policy.policies import place_of
from mailroom_stacks.deploy_policy.scopes import statements
from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
from tests.support.stacks.refusals import dev_with
from tests.support.stacks.variants import variant


def test_cfn_lint_accepts_every_template_of_a_stage_and_its_deploy_policies(tmp_path: Path) -> None:
    """cfn-lint knows each action of IAM, and whether its resources fit."""
    everything = variant(EVERYTHING, campaigns=of_each_kind(tmp_path))
    bodies = [each.body for each in everything.stacks.values()]
    place = place_of(dev_with("sms", EVERYTHING["sms"]), bodies, "hnb659fds")
    policies = {
        f"Policy{number}": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": policy}}
        for number, policy in enumerate(documents(statements(needed_actions(bodies), place)))
    }
    file = tmp_path / "policies.template.json"
    file.write_text(json.dumps({"Resources": policies}))
    templates = [str(each) for each in (file, *everything.folder.glob("*.template.json"))]
    assert len(templates) == len(bodies) + 1
    lint = str(Path(sys.executable).with_name("cfn-lint"))
    # W3005: CDK writes a function's dependency on its role a second time, in words.
    command = [lint, "--ignore-checks", "W3005", "--", *templates]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")
