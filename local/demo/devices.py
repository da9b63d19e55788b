"""The devices that the demo pushes to: registered with SNS, as their app would do it."""

from collections.abc import Iterable, Mapping

from local.aws import Endpoints, LocalSession, patient


def register(
    endpoints: Endpoints, applications: Mapping[str, str], tokens: Iterable[tuple[str, str]]
) -> dict[str, str]:
    """Create an endpoint for each token; `tokens` are pairs of application and token, `applications` the ARNs
    of applications by their names. The endpoints' ARNs, by token."""
    sns = LocalSession().client("sns", endpoint_url=endpoints.sns, config=patient())
    arns = {}
    for name, token in tokens:
        answer = sns.create_platform_endpoint(PlatformApplicationArn=applications[name], Token=token)
        arns[token] = answer["EndpointArn"]
    return arns
