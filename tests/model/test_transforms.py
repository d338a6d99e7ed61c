"""Loading streaming transforms: storage tasks over what a landing lands, in other words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from polynya.model.config.task import resolved
from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from polynya.transform.project import expression_errors
from tests.projects import CLICKS, USERS, write_project

FACTS = """\
apiVersion: polynya/v1
kind: streaming_transform
name: click_facts
from: clicks
stream: clicks
mode: merge
columns:
  - {name: user_id, expression: "user.id", type: bigint, key: 1}
  - {name: city, expression: "upper(user.address.city)"}
nested: expand
where: "type <> 'ping'"
soft_delete: "type = 'unsubscribe'"
history: true
sort_by: [user_id]
retention: 90d
snapshot_expiry: 1h
"""
EXPORTS = """\
apiVersion: polynya/v1
kind: streaming_landing
name: exports
source:
  files: {url: in, pattern: "<yyyy>/part-*"}
"""


def loaded(tmp_path, facts=FACTS, clicks=CLICKS, **more):
    folder = write_project(tmp_path, clicks=clicks, facts=facts, **more)
    return load_project(folder, environment={"KAFKA_PASSWORD": "x"})


def dataset_of(project):
    [task] = project.tasks
    return resolved(task, task.datasets[0])


def errors_of(tmp_path, facts, clicks=CLICKS):
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, facts, clicks)
    return [f"{error.code} {error}" for error in caught.value.errors]


def without(line):
    return "".join(f"{one}\n" for one in FACTS.splitlines() if not one.startswith(line))


def test_a_transform_is_a_storage_task_over_landed_batches(tmp_path):
    project = loaded(tmp_path)
    dataset = dataset_of(project)

    assert [task.name for task in project.works] == ["clicks", "click_facts"]
    assert dataset.relations.current == "clicks.click_facts"
    assert (dataset.landing.format, dataset.landing.folder) == ("stream", "clicks")
    assert dataset.landing.glob == "clicks/*"
    assert (dataset.events.keys, dataset.events.apply_as_deletes) == (
        ("user_id",),
        "type = 'unsubscribe'",
    )
    assert (dataset.kept.mode, dataset.kept.delete_mode, dataset.kept.history) == (
        "merge",
        "soft",
        True,
    )
    assert (dataset.mapping.nested, dataset.mapping.where) == ("expand", "type <> 'ping'")
    assert dataset.maintenance.snapshot_expiry.age == timedelta(hours=1)


def test_the_day_of_ingestion_parts_the_files_and_is_the_age_of_rows(tmp_path):
    dataset = dataset_of(loaded(tmp_path))

    assert [str(term) for term in dataset.layout.partition_by] == ["ingestion_date"]
    assert str(dataset.kept.retention) == "ingestion_date 90d"
    date = dataset.mapping.columns[-1]
    assert (date.name, date.expression) == ("ingestion_date", "CAST(hdr__kafka_timestamp AS DATE)")


@pytest.mark.parametrize(
    ("line", "terms", "has_date"),
    [
        ("partition_by: []", [], False),
        ("partition_by: none", [], False),
        ('partition_by: [ingestion_date, "bucket(16, user_id)"]',
         ["ingestion_date", "bucket(16, user_id)"], True),
        ("partition_by: [city]", ["city"], False),
    ],
)  # fmt: skip
def test_other_partitions_take_the_place_of_the_day(tmp_path, line, terms, has_date):
    dataset = dataset_of(loaded(tmp_path, f"{without('retention')}{line}\n"))

    assert [str(term) for term in dataset.layout.partition_by] == terms
    assert ("ingestion_date" in dataset.mapping.names) is has_date


def test_the_day_of_files_is_that_on_which_they_landed(tmp_path):
    facts = FACTS.replace("from: clicks\nstream: clicks", "from: exports")
    dataset = dataset_of(loaded(tmp_path, facts, EXPORTS))

    assert [str(term) for term in dataset.layout.partition_by] == ["ingestion_date"]
    assert str(dataset.kept.retention) == "ingestion_date 90d"
    assert dataset.mapping.columns[-1].expression == "CAST(hdr__landed_at AS DATE)"
    assert dataset.landing.glob == "exports/*"


def test_files_that_do_not_land_have_no_day_of_ingestion(tmp_path):
    direct = f"{EXPORTS}direct: true\n"
    facts = without("retention").replace("from: clicks\nstream: clicks", "from: exports")
    dataset = dataset_of(loaded(tmp_path, facts, direct))

    assert dataset.layout.partition_by == ()
    own = facts.replace(
        "  - {name: city", '  - {name: ingestion_date, expression: "day"}\n  - {name: city'
    )
    parted = dataset_of(loaded(tmp_path / "own", f"{own}retention: 1d\n", direct))
    assert str(parted.kept.retention) == "ingestion_date 1d"
    [error] = errors_of(tmp_path / "wrong", f"{facts}retention: 1d\n", direct)
    assert "POLYNYA-STR-053" in error


@pytest.mark.parametrize("more", ["", "direct: true\n"])
def test_only_what_has_landed_has_a_time_of_processing(tmp_path, more):
    kafka = CLICKS.replace(', "orders-%"', "")
    taken = FACTS.replace("upper(user.address.city)", "get_processing_time()")
    errors = expression_errors(loaded(tmp_path, taken, f"{kafka}{more}"))

    assert [error.code for error in errors] == (["POLYNYA-FUN-003"] if more else [])


def test_other_records_have_no_time_of_processing(tmp_path):
    users = USERS.replace("operation = 'DELETE'", "get_processing_time() > '2026'")
    folder = write_project(tmp_path, users=users)

    [error] = expression_errors(load_project(folder))

    assert error.code == "POLYNYA-FUN-003"
    assert "format `json` does not say when" in error.message


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (FACTS.replace("from: clicks", "from: click"), "POLYNYA-STR-049 tasks/facts.yml:4:1"),
        (FACTS.replace("from: clicks", "from: click_facts"), "name one of: clicks"),
        (without("stream"), "POLYNYA-STR-052"),
        (FACTS.replace("stream: clicks", "stream: nothing\nengine: {}"), "engine"),
        (FACTS.replace("mode: merge", "mode: append_only"), "POLYNYA-STR-050"),
        (FACTS.replace(", key: 1", ""), "POLYNYA-STR-051 tasks/facts.yml:7:1"),
        (FACTS.replace("mode: merge\n", ""), "missing key `mode`"),
        (FACTS.replace("name: city", "name: user_id"), "tasks/facts.yml:9:6: columns[1].name"),
        (f"{FACTS}kept: 1\n", "kept"),
    ],
)
def test_what_is_wrong_with_a_transform_is_said_in_its_own_words(tmp_path, facts, said):
    found = errors_of(tmp_path, facts)

    assert any(said in error for error in found), found


def test_a_wrong_condition_is_found_at_the_line_that_has_it(tmp_path):
    project = loaded(tmp_path, FACTS.replace("type = 'unsubscribe'", "java_method('x')"))

    [error] = expression_errors(project)

    assert error.where == "tasks/facts.yml:12:1"


def test_a_landing_of_one_topic_needs_no_name_of_a_stream(tmp_path):
    clicks = CLICKS.replace('topics: [clicks, "orders-%"]', "topics: [Web-Clicks]")
    assert clicks != CLICKS

    assert dataset_of(loaded(tmp_path, without("stream"), clicks)).landing.glob == "web_clicks/*"


def test_the_login_of_a_registry_is_that_of_the_landing(tmp_path):
    registry = "{url: 'https://r:1', user: ann, password: '${env:KAFKA_PASSWORD}'}"
    content = f"content: {{type: avro_with_schema, schema_registry: {registry}}}"
    clicks = CLICKS.replace("content: {type: json}", content)

    [task] = loaded(tmp_path, clicks=clicks).tasks
    [unnamed] = loaded(tmp_path, clicks=clicks.replace(", user: ann", "")).tasks

    found = resolved(task, task.datasets[0]).landing.delivery.schema_registry
    assert (found.url, found.user) == ("https://r:1", "ann")
    assert found.password.get_secret_value() == "x"
    open_one = resolved(unnamed, unnamed.datasets[0]).landing.delivery.schema_registry
    assert (open_one.url, open_one.user) == ("https://r:1", None)


@pytest.mark.parametrize("format_", ["stream", "debezium"])
def test_a_task_over_the_folder_of_a_landing_asks_the_registry_of_that_landing(tmp_path, format_):
    registry = "schema_registry: {url: 'http://r:1'}"
    clicks = CLICKS.replace(
        "content: {type: json}", f"content: {{type: avro_with_schema, {registry}}}"
    )
    storage = f"""
apiVersion: polynya/v1
kind: storage
name: facts
schema: web
landing: {{path: clicks, format: {format_}}}
"""
    if format_ == "stream":
        storage += "datasets: [{name: clicks, path: web_clicks/*, keys: [id]}]\n"
    others = storage.replace("name: facts", "name: others").replace("path: clicks,", "path: other,")
    others = others.replace("schema: web", "schema: other")

    tasks = {one.name: one for one in loaded(tmp_path, storage, clicks, others=others).tasks}

    assert tasks["facts"].landing.schema_registry.url == "http://r:1"
    assert tasks["others"].landing.schema_registry is None
