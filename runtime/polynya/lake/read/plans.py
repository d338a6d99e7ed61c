"""Whether a SQL statement only reads, judged by Spark's own plan and the functions it calls.

Text can hide from one SQL parser what another one sees. So the judge is the plan that Spark would
run: every node of it, and every function that it calls, must be on an allow-list. The functions are
those of the pinned Spark, except those that reach outside of the data. A test compares the lists
with the functions that Spark has, so a new version of Spark adds nothing that nobody has reviewed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from polynya.lake.read.functions import (
    ICEBERG_FUNCTIONS,
    READING_FUNCTIONS,
    REFUSED_FUNCTIONS,
)
from polynya.lake.spark import api

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

_SPARK: Final = "org.apache.spark.sql."
#: Relations, their combinations, and statements that show metadata.
_LOGICAL: Final = """
    Aggregate AsOfJoin Deduplicate DescribeColumn DescribeFunction DescribeNamespace
    DescribeRelation Distinct Except Filter Generate GlobalLimit Intersect Join JoinHint
    LateralJoin LocalLimit LocalRelation Offset OneRowRelation Pivot Project Repartition
    RepartitionByExpression RebalancePartitions Sample ShowColumns ShowCreateTable ShowFunctions
    ShowNamespaces ShowPartitions ShowTableProperties ShowTables ShowTablesExtended ShowViews Sort
    SubqueryAlias Tail Union UnresolvedHint UnresolvedWith Unpivot Window WithWindowDefinition
    """
_PLANS: Final = frozenset(f"{_SPARK}catalyst.plans.logical.{name}" for name in _LOGICAL.split())
_UNRESOLVED: Final = """
    CurrentNamespace MultiAlias NamedParameter PosParameter RelationTimeTravel
    ResolvedInlineTable UnresolvedAlias UnresolvedAttribute UnresolvedDeserializer
    UnresolvedExtractValue UnresolvedFunction UnresolvedFunctionName UnresolvedGenerator
    UnresolvedHaving UnresolvedIdentifier UnresolvedInlineTable UnresolvedNamespace
    UnresolvedOrdinal UnresolvedRegex UnresolvedRelation UnresolvedStar UnresolvedStarExcept
    UnresolvedStarExceptOrReplace UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
    UnresolvedTable UnresolvedTableOrView UnresolvedTableValuedFunction UnresolvedTranspose
    UnresolvedView
    """
_NAMES: Final = frozenset(f"{_SPARK}catalyst.analysis.{name}" for name in _UNRESOLVED.split())
_SHOWING: Final = """
    DescribeQueryCommand DescribeRelationJsonCommand ExplainCommand ShowCatalogsCommand
    ShowCurrentNamespaceCommand ShowNamespacesCommand
    """
_COMMANDS: Final = frozenset(f"{_SPARK}execution.command.{name}" for name in _SHOWING.split())
#: What Iceberg's parser makes of `SHOW VIEWS` in its catalogs.
_OF_ICEBERG: Final = f"{_SPARK}catalyst.plans.logical.views.ShowIcebergViews"
#: Parts of a node that are not trees: names, types, kinds of joins, positions.
_PARTS: Final = (
    "java.",
    "scala.",
    f"{_SPARK}types.",
    f"{_SPARK}util.",
    f"{_SPARK}catalyst.AliasIdentifier",
    f"{_SPARK}catalyst.FunctionIdentifier",
    f"{_SPARK}catalyst.TableIdentifier",
    f"{_SPARK}catalyst.plans.Cross",
    f"{_SPARK}catalyst.plans.Full",
    f"{_SPARK}catalyst.plans.Inner",
    f"{_SPARK}catalyst.plans.Left",
    f"{_SPARK}catalyst.plans.NaturalJoin",
    f"{_SPARK}catalyst.plans.Right",
    f"{_SPARK}catalyst.plans.UsingJoin",
    f"{_SPARK}catalyst.trees.",
    f"{_SPARK}catalyst.util.",
    f"{_SPARK}execution.CodegenMode",
    f"{_SPARK}execution.CostMode",
    f"{_SPARK}execution.ExtendedMode",
    f"{_SPARK}execution.FormattedMode",
    f"{_SPARK}execution.SimpleMode",
    "org.apache.spark.unsafe.types.",
)
_KNOWN_PLANS: Final = _PLANS | _NAMES | _COMMANDS | {_OF_ICEBERG}
#: Of these, those that hold other parts, in addition to collections.
_WRAPPERS: Final = ("scala.Some", "scala.Tuple", "scala.util.Left", "scala.util.Right")
_EXPRESSIONS: Final = f"{_SPARK}catalyst.expressions."
#: Of the expressions that a parser makes by itself: those that run code which Spark does not have.
_RUNNING: Final = ("Reflect", "Invoke", "UDF", "UDT", "Python", "Script", "NewInstance")
#: Nothing of a user is below them, and statements over wide tables have thousands.
_LEAVES: Final = frozenset(
    {
        f"{_EXPRESSIONS}GenericInternalRow",
        f"{_EXPRESSIONS}Literal",
        # A name, and the catalog in which it was found.
        f"{_SPARK}catalyst.analysis.ResolvedNamespace",
        f"{_SPARK}catalyst.analysis.UnresolvedAttribute",
        f"{_SPARK}catalyst.plans.logical.views.ResolvedV2View",
        f"{_SPARK}catalyst.trees.Origin",
    }
)
_FUNCTION: Final = f"{_SPARK}catalyst.analysis.UnresolvedFunction"
_TABLE_FUNCTION: Final = f"{_SPARK}catalyst.analysis.UnresolvedTableValuedFunction"
_RELATION: Final = f"{_SPARK}catalyst.analysis.UnresolvedRelation"
_WITH: Final = f"{_SPARK}catalyst.plans.logical.UnresolvedWith"
_GENERATOR: Final = f"{_SPARK}catalyst.analysis.UnresolvedGenerator"
#: A third argument of these names a file: the schema that documents have to follow.
_MAX_ARGUMENTS: Final = {"from_xml": 2, "schema_of_xml": 1}


def why_refused(
    spark: SparkSession, text: str, relations: Collection[str] | None = None
) -> str | None:
    """Why a statement is not answered; None for one that only reads.

    `relations` are the only names of tables and views that it may read, besides those that it
    defines itself; None: whatever there is.

    Raises the error of Spark for a text that its parser does not take.
    """
    session: Any = spark._jsparkSession
    plan = session.sessionState().sqlParser().parsePlan(text)
    try:
        return next(_reasons(plan, relations), None)
    except api.Py4JError as error:
        if getattr(error, "java_exception", None) is not None:
            raise
        # What cannot be looked at is not run.
        return f"a part of it cannot be looked at: {error}"


def _reasons(root: Any, relations: Collection[str] | None) -> Iterator[str]:
    """Yield what is wrong with each part of a plan, whatever field of it holds the part."""
    waiting = [root]
    read: list[list[str]] = []
    defined: set[str] = set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, api.JavaObject):
            continue
        name = str(part.getClass().getName()).removesuffix("$")
        if name in _LEAVES:
            continue
        if not _is_known(name):
            yield f"it has {_shown(name)}, which does not only read"
            continue
        yield from _of_function(part, name)
        fields = _fields(part, name)
        if name == _RELATION:
            read.append(_texts(part.multipartIdentifier()))
        elif name == _WITH:
            defined |= {name.lower() for name in _defined(part)}
        waiting += fields
    for parts in read if relations is not None else ():
        is_own = len(parts) == 1 and parts[0].lower() in defined
        if not is_own and ".".join(parts) not in (relations or ()):
            yield f"it reads {'.'.join(parts)!r}, which is not among its tables"


def _is_known(name: str) -> bool:
    if name.startswith(_EXPRESSIONS):
        rest = name.removeprefix(_EXPRESSIONS)
        return "." not in rest and not any(word in rest for word in _RUNNING)
    return name in _KNOWN_PLANS or name.startswith(_PARTS)


def _fields(part: Any, name: str) -> list[Any]:
    """All that a part consists of. Raises Py4JError for a node that does not tell."""
    if name.startswith("scala.collection."):
        iterator = part.iterator()
    elif name.startswith(_WRAPPERS) or not name.startswith(_PARTS):
        iterator = part.productIterator()
    else:
        return []
    fields = []
    while iterator.hasNext():
        fields.append(iterator.next())
    return fields


def _of_function(part: Any, name: str) -> Iterator[str]:
    if name == _FUNCTION:
        yield from _of_call(_texts(part.nameParts()), int(part.arguments().size()))
    elif name == _TABLE_FUNCTION:
        yield from _of_call(_texts(part.name()), int(part.functionArgs().size()))
    elif name == _GENERATOR:
        called = part.name()
        yield from _of_call([str(called.funcName())], int(part.children().size()))


def _of_call(names: list[str], arguments: int) -> Iterator[str]:
    called = names[-1].lower()
    if called in REFUSED_FUNCTIONS:
        yield f"the function {called}: {REFUSED_FUNCTIONS[called]}"
    elif called not in READING_FUNCTIONS and not (len(names) > 1 and called in ICEBERG_FUNCTIONS):
        yield f"the function {called!r}, which is none of Spark's"
    elif arguments > _MAX_ARGUMENTS.get(called, arguments):
        yield f"the function {called} with options, which may name a file"


def _texts(names: Any) -> list[str]:
    return [str(names.apply(at)) for at in range(names.size())]


def _defined(part: Any) -> Iterator[str]:
    """The names that a `WITH` gives."""
    pairs = part.cteRelations().iterator()
    while pairs.hasNext():
        yield str(pairs.next()._1())


def _shown(name: str) -> str:
    return name.rpartition(".")[2].partition("$")[0]
