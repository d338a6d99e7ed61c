"""Objects of Java that Python no longer has are released, many by one request."""

from __future__ import annotations

import gc
import time
from typing import Any

from polynya.lake.spark.api import SparkSession

#: More than one request takes.
OBJECTS = 1_200


def test_java_forgets_the_objects_that_python_has_no_more(spark: SparkSession) -> None:
    java: Any = spark._jvm.java  # type: ignore[union-attr]
    watched = java.util.ArrayList()
    for _ in range(OBJECTS):
        watched.add(java.lang.ref.WeakReference(java.util.ArrayList()))
    kept = java.util.ArrayList()
    watched.add(java.lang.ref.WeakReference(kept))

    def alive() -> int:
        gc.collect()
        java.lang.System.gc()
        # Asking for the object itself would give it to Python again.
        return sum(not bool(watched.get(index).refersTo(None)) for index in (0, 700, OBJECTS))

    until = time.monotonic() + 30
    while alive() != 1 and time.monotonic() < until:
        time.sleep(0.1)

    assert alive() == 1
    kept.add("is still known")
