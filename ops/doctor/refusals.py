"""What an AWS error says of a check: may it not be asked, is it not known there, or is something wrong."""

import re

from botocore.exceptions import ClientError

from ops.doctor.look import Look
from ops.doctor.verdict import Verdict, failed, skipped, warning

_DENIED = re.compile(r"AccessDenied|AuthorizationError|Unauthorized|NotAuthorized|^403$|^Forbidden$")
_ACTION = re.compile(r"not authorized to perform:? ([\w-]+:\w+)")
_UNKNOWN = re.compile(r"InvalidAction|UnknownOperation|NotImplemented|UnsupportedOperation|^400$|^404$|^501$")


def verdict_of(look: Look, error: Exception) -> Verdict:
    """What a check that could not go on says."""
    if not isinstance(error, ClientError):
        return failed(f"No answer: {error}", "Check the network from here, and the region.")
    code = error.response.get("Error", {}).get("Code", "")
    operation = error.operation_name
    if _DENIED.search(code):
        said = _ACTION.search(error.response["Error"].get("Message", ""))
        needed = said[1] if said else f"the action {operation}"
        return warning(f"Could not look: needs {needed}.", "Allow it, or run it with other credentials.")
    if look.local and _UNKNOWN.search(code):
        return skipped(f"The local AWS does not know {operation}.")
    return failed(f"AWS answered {operation} with {code}.", "Look into the console, or run it again.")
