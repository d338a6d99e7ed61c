"""The public face of the package: which names there are, and that they cost nothing unasked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import polynya
from tests.repo.public import loads, promised, undocumented

#: Start-up time: what no command may load before it needs it.
HEAVY = ("boto3", "duckdb", "py4j", "pyarrow", "pydantic", "pyiceberg", "pyspark", "sqlglot")


def test_the_public_names_are_these():
    assert polynya.__all__ == [
        "ApplyPolicy", "BatchSettings", "Catalog", "ConfigError", "ConfigErrors", "ConflictError",
        "DataError", "Dataset", "DatasetSettings", "DependencyError", "Extracts", "FencedError",
        "InternalError", "Lake", "LakeTable", "Landing", "LiveRead", "LoadedProject",
        "OperationError", "PolynyaError", "Project", "SchemaEvolution", "StaleStepError",
        "StorageTask", "SuspendedError", "Target", "TaskStoppedError", "ViewSettings", "Watermark",
        "__version__", "load_project", "open",
    ]  # fmt: skip


def test_every_public_name_is_there_documented_and_promised_to_type_checkers():
    assert undocumented(polynya) == []
    assert promised(polynya) == {*polynya.__all__} - {"__version__"}
    assert {*polynya.__all__} <= {*dir(polynya)}


def test_every_error_is_public():
    from polynya.model import errors

    assert {*errors.__all__} <= {*polynya.__all__}


def test_an_unknown_name_is_refused_as_in_any_module():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        polynya.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    assert loads("import polynya", HEAVY) == []


@pytest.mark.parametrize("command", [["--help"], ["validate", "--help"]])
def test_help_starts_without_spark(command: list[str]):
    code = f"import sys; sys.argv[1:] = {command}; from polynya.cli.main import main; main()"
    assert loads(code, ("pyspark", "py4j")) == []


def test_validate_starts_without_spark(tmp_path: Path):
    subprocess.run([sys.executable, "-m", "polynya", "init", str(tmp_path / "p")], check=True)
    arguments = ["validate", "--project", str(tmp_path / "p")]
    code = f"import sys; sys.argv[1:] = {arguments}; from polynya.cli.main import main; main()"
    assert loads(code, ("pyspark", "py4j")) == []
