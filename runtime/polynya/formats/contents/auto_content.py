"""Avro containers, Parquet and JSON, told apart by the first bytes of each message."""

from __future__ import annotations

from polynya.formats.contents.avro_content import ContainerDecoder
from polynya.formats.contents.columnar_content import parquet_decoder
from polynya.formats.contents.decoded import Decoded, OneByOne
from polynya.formats.contents.json_content import JsonDecoder


class AutoDecoder(OneByOne):
    """Whatever a message begins like."""

    def __init__(self) -> None:
        self._avro, self._parquet, self._json = ContainerDecoder(), parquet_decoder(), JsonDecoder()

    def one(self, message: bytes) -> Decoded:
        """See `OneByOne`."""
        if message.startswith(b"Obj\x01"):
            return self._avro.one(message)
        if message.startswith(b"PAR1"):
            return self._parquet.one(message)
        return self._json.one(message)
