"""Reads synthesized templates."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::AccountId": "111122223333",
    "AWS::URLSuffix": "amazonaws.com",
}


class Template:
    """A template of a stack."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body

    @classmethod
    def read(cls, file: Path) -> "Template":
        """The template in a file."""
        return cls(json.loads(file.read_text()))

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The properties of every resource of a type such as SQS::Queue."""
        found = (each for each in self.body["Resources"].values() if each["Type"] == f"AWS::{kind}")
        return [each["Properties"] for each in found]

    def one(self, kind: str, **properties: object) -> dict[str, Any]:
        """The properties of the one resource of a type that has these."""
        (match,) = (each for each in self.all(kind) if properties.items() <= each.items())
        return match

    def output(self, name: str) -> object:
        """The value of an output."""
        return text_of(self.body["Outputs"][name]["Value"])

    def policy(self, function: str) -> dict[str, set[str]]:
        """Return the permissions of a function's role: its resources, by action."""
        role = self.one("Lambda::Function", FunctionName=function)["Role"]["Fn::GetAtt"][0]
        return allowed(self.body["Resources"][role]["Properties"])

    def environment(self, function: str) -> dict[str, str]:
        """A function's environment."""
        variables = self.one("Lambda::Function", FunctionName=function)["Environment"]["Variables"]
        return {name: text_of(value) for name, value in variables.items()}

    def mapping(self, function: str) -> dict[str, Any]:
        """The one event source mapping of a function."""
        functions = self.body["Resources"]
        (match,) = (
            each
            for each in self.all("Lambda::EventSourceMapping")
            if functions[each["FunctionName"]["Ref"]]["Properties"]["FunctionName"] == function
        )
        return match


@dataclass(frozen=True)
class Templates:
    """The templates of a stage and the folder that they lie in."""

    folder: Path
    stacks: dict[str, Template]

    def __getitem__(self, stack: str) -> Template:
        return self.stacks[stack]


def text_of(value: Any) -> str:
    """A CloudFormation expression in one line, references in angle brackets."""
    if isinstance(value, str):
        return value
    ((function, argument),) = value.items()
    if function == "Fn::Join":
        return str(argument[0]).join(map(text_of, argument[1]))
    if function == "Fn::ImportValue":
        return f"<{argument}>"
    return PSEUDO.get(argument, f"<{argument}>") if function == "Ref" else f"<{'.'.join(argument)}>"


def allowed(role: dict[str, Any]) -> dict[str, set[str]]:
    """The actions of a role, each with the resources that it may be used on."""
    grants: dict[str, set[str]] = {}
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            for action in _listed(statement["Action"]):
                grants.setdefault(action, set()).update(map(text_of, _listed(statement["Resource"])))
    return grants


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@cache
def read_assembly(folder: Path, stage: str) -> Templates:
    """The templates of a stage's stacks, by short name, of the cloud assembly in `folder`."""
    ending = ".template.json"
    files = sorted(folder.glob(f"*{ending}"))
    names = [file.name.removeprefix(f"mailroom-{stage}-").removesuffix(ending) for file in files]
    return Templates(folder, dict(zip(names, map(Template.read, files), strict=True)))
