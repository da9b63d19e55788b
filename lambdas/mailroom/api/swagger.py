"""Swagger's page, whole: it asks no other server for anything.

Powertools' own `enable_swagger` would import at every cold start what only this page needs.
"""

from pathlib import Path

from aws_lambda_powertools.event_handler.openapi import swagger_ui

from mailroom.api.document import Described

_FOLDER = Path(swagger_ui.__file__).parent


def page_of(api: Described) -> str:
    """The page about an API."""
    script, style = (
        (_FOLDER / name).read_text("utf-8") for name in ("swagger-ui-bundle.min.js", "swagger-ui.min.css")
    )
    # What the description says may not end the script that it stands in.
    description = api.get_openapi_json_schema().replace("</", "<\\/")
    return swagger_ui.generate_swagger_html(description, script, style, "", None)
