"""Start the Spark session of a project, for runs and for readers.

On a catalog that cannot hold live views, they are created when a statement names them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.cache import cache_root, new_scratch
from polynya.lake.spark.catalog import CATALOG, holds_views, secret_properties, spark_properties
from polynya.lake.spark.class_archive import cds_options
from polynya.lake.spark.jars import jars_of
from polynya.lake.spark.java import find_java
from polynya.lake.spark.session import (
    MEMORY_VARIABLE,
    SessionSettings,
    asked_heap,
    driver_heap,
    machine_memory,
    start_session,
)
from polynya.lake.spark.standalone import find_master, join, refusals, refuse_unnamed
from polynya.lake.warehouse.check import make_folder, refuse_unusable
from polynya.model.loader import LoadedProject


def start_spark(project: LoadedProject, *, long_lived: bool = False) -> SparkSession:
    """The Spark session of a project's target, started if this process has none.

    A `long_lived` session optimises its code as far as the JVM can, which a short one would pay
    for without a benefit. Raises DependencyError when Java or the jars are missing, the warehouse
    cannot be made, or the cluster of the target does not answer, and ConfigError for an invalid
    heap size or a cluster that this machine does not name.
    """
    target = project.target
    heap = _heap(long_lived=long_lived)
    if target.cluster is not None:
        refuse_unnamed(target.cluster)
        find_master(target.cluster)
    if isinstance(target.warehouse, Path):
        make_folder(target.warehouse)
    java = find_java()
    jars = jars_of(target, project.stream_jars)
    settings = SessionSettings(
        jars=jars,
        catalog=spark_properties(target),
        secrets=secret_properties(target),
        small=not long_lived,
        memory=f"{heap}m",
        jvm_options=cds_options(java, jars),
        log_file=cache_root() / "log" / "spark.log",
        session_views=not holds_views(target),
        cluster=target.cluster,
        scratch=new_scratch(cache_root() / "tmp"),
    )
    if target.cluster is None:
        return start_session(settings, java)
    with refusals(target.cluster):
        spark = start_session(settings, java)
    join(spark, target.cluster)
    return spark


def fetch_jars(project: LoadedProject) -> None:
    """Fetch the missing jars that `start_spark` needs. Raises DependencyError."""
    jars_of(project.target, project.stream_jars)


def throwaway(project: LoadedProject, folder: Path) -> LoadedProject:
    """The project with all its output in another folder, with its own catalog there.

    Spark runs in this process: no other machine has that folder.
    """
    target = replace(
        project.target,
        name="test",
        landing=folder / "landing",
        warehouse=folder / "warehouse",
        catalog_type="jdbc",
        catalog_uri=f"jdbc:sqlite:{folder / 'catalog.db'}",
        catalog_properties={},
        catalog_user=None,
        catalog_password=None,
        rest=None,
        cluster=None,
    )
    return replace(project, target=target)


def _heap(*, long_lived: bool) -> int:
    machine, asked = machine_memory(), os.environ.get(MEMORY_VARIABLE)
    return asked_heap(asked, machine) if asked else driver_heap(machine, dedicated=long_lived)


def start_reader(project: LoadedProject, statements: str) -> SparkSession:
    """A session in which the views that the statements may name can be read.

    Where the catalog holds views there is nothing to do. Elsewhere a view is made from the state of
    its table, so that one of a dataset which gets a column later is old until the next session.
    """
    refuse_unusable(project.target, CATALOG)
    spark = start_spark(project)
    if holds_views(project.target):
        return spark
    # Start-up time: PyIceberg, which finds the tables there.
    from polynya.engine.session_views import make_views

    make_views(spark, project, statements)
    return spark
