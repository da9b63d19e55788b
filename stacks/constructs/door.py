"""A function behind routes of an HTTP API."""

from collections.abc import Sequence

from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration

from stacks.constructs.findings import accept


class Door:
    """Adds routes that lead to `function`; `name` is their integration's, in CamelCase."""

    def __init__(self, api: http.HttpApi, name: str, function: lambda_.Function) -> None:
        self._api = api
        self._behind = HttpLambdaIntegration(
            name, function, payload_format_version=http.PayloadFormatVersion.VERSION_2_0
        )

    def guarded(
        self, method: str, path: str, authorizer: http.IHttpRouteAuthorizer, scope: str | None = None
    ) -> None:
        """A route for whom `authorizer` lets in, with a token that has `scope`; None: with any."""
        self._api.add_routes(
            path=path,
            methods=[http.HttpMethod(method)],
            integration=self._behind,
            authorizer=authorizer,
            authorization_scopes=scope if scope is None else [scope],
        )

    def open(self, methods: Sequence[str], path: str, reason: str) -> None:
        """Routes for everybody, and the reason why that may be."""
        routes = self._api.add_routes(
            path=path, methods=[http.HttpMethod(each) for each in methods], integration=self._behind
        )
        for route in routes:
            accept(route, "APIG4", reason)
