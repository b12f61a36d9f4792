"""Settings of files from the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def read(expression: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The value of an expression on ``tests.setting_areas.files``, as JSON."""
    code = (
        "import json; from pathlib import Path;"
        "from tests.setting_areas import files as file_settings;"
        f"print(json.dumps({expression}, default=str))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def values(**variables: str) -> Any:
    return json.loads(read("file_settings.service_values()", **variables).stdout)


def test_lists_are_read_in_any_spelling():
    results = values(FILE_EXTENSIONS_ALLOWED="PNG, .jpg", FILE_URL_DOMAINS="CDN.example.org")
    assert results["FILE_EXTENSIONS_ALLOWED"] == ["png", "jpg"]
    assert results["FILE_URL_DOMAINS"] == ["cdn.example.org"]
    assert "svg" in results["FILE_EXTENSIONS_DENIED"]
    assert results["FILE_UPLOAD_PUBLIC"] is False


def test_files_are_below_the_data_folder_by_default():
    document = json.loads(read("file_settings.storage(Path('/data'))").stdout)
    assert document["OPTIONS"]["location"] == "/data/files"


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"FILE_STORAGE": "ftp"}, "FILE_STORAGE"),
        ({"FILE_STORAGE": "s3"}, "FILE_S3_BUCKET"),
        ({"FILE_STORAGE": "s3", "FILE_S3_BUCKET": "b", "FILE_S3_ENDPOINT": "x"}, "S3_ENDPOINT"),
        ({"FILE_STORAGE": "s3", "FILE_S3_BUCKET": "b", "FILE_S3_ACCESS_KEY": "k"}, "S3_SECRET"),
    ],
)  # fmt: skip
def test_a_bad_value_is_one_sentence_that_names_the_variable(variables, named):
    done = read("file_settings.storage(Path('/data'))", **variables)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("variables", [{"FILE_URL_VALIDITY": "0"}, {"FILE_UPLOAD_PUBLIC": "maybe"}])
def test_a_bad_switch_or_number_too(variables):
    done = read("file_settings.service_values()", **variables)
    assert done.returncode == 1
    assert next(iter(variables)) in done.stderr
