"""Which names a source column may have."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

from polynya.formats.batch import SERVICE_NAMES
from polynya.model.headers import RESERVED_PREFIX
from polynya.model.names import METADATA_COLUMNS, folded
from polynya.model.types import Array, DataType, MapType, Struct

MAX_NAME_LENGTH = 255
#: Top-level columns of a table. Spark plans and compiles a query of all of them in each step: an
#: apply of three late events took four minutes at 1,600 columns, on a busy machine.
MAX_COLUMNS = 2000
TOO_MANY = (
    f"it would be a column more than the {MAX_COLUMNS:,} that a table may have; leave columns out "
    "with `except_columns`, or land rare ones as one object"
)
#: Fields of one struct. Each takes a value in every row, in memory and in the files.
MAX_FIELDS = 2000
TOO_MANY_FIELDS = (
    f"it would be a field more than the {MAX_FIELDS:,} that an object may have; where names are "
    "values, declare the column as a map"
)


def nested_problem(name: str) -> str | None:
    """Why a field cannot have this name, or None."""
    if not name:
        return "a column without a name"
    if len(name) > MAX_NAME_LENGTH:
        return f"a column name of {len(name)} characters"
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        return f"column {name!r} has a control character in its name"
    return None


def column_problem(name: str) -> str | None:
    """Why a top-level column cannot have this name, or None."""
    same = folded(name)
    if same.startswith(RESERVED_PREFIX) or same in SERVICE_NAMES:
        return f"column {name!r} has a name that Polynya keeps for itself"
    return nested_problem(name)


def reserved_problem(name: str) -> str | None:
    """Why Iceberg keeps the name of a top-level column for itself, or None."""
    if folded(name) not in METADATA_COLUMNS:
        return None
    return (
        f"column {name!r} has the name of a metadata column of Iceberg, beside which no engine "
        "reads it; name it under `except_columns`, or give it another name at the source"
    )


class NameSpace:
    """Names of one level as engines compare them, without regard to case."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spelling = {folded(name): name for name in names}

    def clash(self, name: str) -> str | None:
        """Why `name` cannot stand beside the names so far, or None; then it is one of them."""
        first = self._spelling.setdefault(folded(name), name)
        if first == name:
            return None
        return f"columns {first!r} and {name!r} differ only in case"


def fitting(
    rows: Sequence[Mapping[str, object] | None],
    wanted: Collection[str],
    room: int,
    refused: Container[int],
) -> tuple[set[str], dict[int, str]]:
    """Which new names there is room for, in the order of rows, and the first that has none.

    A row that brings too many takes no room: its index is a key of the second. Rows that are
    refused for another reason take none either.
    """
    found: set[str] = set()
    beyond: dict[int, str] = {}
    for index, row in enumerate(rows):
        if not row or index in refused:
            continue
        brings = [name for name in row if name in wanted and name not in found]
        free = max(room, 0) - len(found)
        if len(brings) > free:
            beyond[index] = brings[free]
        else:
            found.update(brings)
    return found, beyond


def schema_problem(known: Collection[str], schema: Mapping[str, DataType]) -> str | None:
    """Why a table whose columns are `known` cannot have all columns of `schema`, or None."""
    space = NameSpace(known)
    if len(schema) > max(MAX_COLUMNS, len(known)):
        return TOO_MANY
    for name in schema:
        if name in known:
            continue
        problem = column_problem(name) or reserved_problem(name) or space.clash(name)
        if problem is not None:
            return problem
    old = {name: kind for name, kind in schema.items() if name in known}
    return next((problem for _, problem in one_name_twice(old, schema)), None)


def one_name_twice(
    known: Mapping[str, DataType], schema: Mapping[str, DataType]
) -> list[tuple[tuple[str, ...], str]]:
    """Paths of columns and fields that cannot stand beside others, each with the reason.

    Iceberg gives each field a name of all names on the way to it, with dots between: `a.b` is the
    field `b` of `a`, and a column `a.b`. Those of `known` come first, and stay.
    """
    if not any("." in name for path in _paths(schema) for name in path):
        return []
    first: dict[str, tuple[str, ...]] = {}
    for path in (*_paths(known), *_paths(schema)):
        first.setdefault(folded(".".join(path)), path)
    return [
        (path, f"{_shown(path)} and {_shown(other)} have one name in a table of Iceberg")
        for path in _paths(schema)
        if (other := first[folded(".".join(path))]) != path
    ]


def _shown(path: tuple[str, ...]) -> str:
    if len(path) == 1:
        return f"column {path[0]!r}"
    return f"field {path[-1]!r} of {'.'.join(path[:-1])!r}"


def _paths(schema: Mapping[str, DataType]) -> Iterator[tuple[str, ...]]:
    for name, kind in schema.items():
        yield from _inner((name,), kind)


def _inner(path: tuple[str, ...], kind: DataType) -> Iterator[tuple[str, ...]]:
    yield path
    match kind:
        case Struct(fields):
            for name, inner in fields:
                yield from _inner((*path, name), inner)
        case Array(element):
            yield from _inner((*path, "element"), element)
        case MapType(key, value):
            yield from _inner((*path, "key"), key)
            yield from _inner((*path, "value"), value)
