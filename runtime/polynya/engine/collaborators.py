"""Builds the context of a run for a project."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from polynya.engine import session
from polynya.engine.backlog import LandedReaders, copy_state_reader
from polynya.engine.context import EngineContext, EngineHooks
from polynya.engine.policy import ApplyMode
from polynya.formats.begun import Begun
from polynya.formats.loads import limits_of
from polynya.lake.apply import key_index
from polynya.lake.apply.fast import FastApplier
from polynya.lake.fold.live_views import dialects_version
from polynya.lake.fold.shape import Shape
from polynya.lake.read.catalog_views import OtherDialects
from polynya.lake.spark.cache import cache_root, write_atomically
from polynya.lake.spark.catalog import CATALOG, holds_views
from polynya.lake.spark.session import is_alive, is_local
from polynya.lake.warehouse.check import cause_of, make_folder, refuse_unusable, refuse_unwritable
from polynya.lake.warehouse.moved import FOLDER, refuse_moved
from polynya.lake.warehouse.readers import Readers
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.loader import LoadedProject
from polynya.model.names import Dialect
from polynya.observe.events import EventSink, discard
from polynya.store.clock import SystemClock
from polynya.store.places import store_at

if TYPE_CHECKING:
    from polynya.query.glue import GluePublisher


def start_engine(
    project: LoadedProject,
    *,
    apply_mode: ApplyMode = "policy",
    sink: EventSink = discard,
    long_lived: bool = False,
) -> EngineContext:
    """Start Spark and build the context of a run.

    Raises ConfigError when POLYNYA_KEY_INDEX is not a size, DependencyError or OperationError when
    the warehouse or its catalog cannot be used.
    """
    indexes = key_index.key_indexes(os.environ.get(key_index.VARIABLE))
    target = project.target
    refuse_unusable(target, CATALOG)
    if isinstance(target.warehouse, Path):
        make_folder(target.warehouse)
        refuse_unwritable(target.warehouse)
    refuse_moved_tables(target, project.internal_schemas)
    _refuse_unconditional(project)
    spark = session.start_spark(project, long_lived=long_lived)
    glue = _glue_publisher(target)
    landed_readers = LandedReaders(copy_state_reader(spark))
    # A file that cannot be read may hold an unknown table.
    landed_readers.know(None if project.errors else project.works)
    return EngineContext(
        spark=spark,
        landing=store_at(target.landing, target.aws),
        sink=sink,
        applier=FastApplier(indexes),
        apply_mode=apply_mode,
        access=target.aws,
        target=target,
        landed_readers=landed_readers,
        load_limits=limits_of(
            spark.sparkContext.defaultParallelism, on_cluster=not is_local(spark)
        ),
        begun=Begun(cache_root() / "begun", str(target.landing)),
        hooks=EngineHooks(
            publish_views=None if glue is None else glue.publish,
            publish_query_view=None if glue is None else glue.publish_view,
            other_dialects=other_dialects() if holds_views(target) else None,
            cause_of=lambda failure: cause_of(failure, target, CATALOG),
            is_alive=lambda: is_alive(spark),
            may_create=lambda dataset: refuse_moved_tables(
                target, {dataset.relations.internal_schema}
            ),
            readers=Readers.of(target, SystemClock()).at_work,
        ),
    )


def other_dialects() -> OtherDialects:
    """Writes the views for engines that read Iceberg views."""

    def texts(
        dataset: ResolvedDataset, shape: Shape, *, settled: bool = False
    ) -> Mapping[str, Mapping[Dialect, str]]:
        # Start-up time: sqlglot.
        from polynya.query.dialects import representations

        return representations(dataset, shape, settled=settled)

    return OtherDialects(dialects_version(), texts, partial(texts, settled=True))


def refuse_moved_tables(target: ResolvedTarget, schemas: set[str]) -> None:
    """Raise OperationError when another catalog has the tables of a schema, or is getting them."""
    if isinstance(target.warehouse, Path) and not (target.warehouse / FOLDER).is_dir():
        return
    refuse_moved(store_at(target.warehouse, target.aws), target, schemas)


def _refuse_unconditional(project: LoadedProject) -> None:
    """Try once on this machine whether a REST catalog refuses commits on an old snapshot.

    Raises OperationError when it takes them (POLYNYA-LAKE-065).
    """
    target, schemas = project.target, sorted(project.internal_schemas)
    if target.rest is None or not schemas:
        return
    name = hashlib.sha256(target.rest.text.encode()).hexdigest()[:32]
    proven = cache_root() / "catalogs" / name
    if proven.exists():
        return
    # Start-up time: PyIceberg's writers.
    from polynya.lake.warehouse.probe import probe_commits

    probe_commits(target, CATALOG, schemas[0])
    with suppress(OSError):
        write_atomically(proven, target.rest.text)


def _glue_publisher(target: ResolvedTarget) -> GluePublisher | None:
    """Publishes the views that Athena and Trino read; None where the catalog is not Glue."""
    if not target.on_glue:
        return None
    # Start-up time: the AWS SDK.
    from polynya.query.glue import GluePublisher

    return GluePublisher(target)
