"""CloudFormation's expressions, resolved to the names and ARNs that a deployment would give."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.stacks.templates import PSEUDO, Templates

_ARNS = {
    "AWS::DynamoDB::Table": ("dynamodb", "table/", "TableName"),
    "AWS::Lambda::Function": ("lambda", "function:", "FunctionName"),
    "AWS::SNS::Topic": ("sns", "", "TopicName"),
    "AWS::SQS::Queue": ("sqs", "", "QueueName"),
    "AWS::SecretsManager::Secret": ("secretsmanager", "secret:", "Name"),
}
"""Service, beginning of the ARN's last part, and property with the name, by the type of resource."""


class Resolver:
    """Values of expressions in the templates of one stage."""

    def __init__(self, stage: Templates, pseudo: Mapping[str, str] = PSEUDO) -> None:
        """`pseudo`: values of CloudFormation's pseudo parameters."""
        self._stage = stage
        self._pseudo = pseudo
        self._exports = {
            output["Export"]["Name"]: (name, output["Value"])
            for name, template in stage.stacks.items()
            for output in template.body.get("Outputs", {}).values()
            if "Export" in output
        }

    def text(self, stack: str, expression: Any) -> str:
        """Return the value of an expression in the template of `stack`, or raise LookupError for an
        expression of another kind."""
        match expression:
            case str():
                return expression
            case {"Fn::ImportValue": str(name)}:
                return self.text(*self._exports[name])
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(self.text(stack, part) for part in parts)
            case {"Ref": str(name)} if name in self._pseudo:
                return self._pseudo[name]
            case {"Ref": str(name)}:
                return self._reference(stack, name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(stack, name, attribute)
        raise LookupError(f"{expression} cannot be resolved: say in resolved.py what its value is.")

    def policies(self, stack: str, role: str) -> Iterator[dict[str, Any]]:
        """Yield the policies of a role by its logical id, with the ARNs of their resources."""
        for policy in self._resource(stack, role)[1]["Policies"]:
            statements = [
                {**each, "Resource": [self.text(stack, resource) for resource in as_list(each["Resource"])]}
                for each in policy["PolicyDocument"]["Statement"]
            ]
            yield {"Statement": statements}

    def _reference(self, stack: str, name: str) -> str:
        kind, properties = self._resource(stack, name)
        if kind in ("AWS::SNS::Topic", "AWS::SecretsManager::Secret"):
            return self._attribute(stack, name, "Arn")
        names = ("FunctionName", "TableName", "BucketName", "QueueName")
        (value,) = (properties[each] for each in names if each in properties)
        return self.text(stack, value)

    def _attribute(self, stack: str, name: str, attribute: str) -> str:
        kind, properties = self._resource(stack, name)
        match kind, attribute:
            case "AWS::S3::Bucket", "Arn":
                return f"arn:aws:s3:::{self.text(stack, properties['BucketName'])}"
            case _, "Arn" if kind in _ARNS:
                service, beginning, named = _ARNS[kind]
                place = f"{self._pseudo['AWS::Region']}:{self._pseudo['AWS::AccountId']}"
                # AWS ends the ARN of a secret with six characters of its own choice.
                ending = "-abcdef" if service == "secretsmanager" else ""
                return f"arn:aws:{service}:{place}:{beginning}{self.text(stack, properties[named])}{ending}"
            case "AWS::DynamoDB::Table", "StreamArn":
                return f"{self._attribute(stack, name, 'Arn')}/stream/latest"
            case "AWS::SNS::Topic", "TopicName":
                return self.text(stack, properties["TopicName"])
        raise LookupError(f"{attribute} of {kind} cannot be resolved: say in resolved.py what its value is.")

    def _resource(self, stack: str, name: str) -> tuple[str, Mapping[str, Any]]:
        resource = self._stage[stack].body["Resources"][name]
        return resource["Type"], resource["Properties"]


def as_list(value: Any) -> list[Any]:
    """Return the elements of a value that may be a single element."""
    return value if isinstance(value, list) else [value]
