"""Register the views of a dataset in the catalog, and keep them up to date.

A view is one version with a text for each dialect, which Iceberg's view specification calls a
representation. Spark's own `CREATE VIEW` writes only its own; so these go through Iceberg's
builder. Iceberg then refuses a statement that would drop a dialect.

A view whose settled text reads less has that text while nothing is pending. No catalog commits a
table and a view together, so the order keeps queries right: the text that is right in every commit
comes before the commit that leaves the first pending change, and the settled one after that of the
apply. A query between the two reads at worst the rows of a moment ago.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from polynya.lake.fold.live_views import (
    DEFINITION,
    TRANSLATED_BY,
    columns_of,
    definition_of,
    spark_views,
)
from polynya.lake.fold.shape import Shape
from polynya.lake.iceberg.layout import create_namespaces
from polynya.lake.spark.catalog import internal_path, view_catalog
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.names import Dialect, quote, quote_path

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

#: Iceberg's property: whether a new version of a view may lack a dialect of the one before.
_MAY_DROP: Final = "replace.drop-dialect.allowed"


@dataclass(frozen=True, slots=True)
class OtherDialects:
    """What writes the views for engines beside Spark.

    `version` changes when the texts may. `texts` gives view → dialect → SQL; a view for which one
    is missing is published without it. `settled_texts` gives those for when nothing is pending.
    """

    version: str
    texts: Callable[[ResolvedDataset, Shape], Mapping[str, Mapping[Dialect, str]]]
    settled_texts: Callable[[ResolvedDataset, Shape], Mapping[str, Mapping[Dialect, str]]]


def publish_views(
    target: DatasetTable,
    shape: Shape,
    others: OtherDialects | None = None,
    *,
    settled: bool | None = False,
) -> list[str]:
    """Create or replace the views whose definition changed; return their names.

    `settled`: nothing is pending, and they get their settled texts; None: nothing is pending, and
    each keeps the one that it has. The catalog is asked once for each shape: what was found or made
    then stays, as long as nobody else commits to the table.
    """
    is_known = target.views_of == shape
    if is_known and settled in {None, target.views_settled}:
        return []
    target.views_of = None
    # A process that was killed between a change of columns and the state that knows of it leaves
    # views of types that the table no longer has.
    ahead = target.table.columns() if target.table.is_ahead() else None
    published = create_views(
        target.spark,
        target.dataset,
        shape,
        stored=ahead,
        others=others,
        settled=settled,
        # The others have one text, and are there with it.
        of_two_texts=is_known,
    )
    if ahead is None:
        target.views_of, target.views_settled = shape, settled
    return published


def create_views(
    spark: SparkSession,
    dataset: ResolvedDataset,
    shape: Shape,
    *,
    stored: object = None,
    others: OtherDialects | None = None,
    settled: bool | None = False,
    of_two_texts: bool = False,
) -> list[str]:
    """The same for a dataset whose table need not be open; its namespace must exist.

    `stored` tells the columns that the table has by now, where the shape does not know them.
    `of_two_texts`: only those views whose settled text is another one.
    """
    published = []
    texts: Mapping[str, Mapping[Dialect, str]] | None = None
    table = internal_path(spark, dataset)
    made = spark_views(dataset, shape, table, settled=bool(settled))
    other = spark_views(dataset, shape, table, settled=not settled)
    by = {} if others is None else {TRANSLATED_BY: others.version}
    for name, sql in made.items():
        if of_two_texts and sql == other[name]:
            continue
        place = _place(spark, quote_path(view_catalog(spark), dataset.relations.schema, name))
        kept = (sql, other[name]) if settled is None else (sql,)
        wanted = {text: {DEFINITION: definition_of(shape, text, stored), **by} for text in kept}
        if _has(place, wanted):
            continue
        if texts is None:
            write = others and (others.settled_texts if settled else others.texts)
            texts = write(dataset, shape) if write else {}
        more = texts.get(name, {})
        # A dialect goes only where its text cannot be written any more: it would be a wrong one.
        may_drop = "false" if more else "true"
        # A new version keeps each property of the one before that it does not have itself.
        properties = {TRANSLATED_BY: "", **wanted[sql], _MAY_DROP: may_drop}
        schema = _schema(spark, dataset, shape, name, sql if stored is not None else None)
        _replace(spark, place, schema, {Dialect.SPARK: sql, **more}, properties)
        published.append(f"{dataset.relations.schema}.{name}")
    return published


def publish_query_view(
    spark: SparkSession,
    schema: str,
    view: str,
    sql: str,
    owner: str,
    *,
    version: str = "",
    others: Mapping[Dialect, str] | None = None,
) -> bool:
    """Create or replace the view of a query that no table keeps; whether it was changed.

    `owner` names its task. `others` are its texts for other engines, and `version` tells by what
    they were written. A dialect of the view before that is not among them goes.
    """
    catalog = view_catalog(spark)
    create_namespaces(spark, [quote_path(catalog, schema)])
    place = _place(spark, quote_path(catalog, schema, view))
    struct = spark.sql(sql)._jdf.schema()
    wanted = {DEFINITION: f"{owner} {struct.toDDL()}", TRANSLATED_BY: version}
    if _has(place, {sql: wanted}):
        return False
    jvm: Any = spark._jvm
    made = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(struct)
    texts = {Dialect.SPARK: sql, **(others or {})}
    _replace(spark, place, made, texts, {**wanted, _MAY_DROP: "true"})
    return True


def query_views(spark: SparkSession, schema: str, owner: str, known: Collection[str]) -> list[str]:
    """Names of the views of a schema that `publish_query_view` made for an owner.

    Those of `known`, in lower case, are left out.
    """
    path = quote_path(view_catalog(spark), schema)
    if not spark.catalog.databaseExists(path):
        return []
    found = []
    for row in spark.sql(f"SHOW VIEWS IN {path}").collect():
        name = str(row["viewName"])
        if name.lower() in known or row["isTemporary"]:
            continue
        place = _place(spark, quote_path(view_catalog(spark), schema, name))
        view = place.catalog().loadView(place.identifier())
        if str(view.properties().get(DEFINITION)).startswith(f"{owner} "):
            found.append(name)
    return found


def drop_views(spark: SparkSession, names: Iterable[str]) -> None:
    """Drop views, given as `schema.view`; missing views are ignored."""
    for name in names:
        spark.sql(f"DROP VIEW IF EXISTS {quote_path(view_catalog(spark), *name.split('.'))}")


def _place(spark: SparkSession, quoted: str) -> Any:
    """Catalog and identifier of a view in Java."""
    # Through the catalog itself: a statement would cost a plan for each view of each batch.
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(
        spark._jsparkSession, quoted
    )


def _has(place: Any, wanted: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the view is there with one of some texts and was made with the properties of it."""
    if not place.catalog().viewExists(place.identifier()):
        return False
    view = place.catalog().loadView(place.identifier())
    # Whoever replaces a view keeps its properties.
    made = wanted.get(str(view.query()))
    properties = view.properties()
    return made is not None and all(properties.get(name) == made[name] for name in made)


def _schema(
    spark: SparkSession, dataset: ResolvedDataset, shape: Shape, view: str, analyzed: str | None
) -> Any:
    """Names and types of the columns of a view, in Iceberg's schema.

    `analyzed` is the text of the view where the table has types that the shape does not know.
    """
    jvm: Any = spark._jvm
    if analyzed is not None:
        struct = spark.sql(analyzed)._jdf.schema()
    else:
        columns = columns_of(dataset, shape, view) or {}
        listed = ", ".join(f"{quote(name)} {kind}" for name, kind in columns.items())
        struct = jvm.org.apache.spark.sql.types.StructType.fromDDL(listed)
    return jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(struct)


def _replace(
    spark: SparkSession,
    place: Any,
    schema: Any,
    texts: Mapping[Dialect, str],
    properties: Mapping[str, str],
) -> None:
    """Make a view, or a new version of it, in one commit of the catalog."""
    jvm: Any = spark._jvm
    identifier = jvm.org.apache.iceberg.spark.Spark3Util.identifierToTableIdentifier(
        place.identifier()
    )
    # Spark's catalog shows only one that caches tables, which knows of no views.
    field = place.catalog().getClass().getDeclaredField("asViewCatalog")
    field.setAccessible(True)
    builder = (
        field.get(place.catalog())
        .buildView(identifier)
        .withSchema(schema)
        .withDefaultCatalog(place.catalog().name())
        .withDefaultNamespace(identifier.namespace())
        .withProperties(dict(properties))
    )
    for dialect, sql in texts.items():
        builder = builder.withQuery(str(dialect), sql)
    builder.createOrReplace()
