"""Start what a run needs: Java, jars, the Spark session, the landing zone."""

from __future__ import annotations

import os

from polynya.engine.context import EngineContext
from polynya.engine.policy import ApplyMode
from polynya.lake.cache import cache_root
from polynya.lake.catalog import spark_properties
from polynya.lake.cds import cds_options
from polynya.lake.jars import jar_paths
from polynya.lake.java import find_java
from polynya.lake.session import SessionSettings, SparkSession, start_session
from polynya.model.loader import LoadedProject
from polynya.observe.events import EventSink, discard
from polynya.store.object_store import LocalObjectStore


def start_spark(project: LoadedProject, *, long_lived: bool = False) -> SparkSession:
    """The Spark session of a project's target, started if this process has none.

    A `long_lived` one optimises its code as far as the JVM can, which a short one would pay for
    and not live to enjoy. Raises DependencyError when Java or the jars are missing.
    """
    target = project.target
    target.warehouse.mkdir(parents=True, exist_ok=True)
    java = find_java()
    jars = jar_paths(repository=target.maven_repository)
    settings = SessionSettings(
        jars=jars,
        catalog=spark_properties(target),
        small=not long_lived,
        memory=os.environ.get("POLYNYA_DRIVER_MEMORY", "2g"),
        jvm_options=cds_options(java, jars),
        log_file=cache_root() / "log" / "spark.log",
    )
    return start_session(settings, java)


def start_engine(
    project: LoadedProject,
    *,
    apply_mode: ApplyMode = "policy",
    sink: EventSink = discard,
    long_lived: bool = False,
) -> EngineContext:
    """Everything that tasks run with."""
    project.target.landing.mkdir(parents=True, exist_ok=True)
    return EngineContext(
        spark=start_spark(project, long_lived=long_lived),
        landing=LocalObjectStore(project.target.landing),
        sink=sink,
        apply_mode=apply_mode,
    )
