"""Settings of the formats that replication services deliver: dms and replicate."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from polynya.model.checks import task_problems
from polynya.model.config.settings import Dataset
from polynya.model.config.sources import datasets_of_sources
from polynya.model.config.task import StorageTask, resolved


def a_task(*datasets, landing=None, **settings):
    where = {"path": "shop", "format": "dms", **(landing or {})}
    head = {"apiVersion": "polynya/v1", "kind": "storage", "name": "t", "schema": "shop"}
    return StorageTask.model_validate({**head, "landing": where, "datasets": datasets, **settings})


def problems(task):
    return [(".".join(map(str, p.path)), p.error.code[-3:]) for p in task_problems(task)]


ORDERS = {"name": "orders", "keys": ["id"]}


def test_tables_are_found_and_need_no_declaration():
    task = a_task(include=["s.*"], exclude=["s.tmp_*"], defaults={"keys": ["id"]})

    assert problems(task) == []
    assert problems(a_task(landing={"format": "replicate"}, include=["s.*"])) == []


def test_dms_needs_keys_and_has_an_order():
    assert problems(a_task(ORDERS)) == []
    assert problems(a_task({"name": "orders"})) == [("datasets.0", "014")]
    assert problems(a_task({"name": "orders", "mode": "append_only"})) == []


def test_replicate_brings_keys_and_an_order():
    task = a_task({"name": "orders"}, landing={"format": "replicate"})

    assert problems(task) == []
    assert resolved(task, task.datasets[0]).kept.mode is None


def test_the_order_of_replicate_is_its_own():
    task = a_task({"name": "orders", "sequence_by": ["n"]}, landing={"format": "replicate"})

    assert problems(task) == [("datasets.0.sequence_by", "019")]


def test_files_without_header_line_need_declared_columns():
    headless = {"header": False}
    columns = {"columns": {"id": "int"}}

    assert problems(a_task(ORDERS, landing=headless)) == [("datasets.0", "008")]
    assert problems(a_task({**ORDERS, **columns}, landing=headless)) == []
    assert problems(a_task(ORDERS, landing=headless, defaults=columns)) == []
    assert problems(a_task({"name": "o"}, landing={**headless, "format": "replicate"})) == []


def test_the_operation_is_no_column():
    task = a_task({**ORDERS, "columns": {"Op": "string", "id": "int"}})

    assert problems(task) == [("datasets.0.columns", "016")]


@pytest.mark.parametrize(
    ("file_format", "setting", "fine"),
    [
        ("dms", {"timestamp_column": "ts"}, True),
        ("dms", {"cdc_path": "changes"}, True),
        ("dms", {"unsent_value": "~"}, True),
        ("replicate", {"header": False, "delimiter": "|", "null_value": ""}, True),
        ("replicate", {"timestamp_column": "ts"}, False),
        ("replicate", {"cdc_path": "changes"}, False),
        ("debezium", {"header": True}, False),
        ("debezium", {"null_value": "x"}, False),
    ],
)
def test_settings_belong_to_their_formats(file_format, setting, fine):
    landing = {"format": file_format, **setting}

    found = problems(a_task(landing=landing))

    assert found == ([] if fine else [(f"landing.{name}", "019") for name in setting])


def test_a_bare_null_is_no_text_for_null():
    """In YAML `null_value: NULL` is no text, and would silently mean the default."""
    assert problems(a_task(landing={"null_value": None})) == [("landing.null_value", "009")]


@pytest.mark.parametrize(
    "setting",
    [
        {"heder": True},
        {"delimiter": ",,"},
        {"delimiter": '"'},
        {"delimiter": "\n"},
        {"null_value": 'a"b'},
        {"cdc_path": "../other"},
    ],
)
def test_unknown_settings_and_impossible_values_are_errors(setting):
    with pytest.raises(ValidationError):
        a_task(landing=setting)


def test_dms_datasets_have_a_source_and_no_path():
    found = problems(a_task({**ORDERS, "source": "s.orders", "path": "*", "initial_load": "*"}))

    assert found == [("datasets.0.path", "019"), ("datasets.0.initial_load", "019")]
    excluded = a_task({**ORDERS, "source": "s.orders"}, exclude=["s.*"])
    assert problems(excluded) == [("datasets.0.source", "016")]


def test_a_found_table_without_keys_does_not_stop_the_others():
    routes, errors = datasets_of_sources(a_task(ORDERS), ["s.orders", "s.people"])

    assert list(routes) == ["s.orders"]
    assert [(error.code, "s.people" in error.message) for error in errors] == [
        ("POLYNYA-CFG-014", True)
    ]


def test_a_found_table_without_columns_or_header_line_is_not_guessed():
    task = a_task(landing={"header": False}, defaults={"keys": ["id"]})

    routes, errors = datasets_of_sources(task, ["s.people"])

    assert (routes, [error.code for error in errors]) == ({}, ["POLYNYA-CFG-008"])


def test_a_dataset_knows_how_its_files_are_written():
    task = a_task(ORDERS, landing={"timestamp_column": "ts", "header": False})

    delivery = resolved(task, Dataset(name="orders")).landing.delivery

    assert (delivery.timestamp_column, delivery.has_header) == ("ts", False)


CSV = {"format": "csv"}
EVENTS = {"name": "e", "keys": ["id"], "sequence_by": ["n"]}


@pytest.mark.parametrize(
    ("landing", "found"),
    [
        ({"delimiter": ";", "quote": "'", "escape": "\\", "comment": "#"}, []),
        ({"quote": "", "skip_lines": 3, "encoding": "utf-16", "null_value": ""}, []),
        ({"escape": '"'}, []),
        ({"delimiter": "'", "quote": "'"}, [("landing.quote", "016")]),
        ({"comment": ","}, [("landing.comment", "016")]),
        ({"delimiter": "\\", "escape": "\\"}, [("landing.escape", "016")]),
        ({"quote": "#", "comment": "#"}, [("landing.comment", "016")]),
        ({"null_value": "a,b"}, [("landing.null_value", "016")]),
        ({"quote": "'", "null_value": "'"}, [("landing.null_value", "016")]),
        ({"header": False}, [("datasets.0", "008")]),
        ({"escape": None}, [("landing.escape", "009")]),
        ({"cdc_path": "x"}, [("landing.cdc_path", "019")]),
        ({"format": "json", "delimiter": ";"}, [("landing.delimiter", "019")]),
        ({"format": "parquet", "encoding": "utf-16"}, [("landing.encoding", "019")]),
    ],
)
def test_a_csv_dialect_may_not_contradict_itself(landing, found):
    assert problems(a_task(EVENTS, landing={**CSV, **landing})) == found


@pytest.mark.parametrize(
    ("landing", "found"),
    [
        ({"format": "json", "record_path": "$"}, []),
        ({"format": "json", "record_path": "$.data.my-items.@x"}, []),
        ({"record_path": "$"}, [("landing.record_path", "019")]),
        ({"format": "json", "decimal_separator": ",", "thousands_separator": "."}, []),
        ({"decimal_separator": ",", "thousands_separator": "\u00a0"}, []),
        ({"thousands_separator": ","}, []),
        ({"decimal_separator": "."}, []),
        ({"thousands_separator": "."}, [("landing.thousands_separator", "016")]),
        (
            {"decimal_separator": ",", "thousands_separator": ","},
            [("landing.thousands_separator", "016")],
        ),
        ({"format": "parquet", "decimal_separator": ","}, [("landing.decimal_separator", "019")]),
    ],
)
def test_records_and_numbers_are_where_and_how_the_landing_says(landing, found):
    assert problems(a_task(EVENTS, landing={**CSV, **landing})) == found


def test_only_text_has_formats_of_times():
    columns = {"columns": {"at": {"type": "date", "format": "dd.MM.yyyy"}}}
    place, where = "datasets.0.columns.at.format", "defaults.columns.at.format"

    task = a_task({**EVENTS, **columns}, landing=CSV)

    assert problems(task) == []
    events = resolved(task, task.datasets[0]).events
    assert (str(events.columns["at"]), events.formats["at"]) == ("date", "dd.MM.yyyy")
    parquet = {"format": "parquet"}
    assert problems(a_task({**EVENTS, **columns}, landing=parquet)) == [(place, "019")]
    assert problems(a_task({**ORDERS, **columns})) == [(place, "019")]
    assert problems(a_task(defaults={"keys": ["id"], **columns})) == [(where, "019")]


@pytest.mark.parametrize(
    "column",
    [
        {"type": "date", "format": "dd.MM"},
        {"type": "date", "format": ""},
        {"type": "timestamp", "format": "epoch"},
        {"type": "date", "format": "yyyy-MM-dd HH:mmXXX"},
        {"type": "timestamp_ntz", "format": "yyyy-MM-dd HH:mmXXX"},
        {"type": "bigint", "format": "epoch_seconds"},
        {"format": "dd.MM.yyyy"},
        {"type": "date"},
        {"type": "date", "format": "dd.MM.yyyy", "zone": "UTC"},
    ],
)
def test_a_format_that_no_time_can_have_is_refused(column):
    with pytest.raises(ValidationError):
        a_task({**EVENTS, "columns": {"at": column}}, landing=CSV)


@pytest.mark.parametrize(
    "landing",
    [
        {"record_path": ""},
        {"record_path": "results"},
        {"record_path": "$."},
        {"record_path": "$.a..b"},
        {"record_path": "$.a[0]"},
        {"record_path": "$['a']"},
        {"record_path": "$. a"},
        {"record_path": "$.a\n"},
        {"record_path": "$" + ".a" * 21},
        {"decimal_separator": ""},
        {"decimal_separator": ",,"},
        {"decimal_separator": "1"},
        {"thousands_separator": "-"},
        {"thousands_separator": "e"},
    ],
)
def test_a_path_or_separator_that_nothing_can_have_is_refused(landing):
    with pytest.raises(ValidationError):
        a_task(EVENTS, landing={"format": "json", **landing})


@pytest.mark.parametrize(
    "landing",
    [
        {"quote": "''"},
        {"delimiter": ""},
        {"escape": "\n"},
        {"skip_lines": -1},
        {"encoding": "ebcdic"},
        {"comment": "//"},
    ],
)
def test_what_no_dialect_can_be_is_refused(landing):
    with pytest.raises(ValidationError):
        a_task(EVENTS, landing={**CSV, **landing})


@pytest.mark.parametrize(
    ("landing", "found"),
    [
        ({"flattened": True}, []),
        ({"flattened": True, "add_fields_prefix": "_"}, []),
        ({"flattened": True, "add_fields": ["op", "source.lsn", "table:origin"]}, []),
        ({"flattened": True, "add_fields_prefix": "", "add_fields": ["op"]}, []),
        ({"flattened": True, "add_fields_prefix": ""}, [("landing.add_fields_prefix", "016")]),
        ({"add_fields": ["op"]}, [("landing.add_fields", "016")]),
        ({"flattened": False, "add_fields_prefix": "_"}, [("landing.add_fields_prefix", "016")]),
        ({"flattened": None}, [("landing.flattened", "009")]),
        ({"format": "dms", "flattened": True}, [("landing.flattened", "019")]),
    ],
)
def test_a_flattened_capture_says_what_was_added(landing, found):
    task = a_task(landing={"format": "debezium", **landing}, defaults={"keys": ["id"]})

    assert problems(task) == found


@pytest.mark.parametrize("field", ["", "a b", "a.b.c", "op:", "a,b", ".op"])
def test_what_the_transform_cannot_add_is_refused(field):
    with pytest.raises(ValidationError):
        a_task(landing={"format": "debezium", "flattened": True, "add_fields": [field]})
