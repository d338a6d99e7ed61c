"""What a well-formed task can still have wrong. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from polynya.model.config.connection import is_this_machine
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.engines import UNREACHABLE, SparkEngine
from polynya.model.config.layout import TIMES, PartitionTerm, SortTerm, age_refusal
from polynya.model.config.mapping import MappedColumn
from polynya.model.config.settings import Dataset, DatasetSettings, Delivery, Extracts
from polynya.model.config.sources import included
from polynya.model.config.stream_landing import KafkaSource
from polynya.model.config.target import Catalog, Project
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.problems import Problem
from polynya.model.formats import all_rules, rules_of
from polynya.model.headers import STREAM_HEADER_NAMES
from polynya.model.names import METADATA_COLUMNS, POSTGRESQL, folded, postgres_address, shown

CODE: Final = "POLYNYA-CFG-044"
_VERIFIED: Final = "verify-full"


def unsecured_catalogs(project: Project) -> Iterator[Problem]:
    """Yield the catalogs on other machines of which nobody checks whether they are the right one.

    An address that cannot be read is the error of another check.
    """
    for name, target in project.targets.items():
        catalog = target.catalog
        host = _unverified_host(catalog)
        if host is not None and not catalog.allow_unverified:
            yield Problem(
                ("targets", name, "catalog", "uri"),
                CODE,
                f"{shown(host)} is on another machine, and nothing checks whether it is the right "
                "one: who answers in its place gets the password and writes the catalog",
                "add `?sslmode=verify-full` to the address, or write `allow_unverified: true`",
            )


def _unverified_host(catalog: Catalog) -> str | None:
    if catalog.type != "jdbc" or not (catalog.uri or "").startswith(POSTGRESQL):
        return None
    try:
        address = postgres_address(catalog.uri or "")
    except ValueError:
        return None
    safe = address.tls == _VERIFIED or is_this_machine(address.host)
    return None if safe else address.host


def unsecured_login(source: KafkaSource) -> Iterator[Problem]:
    """Yield a login to brokers on other machines that is sent without TLS."""
    protocol = source.properties.get("security.protocol")
    if protocol is None or protocol.get_secret_value().upper() != "SASL_PLAINTEXT":
        return
    hosts = [one.strip().rpartition(":")[0] for one in source.bootstrap_servers.split(",")]
    far = [one for one in hosts if one and not is_this_machine(one)]
    if far and not source.allow_unencrypted:
        yield Problem(
            ("source", "kafka", "properties", "security.protocol"),
            CODE,
            f"{shown(far[0])} is on another machine, and the login would go over the network "
            "without TLS",
            "write `SASL_SSL`, or `allow_unencrypted: true` beside `bootstrap_servers`",
        )


_PLACE = "POLYNYA-MAP-004"


def written_problems(
    task: StorageTask, settings: DatasetSettings, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with a mapping where it is written: at a dataset, or under `defaults`."""
    rules = rules_of(task.landing.format)
    if not isinstance(settings.columns, tuple):
        return
    if rules.has_header_lines and not task.landing.has_header:
        yield Problem(
            (*path, "columns"),
            _PLACE,
            "the files have no header line, so that their columns have no names to map",
            "write `columns` as a map of all columns with their types, in the order of the files",
        )
    for index, one in enumerate(settings.columns) if rules.finds_tables else ():
        if one.key is not None and (one.source is None or one.type is not None):
            yield Problem(
                (*path, "columns", index, "expression" if one.source is None else "type"),
                _PLACE,
                f"a column of the key of format `{rules.name}` can only have another name",
                "write the name of a column of the source, without a type: old keys and deletes "
                "are told by it",
            )
    yield from _list_problems(settings, path)


def _list_problems(settings: DatasetSettings, path: tuple[str | int, ...]) -> Iterator[Problem]:
    assert isinstance(settings.columns, tuple), "who asks has looked"
    names: set[str] = set()
    for index, one in enumerate(settings.columns):
        same = folded(one.name)
        if same in METADATA_COLUMNS:
            yield Problem(
                (*path, "columns", index, "name"),
                "POLYNYA-MAP-003",
                f"column {shown(one.name)} has the name of a metadata column of Iceberg",
                "give it another name: no engine reads a column of this one",
            )
        if same in names:
            yield Problem(
                (*path, "columns", index, "name"),
                "POLYNYA-MAP-003",
                f"column {shown(one.name)} is there already",
                "give it another name; upper and lower case make no difference",
            )
        names.add(same)
    yield from _key_problems(settings.columns, path)
    if settings.keys and any(one.key is not None for one in settings.columns):
        yield Problem(
            (*path, "keys"),
            "POLYNYA-MAP-003",
            "the list of `columns` says which are the key by `key`",
            "take `keys` out, or the ordinals",
        )


def _key_problems(
    columns: tuple[MappedColumn, ...], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    numbered = sorted((one.key, index) for index, one in enumerate(columns) if one.key is not None)
    for wanted, (key, index) in enumerate(numbered, start=1):
        if key != wanted:
            yield Problem(
                (*path, "columns", index, "key"),
                "POLYNYA-MAP-003",
                f"`key: {key}` stands where `key: {wanted}` is expected",
                "number the columns of the key from 1, each number once",
            )
            return


def mapping_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield where the mapping of one dataset cannot be, with all its settings final."""
    if not final.mapping.is_set:
        return
    if final.landing.extracts is not None:
        yield Problem(
            (*path, "extracts"),
            _PLACE,
            "has no meaning with a mapping of columns: extracts are compared column by column",
            "take one out",
        )
    if not rules_of(final.landing.format).finds_tables or final.mapping.keys:
        return
    for key in final.events.keys:
        if not final.mapping.of_source((key,)):
            yield Problem(
                (*path, "keys"),
                _PLACE,
                f"key {shown(key)} is computed, and keys of format `{final.landing.format}` can "
                "only have another name",
                "map it to the name of a column of the source: old keys and deletes are told by it",
            )


_TOGETHER, _TYPES = "POLYNYA-CFG-041", "POLYNYA-CFG-042"


def layout_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield what is wrong with how the files of a dataset are to be laid out."""
    layout = final.layout
    yield from _retained(final, (*path, "retention", "column"))
    yield from _partitioned(layout.partition_by, (*path, "partition_by"))
    yield from _sorted(layout.sort_by, (*path, "sort_by"))
    for setting, terms in _terms(final).items():
        for index, columns in terms:
            for column in columns:
                yield from _column(final, column, (*path, setting, index))
    for index, one in enumerate(layout.partition_by):
        kind = final.events.columns.get(one.column)
        if kind is not None and (why := one.refusal(kind)):
            yield Problem((*path, "partition_by", index), _TYPES, why)
    for index, by in enumerate(layout.sort_by):
        for column in by.columns:
            kind = final.events.columns.get(column)
            if kind is not None and (why := by.refusal(kind)):
                yield Problem((*path, "sort_by", index), _TYPES, why)


def _retained(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    retention = final.kept.retention
    if retention is None:
        return
    yield from _column(final, retention.column, path)
    kind = final.events.columns.get(retention.column)
    if kind is not None and (why := age_refusal(kind)):
        yield Problem(path, "POLYNYA-CFG-043", why)


def _terms(final: ResolvedDataset) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    layout = final.layout
    return {
        "partition_by": [(n, (one.column,)) for n, one in enumerate(layout.partition_by)],
        "sort_by": [(n, one.columns) for n, one in enumerate(layout.sort_by)],
    }


def _partitioned(terms: Sequence[PartitionTerm], path: tuple[str | int, ...]) -> Iterator[Problem]:
    yield from _twice([str(one) for one in terms], path)
    by_time = Counter(one.column for one in terms if one.transform in TIMES)
    for column, count in by_time.items():
        found = {one.transform for one in terms if one.column == column} & {*TIMES}
        if count > 1 and len(found) > 1:
            finest = max(found, key=TIMES.index)
            yield Problem(
                path,
                _TOGETHER,
                f"{shown(column)} is parted by time more than once",
                f"keep `{finest}`: a query that asks for a longer time reads its files too",
            )


def _sorted(terms: Sequence[SortTerm], path: tuple[str | int, ...]) -> Iterator[Problem]:
    if len(terms) > 1 and any(one.order == "zorder" for one in terms):
        yield Problem(path, _TOGETHER, "`zorder` stands alone", "name all its columns inside of it")
    yield from _twice([column for one in terms for column in one.columns], path)


def _twice(names: Sequence[str], path: tuple[str | int, ...]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(path, _TOGETHER, f"{shown(name)} is named twice", "name it once")


def _column(final: ResolvedDataset, column: str, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if column in final.events.except_columns:
        yield Problem(
            path,
            _TOGETHER,
            f"column {shown(column)} is excepted, so later rows hold NULL in it",
            "take it out of `except_columns`, or name another column",
        )
    known = final.events.columns
    named = rules_of(final.landing.format).has_header_lines and not (
        final.landing.delivery.has_header
    )
    if named and known and column not in known:
        near = get_close_matches(column, sorted(known), n=1)
        meant = f"did you mean {shown(near[0])}?" if near else "name one of `columns`"
        yield Problem(path, _TOGETHER, f"there is no column {shown(column)}", meant)


_MERGE_ONLY: Final = (
    "apply_as_deletes",
    "apply_as_truncates",
    "ignore_null_updates",
    "history",
    "coalesce_unchanged",
    "track_history_columns",
    "track_history_except",
    "changes_retention",
)


def dataset_problems(
    task: StorageTask, dataset: Dataset, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what the settings of one dataset lack, or contradict each other in."""
    final, rules = resolved(task, dataset), rules_of(task.landing.format)
    if final.kept.mode == "merge":
        yield from _merge_problems(final, path)
    if rules.has_header_lines:
        yield from _unnamed_columns(final, path)
    yield from _foreign_headers(final, path)
    for problem in rules.check_dataset(final.events):
        yield replace(problem, path=(*path, *problem.path))
    if dataset.source is not None and rules.finds_tables:
        yield from _unreachable_source(task, dataset.source, path)
    if dataset.schema_evolution is not None and dataset.schema_evolution.new_dataset is not None:
        yield Problem(
            (*path, "schema_evolution", "new_dataset"),
            "POLYNYA-CFG-016",
            "a dataset that is declared is no new one",
            "set it under `defaults` of the task",
        )
    yield from _contradictions(dataset, final, path)
    yield from layout_problems(final, path)
    yield from written_problems(task, dataset, path)
    yield from mapping_problems(final, path)
    if final.landing.extracts is not None:
        yield from _extract_problems(final, final.landing.extracts, path)


def _merge_problems(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    rules = rules_of(final.landing.format)
    if not final.events.keys and not rules.brings_keys:
        yield Problem(
            path,
            "POLYNYA-CFG-014",
            f"dataset `{final.name}` has no `keys`, so its changes cannot be merged",
            "name the `keys`, or set `mode: append_only` to keep every event as a row",
        )
    if not final.events.sequence_by and not rules.brings_order and final.landing.extracts is None:
        yield Problem(
            path,
            "POLYNYA-CFG-015",
            f"dataset `{final.name}` has no `sequence_by`, so its events have no order",
            "name the columns that order the events, or set `mode: append_only`",
        )


def _foreign_headers(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Header columns of a stream that the format does not have."""
    events, own = final.events, rules_of(final.landing.format).header_columns
    named = {"sequence_by": events.sequence_by, "timestamp": (events.timestamp,)}
    for key, columns in named.items():
        for column in columns:
            if column in STREAM_HEADER_NAMES and column not in own:
                yield Problem(
                    (*path, key),
                    "POLYNYA-CFG-010",
                    f"column name {shown(str(column))} is reserved for Polynya",
                    "only format `stream` has it",
                )


def _unnamed_columns(final: ResolvedDataset, path: tuple[str | int, ...]) -> Iterator[Problem]:
    listed = bool(final.mapping.columns)
    if not final.landing.delivery.has_header and not final.events.columns and not listed:
        yield Problem(
            path,
            "POLYNYA-CFG-008",
            f"dataset `{final.name}` has no `columns`, and its files have no header line",
            "name all columns with their types, in the order of the files",
        )


def _unreachable_source(
    task: StorageTask, source: str, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    if not included(task, source):
        yield Problem(
            (*path, "source"),
            "POLYNYA-CFG-016",
            f"source {shown(source)} is not among the tables that the task takes",
            "widen `include` or narrow `exclude`",
        )


def _extract_problems(
    final: ResolvedDataset, extracts: Extracts, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    code = "POLYNYA-CFG-016"
    if extracts.check_columns and extracts.updated_at:
        yield Problem(
            (*path, "extracts", "updated_at"),
            code,
            "`check_columns` and `updated_at` exclude each other",
            "keep one of the two",
        )
    senseless = {
        "initial_load": final.landing.initial_load,
        "apply_as_truncates": final.events.apply_as_truncates,
        "ignore_null_updates": final.events.ignore_null_updates,
    }
    for key, value in senseless.items():
        if value:
            yield Problem(
                (*path, key),
                code,
                "has no meaning with `extracts`: each of them holds the whole table",
                "take one out",
            )
    if final.kept.mode == "append_only":
        yield Problem(
            (*path, "mode"), code, "`append_only` compares nothing, `extracts` do", "take one out"
        )
    compared = {*(extracts.check_columns or ()), *filter(None, (extracts.updated_at,))}
    for column in sorted(compared & {*final.events.keys, *final.events.except_columns}):
        yield Problem(
            (*path, "extracts"),
            code,
            f"column {shown(column)} is a key or excepted, so it cannot be compared",
            "compare another column",
        )


def _contradictions(
    dataset: Dataset, final: ResolvedDataset, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    code = "POLYNYA-CFG-016"
    events, kept = final.events, final.kept
    if kept.track_history_columns and kept.track_history_except:
        yield Problem(
            (*path, "track_history_except"),
            code,
            "`track_history_columns` and `track_history_except` exclude each other",
            "keep one of the two",
        )
    if isinstance(events.ignore_null_updates, tuple):
        without_value = {*events.keys, *events.except_columns}
        for column in sorted(without_value & {*events.ignore_null_updates}):
            yield Problem(
                (*path, "ignore_null_updates"),
                code,
                f"column {shown(column)} is a key or excepted, so it has no value to keep",
                "take it out of `ignore_null_updates`",
            )
    dropped = set(events.except_columns)
    needed = (
        ("keys", events.keys, "is a key"),
        ("track_history_columns", kept.track_history_columns, "is tracked"),
    )
    for key, columns, why in needed:
        for column in sorted(dropped & set(columns)):
            yield Problem(
                (*path, "except_columns"),
                code,
                f"column {shown(column)} {why} and cannot be excepted",
                f"take it out of `except_columns` or out of `{key}`",
            )
    for key in ("keys", "sequence_by", "except_columns"):
        for column, count in Counter(getattr(events, key)).items():
            if count > 1:
                yield Problem((*path, key), code, f"column {shown(column)} is named twice")
    if kept.mode == "append_only":
        for key in _MERGE_ONLY:
            if getattr(dataset, key):
                yield Problem(
                    (*path, key), code, "has no meaning with `mode: append_only`", "take one out"
                )


def format_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield settings that the format of a task does not take, or lacks."""
    code = "POLYNYA-CFG-019"
    rules = rules_of(task.landing.format)
    finding = [one.name for one in all_rules() if one.finds_tables]
    native = not rules.finds_tables
    if native and not task.datasets:
        yield Problem(
            (),
            "POLYNYA-CFG-008",
            f"format `{task.landing.format}` needs `datasets`: at least one",
            "add `datasets:` with a `name`, `keys` and `sequence_by`",
        )
    for key in ("include", "exclude"):
        if native and key in task.model_fields_set:
            yield Problem((key,), code, _only_for(finding), "use `path` of the dataset")
    for index, dataset in enumerate(task.datasets):
        for key in ("source",) if native else ("path", "initial_load", "extracts"):
            if getattr(dataset, key) is not None:
                wanted = _only_for(finding) if native else f"not for {_formats(finding)}"
                yield Problem(("datasets", index, key), code, wanted, "take the line out")
    if rules.in_order:
        yield from _in_order_problems(task)
    policies = task.defaults.schema_evolution
    if native and policies is not None and policies.new_dataset is not None:
        place = ("defaults", "schema_evolution", "new_dataset")
        yield Problem(place, code, _only_for(finding), "take the line out")
    yield from _delivery_problems(task)
    for problem in rules.check_landing(task.landing):
        yield replace(problem, path=("landing", *problem.path))


def _in_order_problems(task: StorageTask) -> Iterator[Problem]:
    """What only files in any order may have: loads of their own, and several folders."""
    code = "POLYNYA-CFG-019"
    for index, dataset in enumerate(task.datasets):
        place = ("datasets", index)
        for key in ("initial_load", "extracts"):
            if getattr(dataset, key) is not None:
                message = f"not for format `{task.landing.format}`"
                yield Problem((*place, key), code, message, "take the line out")
        folder, _, name = (dataset.path or "*").rpartition("/")
        if name != "*" or set(folder) & set("*?["):
            yield Problem(
                (*place, "path"),
                code,
                f"format `{task.landing.format}` reads all of one folder",
                "write `FOLDER/*`",
            )


def _delivery_problems(task: StorageTask) -> Iterator[Problem]:
    landing = task.landing
    taken = rules_of(landing.format).landing_settings
    for key in Delivery.model_fields:
        if key not in landing.model_fields_set:
            continue
        if key not in taken:
            takers = [rules.name for rules in all_rules() if key in rules.landing_settings]
            yield Problem(
                ("landing", key), "POLYNYA-CFG-019", _only_for(takers), "take the line out"
            )
        elif getattr(landing, key) is None:
            # A bare NULL in YAML is no text: it would silently mean the default.
            yield Problem(
                ("landing", key),
                "POLYNYA-CFG-009",
                "has no value",
                "write a text in quotes, or take the line out",
            )


def _only_for(formats: Iterable[str]) -> str:
    return f"only for {_formats(formats)}"


def _formats(formats: Iterable[str]) -> str:
    names = [f"`{name}`" for name in sorted(formats)]
    return f"format{'s' if len(names) > 1 else ''} {', '.join(names)}"


def task_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield the problems of one task that need no other file."""
    yield from format_problems(task)
    yield from _duplicates(task)
    if isinstance(task.engine, SparkEngine) and task.engine.is_unreachable:
        yield Problem(("engine",), "POLYNYA-CFG-016", *UNREACHABLE)
    yield from written_problems(task, task.defaults, ("defaults",))
    for index, dataset in enumerate(task.datasets):
        yield from dataset_problems(task, dataset, ("datasets", index))


def _duplicates(task: StorageTask) -> Iterator[Problem]:
    code = "POLYNYA-CFG-012"
    for index in _repeated(dataset.name.lower() for dataset in task.datasets):
        name = task.datasets[index].name
        yield Problem(("datasets", index, "name"), code, f"dataset {shown(name)} exists already")
    sources = [(index, d.source) for index, d in enumerate(task.datasets) if d.source is not None]
    for position in _repeated(source for _, source in sources):
        index, source = sources[position]
        message = f"source {shown(source)} already feeds another dataset"
        yield Problem(("datasets", index, "source"), code, message)


def _repeated(values: Iterable[str]) -> Iterator[int]:
    """Yield the index of each value that occurred before."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


def cluster_problems(cluster: str | None, default: str | None) -> Iterator[Problem]:
    """Yield why a task cannot name its cluster; `default` is the one of the project."""
    if cluster is not None and default is None:
        yield Problem(
            ("cluster",),
            "POLYNYA-CFG-016",
            "the project names no cluster: whose the tasks are that name none is not known",
            "write `cluster: NAME` in polynya.yml, too: it has the tasks that name none",
        )
