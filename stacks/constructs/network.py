"""A function's place in a VPC."""

from aws_cdk import aws_lambda as lambda_

from stacks.constructs.grants import Grant
from stacks.settings.campaigns import Network

LOOK = ("DescribeNetworkInterfaces", "DescribeSubnets")
CHANGE = (
    *("CreateNetworkInterface", "DeleteNetworkInterface"),
    *("AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"),
)
WHY = (
    "Lambda makes and removes the interfaces itself, with the function's role, and asks for these on all "
    "resources; the function's own code is denied every one of them."
)


def in_network(function_arn: str) -> list[Grant]:
    """What Lambda needs of a function's role to connect it, and what keeps the function from using it:
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html."""
    actions = [f"ec2:{action}" for action in (*CHANGE, *LOOK)]
    own = {"ArnEquals": {"lambda:SourceFunctionArn": function_arn}}
    return [
        Grant(actions, ["*"], wildcard=WHY),
        Grant(actions, ["*"], conditions=own, wildcard=WHY, denied=True),
    ]


def connect(function: lambda_.Function, network: Network) -> None:
    """Put `function` into the subnets of `network`. By ids, as the settings have them: CDK's own way would
    look the VPC up, or give the role a policy of AWS's."""
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)
    resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
        subnet_ids=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
    )
