"""What decoding gives: the records of a message, and how each of them can be read again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from typing_extensions import override

from polynya.formats import limits
from polynya.formats.errors import RecordError
from polynya.model.errors import PolynyaError
from polynya.model.types import DataType

#: A record of a message, or why it is none.
Item: TypeAlias = "dict[str, Any] | RecordError"

#: Most characters of what an exception says.
_MAX_ERROR_CHARACTERS: Final = 400


@dataclass(frozen=True, slots=True)
class Decoded:
    """The records of one message.

    Attributes:
        items: its records; what is none of them says why.
        types: of columns, where the message declares them.
        part: the bytes of the record at an index, by which it can be read by itself; None where
            a message is one record.
        is_spelled: those bytes are JSON, whatever the message is: the types of the table say what
            its texts are.
    """

    items: Sequence[Item]
    types: Mapping[str, DataType] = field(default_factory=dict)
    part: Callable[[int], bytes] | None = None
    is_spelled: bool = False


class Decoder(ABC):
    """Decodes messages of one content.

    Attributes:
        is_text: values are texts whose types are inferred from all of a column.
        is_typed: messages declare the types of their values.
    """

    is_text: bool = False
    is_typed: bool = False

    @abstractmethod
    def decode(self, messages: Sequence[bytes]) -> Iterable[Decoded | RecordError]:
        """What each message holds, or why it cannot be read.

        Raises:
            DependencyError: a service that is needed to read them did not answer.
        """

    def settle(self, records: Sequence[dict[str, Any]], known: Mapping[str, DataType]) -> None:
        """Give the records of a batch one shape, in place, as far as their types leave it open.

        `known` has the types of the columns so far. By default records have one shape.
        """
        del records, known


class OneByOne(Decoder):
    """A decoder that reads each message by itself."""

    @override
    def decode(self, messages: Sequence[bytes]) -> Iterable[Decoded | RecordError]:
        for message in messages:
            try:
                yield self.one(message)
            except RecordError as error:
                yield error
            except PolynyaError:
                raise
            except Exception as error:  # noqa: BLE001 - one message must not stop a stream
                what = f"{type(error).__name__} {error}"[:_MAX_ERROR_CHARACTERS]
                yield RecordError("undecodable", f"the decoder failed: {what}")

    @abstractmethod
    def one(self, message: bytes) -> Decoded:
        """What a message holds. Raises RecordError."""


def too_many() -> RecordError:
    """Why a message has more records than can be meant."""
    return RecordError("too_large", f"more than {limits.MESSAGE_RECORDS:,} records in one message")
