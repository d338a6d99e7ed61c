"""Checks of well-formed tasks: contradicting settings, and settings that a format lacks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from polynya.model.config.catalog import Catalog, unencrypted_host
from polynya.model.config.connection import is_this_machine
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedTask
from polynya.model.config.engines import UNREACHABLE, SparkEngine
from polynya.model.config.layout import TIMES, PartitionTerm, SortTerm, age_refusal
from polynya.model.config.mapping import MappedColumn, TimeColumn, reads_elements
from polynya.model.config.settings import Dataset, DatasetSettings, Delivery, Extracts, FileReload
from polynya.model.config.sources import included
from polynya.model.config.stream_landing import KafkaServer
from polynya.model.config.target import Project
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.problems import Problem
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.configuration import (
    CONTRADICTING_LAYOUT,
    CONTRADICTING_SETTINGS,
    DUPLICATE_NAME,
    MISSING_KEY,
    NO_KEYS,
    NO_SEQUENCE,
    NOT_FOR_FORMAT,
    UNPROTECTED_LOGIN,
    UNSUITABLE_AGE_TYPE,
    UNSUITABLE_LAYOUT_TYPE,
    UNUSABLE_NAME,
    WRONG_VALUE,
)
from polynya.model.error_catalogue.expressions import (
    CONTRADICTING_COLUMNS,
    MAPPING_NOT_POSSIBLE,
    REPLACEMENT_NOT_POSSIBLE,
)
from polynya.model.formats import all_rules, rules_of
from polynya.model.headers import STREAM_HEADER_NAMES
from polynya.model.names import METADATA_COLUMNS, POSTGRESQL, folded, postgres_address, shown


def task_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield the problems of one task that need no other file."""
    yield from format_problems(task)
    yield from _duplicates(task)
    if isinstance(task.engine, SparkEngine) and task.engine.is_unreachable:
        yield Problem(("engine",), CONTRADICTING_SETTINGS(UNREACHABLE[0], fix=UNREACHABLE[1]))
    yield from written_problems(task, task.defaults, ("defaults",))
    for index, dataset in enumerate(task.datasets):
        yield from dataset_problems(task, dataset, ("datasets", index))


def _duplicates(task: StorageTask) -> Iterator[Problem]:
    for index in _repeated(dataset.name.lower() for dataset in task.datasets):
        name = task.datasets[index].name
        message = f"dataset {shown(name)} exists already"
        yield Problem(("datasets", index, "name"), DUPLICATE_NAME(message))
    sources = [(index, d.source) for index, d in enumerate(task.datasets) if d.source is not None]
    for position in _repeated(source for _, source in sources):
        index, source = sources[position]
        message = f"source {shown(source)} already feeds another dataset"
        yield Problem(("datasets", index, "source"), DUPLICATE_NAME(message))


def _repeated(values: Iterable[str]) -> Iterator[int]:
    """Yield the index of each value that occurred before."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield index
        seen.add(value)


def format_problems(task: StorageTask) -> Iterator[Problem]:
    """Yield settings that the format of a task does not take, or that it lacks."""
    rules = rules_of(task.landing.format)
    finding = [format_.name for format_ in all_rules() if format_.finds_tables]
    native = not rules.finds_tables
    only_views = isinstance(task, DerivedTask) and task.query_views
    if native and not task.datasets and not only_views:
        yield Problem(
            (),
            MISSING_KEY(
                f"format `{task.landing.format}` needs `datasets` with at least one entry",
                fix="add `datasets:` with a `name`, `keys` and `sequence_by`",
            ),
        )
    for key in ("include", "exclude"):
        if native and key in task.model_fields_set:
            fix = "use `path` of the dataset"
            yield Problem((key,), NOT_FOR_FORMAT(_only_for(finding), fix=fix))
    for index, dataset in enumerate(task.datasets):
        for key in ("source",) if native else ("path", "initial_load", "extracts", "reload"):
            if getattr(dataset, key) is not None:
                message = _only_for(finding) if native else f"not for {_formats(finding)}"
                yield Problem(("datasets", index, key), NOT_FOR_FORMAT(message))
    if rules.in_order:
        yield from _in_order_problems(task)
    policies = task.defaults.schema_evolution
    if native and policies is not None and policies.new_dataset is not None:
        place = ("defaults", "schema_evolution", "new_dataset")
        yield Problem(place, NOT_FOR_FORMAT(_only_for(finding)))
    yield from _delivery_problems(task)
    for problem in rules.check_landing(task.landing):
        yield replace(problem, path=("landing", *problem.path))


def _in_order_problems(task: StorageTask) -> Iterator[Problem]:
    """Settings that only formats with files in any order have: separate loads, several folders."""
    for index, dataset in enumerate(task.datasets):
        place = ("datasets", index)
        for key in ("initial_load", "extracts", "reload"):
            if getattr(dataset, key) is not None:
                message = f"not for format `{task.landing.format}`"
                yield Problem((*place, key), NOT_FOR_FORMAT(message))
        folder, _, name = (dataset.path or "*").rpartition("/")
        if name != "*" or set(folder) & set("*?["):
            yield Problem(
                (*place, "path"),
                NOT_FOR_FORMAT(
                    f"format `{task.landing.format}` reads all files of one folder",
                    fix="write `FOLDER/*`",
                ),
            )


def _delivery_problems(task: StorageTask) -> Iterator[Problem]:
    landing = task.landing
    taken = rules_of(landing.format).landing_settings
    for key in Delivery.model_fields:
        if key not in landing.model_fields_set:
            continue
        if key not in taken:
            takers = [rules.name for rules in all_rules() if key in rules.landing_settings]
            yield Problem(("landing", key), NOT_FOR_FORMAT(_only_for(takers)))
        elif getattr(landing, key) is None:
            # An empty value in YAML is NULL, which would silently mean the default.
            yield Problem(
                ("landing", key),
                WRONG_VALUE("has no value", fix="write a text in quotes, or take the line out"),
            )


def _only_for(formats: Iterable[str]) -> str:
    return f"only for {_formats(formats)}"


def _formats(formats: Iterable[str]) -> str:
    names = [f"`{name}`" for name in sorted(formats)]
    return f"format{'s' if len(names) > 1 else ''} {', '.join(names)}"


_MERGE_ONLY: Final = (
    "apply_as_deletes",
    "apply_as_truncates",
    "ignore_null_updates",
    "history",
    "coalesce_unchanged",
    "track_history_columns",
    "track_history_except",
    "changes_retention",
    "replace_elements",
)


def dataset_problems(task: StorageTask, dataset: Dataset, path: NodePath) -> Iterator[Problem]:
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
            CONTRADICTING_SETTINGS(
                "a declared dataset is not a new one", fix="set it under `defaults` of the task"
            ),
        )
    yield from _contradictions(dataset, final, path)
    yield from layout_problems(final, path)
    yield from written_problems(task, dataset, path)
    yield from mapping_problems(final, path)
    if dataset.replace_elements or final.kept.replaced_within:
        yield from _replacement_problems(final, (*path, "replace_elements"))
    if final.landing.extracts is not None:
        yield from _extract_problems(final, final.landing.extracts, path)
    if final.landing.reload is not None:
        yield from _reload_problems(final, final.landing.reload, path)


def _merge_problems(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    rules = rules_of(final.landing.format)
    if not final.events.keys and not rules.brings_keys:
        yield Problem(path, NO_KEYS(subject=f"dataset `{final.name}`"))
    if not final.events.sequence_by and not rules.brings_order and final.landing.extracts is None:
        yield Problem(path, NO_SEQUENCE(dataset=final.name))


def _unnamed_columns(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    listed = bool(final.mapping.columns)
    if not final.landing.delivery.has_header and not final.events.columns and not listed:
        yield Problem(
            path,
            MISSING_KEY(
                f"dataset `{final.name}` has no `columns`, and its files have no header line",
                fix="name all columns with their types, in the order of the files",
            ),
        )


def _foreign_headers(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    """Header columns of a stream that the format does not have."""
    events, own = final.events, rules_of(final.landing.format).header_columns
    named = {"sequence_by": events.sequence_by, "timestamp": (events.timestamp,)}
    for key, columns in named.items():
        for column in columns:
            if column in STREAM_HEADER_NAMES and column not in own:
                yield Problem(
                    (*path, key),
                    UNUSABLE_NAME(
                        f"column name {shown(str(column))} is reserved for Polynya",
                        fix="only format `stream` has it",
                    ),
                )


def _unreachable_source(task: StorageTask, source: str, path: NodePath) -> Iterator[Problem]:
    if not included(task, source):
        yield Problem(
            (*path, "source"),
            CONTRADICTING_SETTINGS(
                f"`include` and `exclude` leave out the source {shown(source)}",
                fix="widen `include` or narrow `exclude`",
            ),
        )


def _contradictions(dataset: Dataset, final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    events, kept = final.events, final.kept
    if kept.track_history_columns and kept.track_history_except:
        yield Problem(
            (*path, "track_history_except"),
            CONTRADICTING_SETTINGS(
                "`track_history_columns` and `track_history_except` exclude each other",
                fix="keep one of the two",
            ),
        )
    if isinstance(events.ignore_null_updates, tuple):
        without_value = {*events.keys, *events.except_columns}
        for column in sorted(without_value & {*events.ignore_null_updates}):
            yield Problem(
                (*path, "ignore_null_updates"),
                CONTRADICTING_SETTINGS(
                    f"column {shown(column)} is a key or excluded, so it has no value to keep",
                    fix="remove it from `ignore_null_updates`",
                ),
            )
    excluded = set(events.except_columns)
    needed = (
        ("keys", events.keys, "is a key"),
        ("track_history_columns", kept.track_history_columns, "is tracked"),
    )
    for key, columns, role in needed:
        for column in sorted(excluded & set(columns)):
            yield Problem(
                (*path, "except_columns"),
                CONTRADICTING_SETTINGS(
                    f"column {shown(column)} {role} and cannot be excluded",
                    fix=f"remove it from `except_columns` or from `{key}`",
                ),
            )
    for key in ("keys", "sequence_by", "except_columns"):
        for column, count in Counter(getattr(events, key)).items():
            if count > 1:
                message = f"column {shown(column)} is named twice"
                yield Problem((*path, key), CONTRADICTING_SETTINGS(message))
    if kept.mode == "append_only":
        for key in _MERGE_ONLY:
            if getattr(dataset, key):
                message = "has no meaning with `mode: append_only`"
                yield Problem((*path, key), CONTRADICTING_SETTINGS(message))


def _extract_problems(
    final: ResolvedDataset, extracts: Extracts, path: NodePath
) -> Iterator[Problem]:
    if extracts.check_columns and extracts.updated_at:
        yield Problem(
            (*path, "extracts", "updated_at"),
            CONTRADICTING_SETTINGS(
                "`check_columns` and `updated_at` exclude each other", fix="keep one of the two"
            ),
        )
    excluded = {
        "initial_load": final.landing.initial_load,
        "apply_as_truncates": final.events.apply_as_truncates,
        "ignore_null_updates": final.events.ignore_null_updates,
    }
    for key, value in excluded.items():
        if value:
            message = "has no meaning with `extracts`: each of them holds the whole table"
            yield Problem((*path, key), CONTRADICTING_SETTINGS(message))
    if final.kept.mode == "append_only":
        message = "`append_only` compares nothing, `extracts` do"
        yield Problem((*path, "mode"), CONTRADICTING_SETTINGS(message))
    compared = {*(extracts.check_columns or ()), *filter(None, (extracts.updated_at,))}
    for column in sorted(compared & {*final.events.keys, *final.events.except_columns}):
        yield Problem(
            (*path, "extracts"),
            CONTRADICTING_SETTINGS(
                f"column {shown(column)} is a key or excluded, so it cannot be compared",
                fix="compare another column",
            ),
        )


def _reload_problems(
    final: ResolvedDataset, reload: FileReload, path: NodePath
) -> Iterator[Problem]:
    place = (*path, "reload")
    if final.landing.extracts is not None:
        message = "`extracts` are compared as they land, without a schedule"
        yield Problem(place, CONTRADICTING_SETTINGS(message, fix="remove one of the two"))
    if final.kept.mode == "append_only":
        message = "`append_only` compares nothing, a reload does"
        yield Problem((*path, "mode"), CONTRADICTING_SETTINGS(message))
    if reload.files is None and final.landing.initial_load is None:
        yield Problem(
            place,
            MISSING_KEY(
                "`reload` does not know the files of a full load",
                fix="name them with `files`, such as `full/*.csv`, or with `initial_load`",
            ),
        )


def layout_problems(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    """Yield what is wrong with the layout and the retention of a dataset."""
    layout = final.layout
    yield from _retained(final, (*path, "retention", "column"))
    yield from _partitioned(layout.partition_by, (*path, "partition_by"))
    yield from _sorted(layout.sort_by, (*path, "sort_by"))
    terms: dict[str, Sequence[PartitionTerm | SortTerm]] = {
        "partition_by": layout.partition_by,
        "sort_by": layout.sort_by,
    }
    for setting, listed in terms.items():
        for index, term in enumerate(listed):
            yield from _term_problems(final, term, (*path, setting, index))


def _retained(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    retention = final.kept.retention
    if retention is None:
        return
    yield from _column(final, retention.column, path)
    type_ = final.events.columns.get(retention.column)
    if type_ is not None and (reason := age_refusal(type_)):
        yield Problem(path, UNSUITABLE_AGE_TYPE(reason, fix="name another column"))


def _partitioned(terms: Sequence[PartitionTerm], path: NodePath) -> Iterator[Problem]:
    yield from _twice([str(term) for term in terms], path)
    by_time = Counter(term.column for term in terms if term.transform in TIMES)
    for column, count in by_time.items():
        transforms = {term.transform for term in terms if term.column == column} & {*TIMES}
        if count > 1 and len(transforms) > 1:
            finest = max(transforms, key=TIMES.index)
            yield Problem(
                path,
                CONTRADICTING_LAYOUT(
                    f"{shown(column)} is partitioned by time more than once",
                    fix=f"keep `{finest}`: queries for longer periods can use it too",
                ),
            )


def _sorted(terms: Sequence[SortTerm], path: NodePath) -> Iterator[Problem]:
    if len(terms) > 1 and any(term.order == "zorder" for term in terms):
        message = "`zorder` cannot be combined with other terms"
        yield Problem(path, CONTRADICTING_LAYOUT(message, fix="name all columns inside of it"))
    yield from _twice([column for term in terms for column in term.columns], path)


def _twice(names: Sequence[str], path: NodePath) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(
                path, CONTRADICTING_LAYOUT(f"{shown(name)} is named twice", fix="name it once")
            )


def _term_problems(
    final: ResolvedDataset, term: PartitionTerm | SortTerm, path: NodePath
) -> Iterator[Problem]:
    """Yield columns of a term that are excluded, missing, or of a type that it cannot use."""
    for column in term.columns if isinstance(term, SortTerm) else (term.column,):
        yield from _column(final, column, path)
        type_ = final.events.columns.get(column)
        if type_ is not None and (reason := term.refusal(type_)):
            fix = "name another column or transform"
            yield Problem(path, UNSUITABLE_LAYOUT_TYPE(reason, fix=fix))


def _column(final: ResolvedDataset, column: str, path: NodePath) -> Iterator[Problem]:
    if column in final.events.except_columns:
        yield Problem(
            path,
            CONTRADICTING_LAYOUT(
                f"column {shown(column)} is excluded, so later rows have NULL in it",
                fix="remove it from `except_columns`, or name another column",
            ),
        )
    declared = final.events.columns
    without_header = (
        rules_of(final.landing.format).has_header_lines and not final.landing.delivery.has_header
    )
    if without_header and declared and column not in declared:
        near = get_close_matches(column, sorted(declared), n=1)
        fix = f"did you mean {shown(near[0])}?" if near else "name one of `columns`"
        yield Problem(path, CONTRADICTING_LAYOUT(f"there is no column {shown(column)}", fix=fix))


def written_problems(
    task: StorageTask, settings: DatasetSettings, path: NodePath
) -> Iterator[Problem]:
    """Yield what is wrong with a list of columns, of a dataset or under `defaults`."""
    rules = rules_of(task.landing.format)
    if not isinstance(settings.columns, tuple):
        if not rules.spells_times:
            yield from _foreign_formats(settings.columns or {}, path)
        return
    if rules.has_header_lines and not task.landing.has_header:
        yield Problem(
            (*path, "columns"),
            MAPPING_NOT_POSSIBLE(
                "the files have no header line, so their columns have no names to map",
                fix="write `columns` as a map of all columns with their types, in file order",
            ),
        )
    for index, column in enumerate(settings.columns) if rules.finds_tables else ():
        if column.key is not None and (column.source is None or column.type is not None):
            yield Problem(
                (*path, "columns", index, "expression" if column.source is None else "type"),
                MAPPING_NOT_POSSIBLE(
                    f"a key column of format `{rules.name}` can only be renamed",
                    fix="write the name of a column of the source, without a type: old keys and "
                    "deletes refer to it",
                ),
            )
    yield from _name_problems(settings.columns, path)
    yield from _key_problems(settings.columns, path)
    if settings.keys and any(column.key is not None for column in settings.columns):
        yield Problem(
            (*path, "keys"),
            CONTRADICTING_COLUMNS(
                "the list of `columns` already marks the key columns with `key`",
                fix="remove `keys`, or the ordinals",
            ),
        )


def _foreign_formats(columns: Mapping[str, object], path: NodePath) -> Iterator[Problem]:
    """Formats of times where the files have types, or their format spells times its own way."""
    takers = [rules.name for rules in all_rules() if rules.spells_times]
    for name, column in columns.items():
        if isinstance(column, TimeColumn):
            yield Problem((*path, "columns", name, "format"), NOT_FOR_FORMAT(_only_for(takers)))


def _name_problems(columns: Sequence[MappedColumn], path: NodePath) -> Iterator[Problem]:
    names: set[str] = set()
    for index, column in enumerate(columns):
        name = folded(column.name)
        if name in METADATA_COLUMNS:
            yield Problem(
                (*path, "columns", index, "name"),
                CONTRADICTING_COLUMNS(
                    f"column {shown(column.name)} has the name of a metadata column of Iceberg",
                    fix="give it another name: no engine could read this column",
                ),
            )
        if name in names:
            yield Problem(
                (*path, "columns", index, "name"),
                CONTRADICTING_COLUMNS(
                    f"column {shown(column.name)} exists already",
                    fix="give it another name; upper and lower case make no difference",
                ),
            )
        names.add(name)


def _key_problems(columns: Sequence[MappedColumn], path: NodePath) -> Iterator[Problem]:
    numbered = sorted(
        (column.key, index) for index, column in enumerate(columns) if column.key is not None
    )
    for wanted, (key, index) in enumerate(numbered, start=1):
        if key != wanted:
            yield Problem(
                (*path, "columns", index, "key"),
                CONTRADICTING_COLUMNS(
                    f"found `key: {key}` instead of `key: {wanted}`",
                    fix="number the columns of the key from 1, each number once",
                ),
            )
            return


def mapping_problems(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    """Yield why a dataset with these final settings cannot map its columns."""
    if not final.mapping.is_set:
        return
    if final.landing.extracts is not None:
        yield Problem(
            (*path, "extracts"),
            MAPPING_NOT_POSSIBLE(
                "has no meaning with mapped columns: extracts are compared column by column",
                fix="take one out",
            ),
        )
    if not rules_of(final.landing.format).finds_tables or final.mapping.keys:
        return
    for key in final.events.keys:
        if not final.mapping.of_source((key,)):
            yield Problem(
                (*path, "keys"),
                MAPPING_NOT_POSSIBLE(
                    f"key {shown(key)} is computed, and keys of format `{final.landing.format}` "
                    "can only be renamed",
                    fix="map it to the name of a column of the source: old keys and deletes refer "
                    "to it",
                ),
            )


def _replacement_problems(final: ResolvedDataset, path: NodePath) -> Iterator[Problem]:
    """Yield what a dataset lacks in which a record replaces its elements."""
    events, mapping, kept = final.events, final.mapping, final.kept
    if final.landing.format != "stream":
        yield Problem(path, NOT_FOR_FORMAT(_only_for(["stream"])))
        return
    if kept.mode != "merge" or not events.keys:
        # Another check asks for the keys.
        return
    of_elements = [key for key in events.keys if key not in kept.replaced_within]
    if not of_elements:
        yield Problem(
            path,
            REPLACEMENT_NOT_POSSIBLE(
                "no key column is of an element, so each record is one row",
                fix="mark a column such as `lines[].id` or `ordinal(lines[])` with `key`",
            ),
        )
    if not kept.replaced_within:
        yield Problem(
            path,
            REPLACEMENT_NOT_POSSIBLE(
                "all key columns are of an element, so nothing says which record it is of",
                fix="mark a column of the record, such as `id`, with `key`",
            ),
        )
    if events.ignore_null_updates:
        yield Problem(
            path,
            REPLACEMENT_NOT_POSSIBLE(
                "`ignore_null_updates` keeps values of elements that a record may have deleted",
                fix="take one of the two out",
            ),
        )
    conditions = {
        "where": mapping.where,
        "apply_as_deletes": events.apply_as_deletes,
        "apply_as_truncates": events.apply_as_truncates,
    }
    for setting, text in conditions.items():
        if text is not None and reads_elements(text):
            yield Problem(
                (*path[:-1], setting),
                REPLACEMENT_NOT_POSSIBLE(
                    f"`{setting}` reads an element, so it would decide about a part of a record",
                    fix="write a condition over the record; a record that lacks an element deletes "
                    "it, and an empty array deletes all",
                ),
            )


_VERIFIED: Final = "verify-full"


def unsecured_catalogs(project: Project) -> Iterator[Problem]:
    """Yield the catalogs on other machines whose identity is not verified.

    Another check reports an address that cannot be read.
    """
    for name, target in project.targets.items():
        catalog = target.catalog
        host = _unverified_host(catalog)
        if host is not None and not catalog.allow_unverified:
            yield Problem(
                ("targets", name, "catalog", "uri"),
                UNPROTECTED_LOGIN(
                    f"{shown(host)} is on another machine, and its identity is not verified: "
                    "another server could get the password and write the catalog",
                    fix="add `?sslmode=verify-full` to the address, or `allow_unverified: true`",
                ),
            )
        if (open_host := unencrypted_host(catalog)) is not None:
            yield Problem(
                ("targets", name, "catalog", "uri"),
                UNPROTECTED_LOGIN(
                    f"{shown(open_host)} is on another machine, and requests to the catalog would "
                    "go over the network without TLS",
                    fix="write `https://`, or `allow_unencrypted: true`",
                ),
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


def unsecured_login(source: KafkaServer, place: NodePath) -> Iterator[Problem]:
    """Yield a login to brokers on other machines that is sent without TLS.

    `place` is where the settings stand.
    """
    protocol = source.properties.get("security.protocol")
    if protocol is None or protocol.get_secret_value().upper() != "SASL_PLAINTEXT":
        return
    hosts = [server.strip().rpartition(":")[0] for server in source.bootstrap_servers.split(",")]
    remote = [host for host in hosts if host and not is_this_machine(host)]
    if remote and not source.allow_unencrypted:
        yield Problem(
            (*place, "properties", "security.protocol"),
            UNPROTECTED_LOGIN(
                f"{shown(remote[0])} is on another machine, and the login would go over the "
                "network without TLS",
                fix="write `SASL_SSL`, or `allow_unencrypted: true` beside `bootstrap_servers`",
            ),
        )


def cluster_problems(cluster: str | None, default: str | None) -> Iterator[Problem]:
    """Yield why a task cannot name its cluster; `default` is the project's cluster."""
    if cluster is not None and default is None:
        yield Problem(
            ("cluster",),
            CONTRADICTING_SETTINGS(
                "the project names no cluster, so tasks without `cluster` would have none",
                fix="also write `cluster: NAME` in polynya.yml, for tasks that do not name one",
            ),
        )
