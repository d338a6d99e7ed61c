"""Code of other machines that the configuration chooses, and the machine has to name first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from polynya.engine.session import start_spark
from polynya.lake.spark.standalone import refuse_unnamed
from polynya.model.config.engines import SparkCluster
from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from polynya.store.node_folders import JOB_CODE
from tests.projects import PROJECT, write_project

CODE = {"POLYNYA_JOB_CODE": "s3://acme/code/ s3://acme/other/entry.py"}


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("s3://acme/code/entry.py", True),
        ("s3://acme/code/v2/polynya.tar.gz", True),
        ("s3://acme/other/entry.py", True),
        ("s3://acme/other/entry.py.py", False),
        ("s3://acme/codex/entry.py", False),
        ("s3://evil/entry.py", False),
        ("s3://acme/code/../landing/entry.py", False),
        ("s3://acme/code/./entry.py", False),
        ("S3://acme/code/entry.py", False),
    ],
)
def test_code_of_a_job_is_below_a_place_that_the_machine_names(place: str, *, named: bool) -> None:
    assert JOB_CODE.holds(place, CODE) == named
    assert not JOB_CODE.holds(place, {})


def test_a_session_joins_masters_that_the_machine_names(monkeypatch: pytest.MonkeyPatch) -> None:
    here = SparkCluster("spark://127.0.0.1:7077", "127.0.0.1", sys.executable)
    there = SparkCluster("spark://127.0.0.1:7077,10.0.0.5:7077", "10.0.0.4")
    refuse_unnamed(here)

    with pytest.raises(ConfigError, match=r"`engine.master` is `spark://10.0.0.5:7077`") as caught:
        refuse_unnamed(there)
    assert caught.value.code == "POLYNYA-DEP-019"

    monkeypatch.setenv("POLYNYA_SPARK_MASTERS", "spark://10.0.0.5:7077")
    refuse_unnamed(there)


def test_workers_run_a_python_that_the_machine_names(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = SparkCluster("spark://127.0.0.1:7077", "127.0.0.1", "/tmp/python")

    with pytest.raises(ConfigError, match=r"`engine.python` is `/tmp/python`"):
        refuse_unnamed(odd)

    monkeypatch.setenv("POLYNYA_SPARK_PYTHONS", "/usr/bin/python3.12 /tmp/python")
    refuse_unnamed(odd)


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("{master: 'spark://192.0.2.1:7077', host: 192.0.2.2}", "engine.master"),
        ("{master: 'spark://127.0.0.1:7077', python: /tmp/python}", "engine.python"),
    ],
)
def test_no_session_begins_with_what_the_machine_does_not_name(
    tmp_path: Path, engine: str, setting: str
) -> None:
    text = PROJECT.replace("./warehouse", f"./warehouse, engine: {engine}")

    with pytest.raises(ConfigError) as caught:
        start_spark(load_project(write_project(tmp_path, project=text)))

    assert (caught.value.code, caught.value.where) == ("POLYNYA-DEP-019", setting)
