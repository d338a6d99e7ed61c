"""One shape for the elements of several documents: array or not, struct or text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from polynya.model.datatypes import Array, DataType, Struct

#: The field with the text of an element that has attributes or elements.
TEXT: Final = "_value"
_Place = tuple[str, ...]


@dataclass(slots=True)
class Shapes:
    """The places of elements that are arrays, and of those that are structs, somewhere."""

    arrays: set[_Place] = field(default_factory=set)
    structs: set[_Place] = field(default_factory=set)

    @classmethod
    def of(cls, known: Mapping[str, DataType]) -> Shapes:
        """What the columns so far say."""
        shapes = cls()
        for name, kind in known.items():
            shapes._know((name,), kind)
        return shapes

    def learn(self, record: Mapping[str, Any], place: _Place = ()) -> None:
        """Take in a record."""
        for name, value in record.items():
            here = (*place, name)
            if isinstance(value, list):
                self.arrays.add(here)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    self.structs.add(here)
                    self.learn(one, here)

    def give(self, record: dict[str, Any], place: _Place = ()) -> None:
        """Give a record the shape of all, in place."""
        for name, value in record.items():
            here = (*place, name)
            many = isinstance(value, list)
            values = value if many else [value]
            shaped = [self._shaped(one, here) for one in values]
            if many or (here in self.arrays and value is not None):
                record[name] = shaped
            else:
                (record[name],) = shaped

    def _shaped(self, value: Any, here: _Place) -> Any:
        if isinstance(value, dict):
            self.give(value, here)
        elif value is not None and here in self.structs:
            return {TEXT: value}
        return value

    def _know(self, place: _Place, kind: DataType) -> None:
        if isinstance(kind, Array):
            self.arrays.add(place)
            kind = kind.element
        if isinstance(kind, Struct):
            self.structs.add(place)
            for name, inner in kind.fields:
                self._know((*place, name), inner)
