"""Finds the bundles of a stage's assembly, and deploys them to the functions of a running stage."""

from pathlib import Path

from mailroom_local.aws import LocalSession, patient
from mailroom_local.stage.deploy import Asset, read_assembly


def bundle_of(folder: Path, handler: str) -> Asset:
    """Return the bundle of the function whose handler is in the file `handler`, such as `send_mail.py`."""
    assets = [asset for stack in read_assembly(folder) for asset in stack.assets if asset.zipped]
    return next(asset for asset in assets if (asset.source / handler).exists())


def replace_functions(aws: str, folder: Path) -> int:
    """Deploy the code of each function of the emulator at the URL `aws`, and return the number of functions.
    As on AWS, the processes that run the functions end, also during an invocation."""
    client = LocalSession().client("lambda", endpoint_url=aws, config=patient())
    pages = client.get_paginator("list_functions").paginate()
    functions = [function for page in pages for function in page["Functions"]]
    for function in functions:
        bundle = bundle_of(folder, f"{function['Handler'].partition('.')[0]}.py")
        client.update_function_code(FunctionName=function["FunctionName"], ZipFile=bundle.content())
    return len(functions)
