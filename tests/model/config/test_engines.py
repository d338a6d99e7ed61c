"""`engine:` of tasks and targets: each mode, its short forms, and what is refused where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polynya.model.config.engines import (
    LOCAL,
    EmrServerlessEngine,
    GlueEngine,
    LocalEngine,
    SparkEngine,
    session_for,
)
from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from tests.projects import PROJECT, USERS, aws_project, write_project

MASTER = "spark://127.0.0.1:7077"
ROLE = "arn:aws:iam::123456789012:role/jobs"
EMR = (
    "{mode: emr_serverless, application_id: 00f1, execution_role: '"
    + ROLE
    + "', entry_point: 's3://acme-code/entry.py'MORE}"
)


def loaded(folder: Path, engine: str = "", *, target: str = "") -> LoadedProject:
    project = PROJECT.replace("./warehouse}", f"./warehouse, engine: {target}}}")
    users = f"{USERS}engine: {engine}\n" if engine else USERS
    return load_project(write_project(folder, project=project if target else PROJECT, users=users))


def refused(folder: Path, engine: str = "", *, target: str = "") -> str:
    with pytest.raises(ConfigErrors) as found:
        loaded(folder, engine, target=target)
    return " ".join(f"{error.code} {error}" for error in found.value.errors)


@pytest.mark.parametrize(
    ("engine", "meant"),
    [
        ("local", LOCAL),
        ("{mode: local}", LOCAL),
        (MASTER, SparkEngine(master=MASTER)),
        (f"{{master: '{MASTER}', memory: 2g}}", SparkEngine(master=MASTER, memory="2g")),
        (f"{{mode: spark, master: '{MASTER}'}}", SparkEngine(master=MASTER)),
        ("{mode: glue, job_name: polynya}", GlueEngine(mode="glue", job_name="polynya")),
        (
            EMR.replace("MORE", ", vcpu: 8, environment: 's3://acme-code/polynya.tar.gz'"),
            EmrServerlessEngine(
                mode="emr_serverless",
                application_id="00f1",
                execution_role=ROLE,
                entry_point="s3://acme-code/entry.py",
                environment="s3://acme-code/polynya.tar.gz",
                vcpu=8,
            ),
        ),
    ],
)
def test_a_task_names_its_engine(tmp_path: Path, engine: str, meant: Any) -> None:
    project = loaded(tmp_path, engine)

    assert project.tasks[0].engine == meant
    assert project.target.engine == LOCAL


def test_without_an_engine_a_task_has_that_of_the_target(tmp_path: Path) -> None:
    project = loaded(tmp_path, target=f"'{MASTER}'")

    assert project.tasks[0].engine is None
    assert project.target.engine == SparkEngine(master=MASTER)
    assert project.target.cluster is not None


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        ("{mode: yarn}", "CFG-009 tasks/users.yml:11:10: engine.mode"),
        ("{mode: yarn}", "allowed here: emr_serverless, glue, local, spark"),
        ("{memory: 2g}", "CFG-008 tasks/users.yml:11:1: engine: missing key `mode`"),
        ("{mode: local, memory: 2g}", "CFG-007 tasks/users.yml:11:23: engine.memory"),
        ("{mode: glue, jobname: x}", "did you mean `job_name`?"),
        ("{mode: emr_serverless, application_id: 00f1}", "name `application_id`, `execution_role`"),
        ("{mode: glue, job_name: x, workers: 1}", "CFG-009 tasks/users.yml:11:35: engine.workers"),
        ("{mode: glue, job_name: 'x y'}", "`x y` is not the name of a Glue job"),
        (EMR.replace("MORE", ", memory_gb: 64"), "a worker of 4 vCPU has 8 to 27 GB"),
        (EMR.replace("MORE", ", every: 5s"), "is 1 minute to 1 day"),
        (EMR.replace("MORE", ", environment: 's3://a-b/x --conf y.tar.gz'"), "is not an object"),
        (EMR.replace("/entry.py", "/entry.sh").replace("MORE", ""), "is not an object such as"),
        (EMR.replace("role/jobs", "user/me").replace("MORE", ""), "is not the ARN of a role"),
        ("spark://10.0.0.5:7077", "CFG-016 tasks/users.yml:11:1: engine: the Spark master"),
    ],
)
def test_what_an_engine_does_not_take_is_named_with_its_place(
    tmp_path: Path, engine: str, says: str
) -> None:
    assert says in refused(tmp_path, engine)


def test_a_target_whose_engine_cannot_reach_its_folders_is_refused(tmp_path: Path) -> None:
    assert "`glue` cannot reach folders of this machine" in refused(
        tmp_path, target="{mode: glue, job_name: x}"
    )


def test_a_task_for_aws_is_right_with_a_target_on_a_laptop(tmp_path: Path) -> None:
    """The same files are for both: where it cannot work is said where it would be submitted."""
    assert loaded(tmp_path, "{mode: glue, job_name: x}").errors == ()


def test_a_target_on_aws_takes_every_engine(tmp_path: Path) -> None:
    project = aws_project("http://127.0.0.1:1") + "    engine: {mode: glue, job_name: x}\n"

    found = load_project(write_project(tmp_path, project=project, users=USERS), "dev")

    assert isinstance(found.target.engine, GlueEngine)
    assert found.target.cluster is None


def test_one_session_is_where_all_its_tasks_want_to_be() -> None:
    spark, glue = SparkEngine(master=MASTER), GlueEngine(mode="glue", job_name="x")

    assert session_for(LOCAL, {"a": None, "b": LocalEngine(mode="local")}).cluster is None
    assert session_for(LOCAL, {"a": spark, "b": spark}).cluster == spark.cluster()
    assert session_for(spark, {"a": None}).cluster == spark.cluster()
    assert session_for(spark, {"a": LOCAL}).cluster is None
    in_aws = session_for(LOCAL, {"a": glue})
    assert in_aws.cluster is None
    assert in_aws.notes == ("a: `engine` glue is for agents; it runs in this process",)
    mixed = session_for(LOCAL, {"a": spark, "b": None})
    assert mixed.cluster is None
    assert [note.partition(":")[0] for note in mixed.notes] == ["a"]
