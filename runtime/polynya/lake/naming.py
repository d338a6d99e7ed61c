"""Names that readers outside Spark need too."""

from __future__ import annotations

#: Name of the catalog in Spark, and the `catalog_name` of its rows in a JDBC catalog: all readers
#: must use the same.
CATALOG = "polynya"
