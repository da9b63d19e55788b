"""The emulator unpacks a code once for all workers, and a new code anew; it copies code from a folder."""

import io
import zipfile
from pathlib import Path

from mailroom_local.stage.deploy import Asset
from tests.support.local.emulator import create_function, lambda_client

CODE = "import os\n\ndef handler(event, context):\n    return os.path.realpath(__file__)\n"


def code_path(url: str, function: str) -> str:
    """Return the folder of a function's code."""
    answer = lambda_client(url).invoke(FunctionName=function)
    return answer["Payload"].read().decode()


def test_functions_with_the_same_code_share_a_folder_in_the_emulator(url: str) -> None:
    for name in ("one", "same"):
        create_function(url, name, CODE, {})
    create_function(url, "other", f"{CODE}# other\n", {})
    places = [code_path(url, name) for name in ("one", "same", "other")]
    assert places[0] == places[1] != places[2]


def test_the_emulator_runs_a_function_from_a_copy_of_the_asset_folder_that_its_archive_names(
    url: str, tmp_path: Path
) -> None:
    code = tmp_path / "asset"
    code.mkdir()
    (code / "index.py").write_text(CODE)
    archive = Asset(code, zipped=True, bucket="assets", key="code.zip").content()
    create_function(url, "copied", "", {})
    lambda_client(url).update_function_code(FunctionName="copied", ZipFile=archive)
    found = code_path(url, "copied")
    assert found.endswith('/index.py"')
    assert str(code) not in found


def test_a_function_with_replaced_code_runs_the_new_code(url: str) -> None:
    create_function(url, "replaced", CODE, {})
    before = code_path(url, "replaced")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr("index.py", f"{CODE}# new\n")
    lambda_client(url).update_function_code(FunctionName="replaced", ZipFile=archive.getvalue())
    after = code_path(url, "replaced")
    assert after.endswith('/index.py"')
    assert after != before
