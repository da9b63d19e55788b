"""An audience in a file of JSON objects, one a line."""

from typing import TYPE_CHECKING, Any

import msgspec
from boto3.dynamodb.types import DYNAMODB_CONTEXT

from mailroom.campaigns.definition import JsonLines
from mailroom.campaigns.line_pages import LinePages
from mailroom.campaigns.rows import Rows
from mailroom.campaigns.s3_lines import Lines, Mark

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_decoder = msgspec.json.Decoder(float_hook=DYNAMODB_CONTEXT.create_decimal)
"""Numbers keep all their digits, of which a float has some seventeen. One that no item can hold raises
ArithmeticError here: further on the number would fail the messages of others as well."""

_NO_NUMBER = "holds a number that no message can carry; use up to 38 digits, 1E-130 to 1E+125"


class JsonLinesAudience(LinePages):
    """The lines of one file, of any size."""

    def __init__(self, definition: JsonLines, client: "S3Client") -> None:
        super().__init__(client, definition.location, definition.key, definition.columns)

    def before(self, lines: Lines) -> dict[str, Any]:  # noqa: ARG002 - the first line is an entry already
        """Nothing."""
        return {}

    def entry(self, lines: Lines, start: Mark, rows: Rows, cursor: dict[str, Any]) -> None:  # noqa: ARG002 - every line says all
        """One line; empty ones are none."""
        line = lines.next()
        if not line.strip():
            return
        try:
            values = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # msgspec's words name a place, and never what stands there.
            rows.refuse(f"line {start.line}", "", f"is not JSON in UTF-8 ({_words(error)}); correct it")
            return
        except ArithmeticError:
            rows.refuse(f"line {start.line}", "", _NO_NUMBER)
            return
        if not isinstance(values, dict):
            rows.refuse(f"line {start.line}", "", "is not a JSON object; use one a line")
            return
        rows.add(f"line {start.line}", values)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, msgspec.DecodeError) else type(error).__name__
