"""Errors of `polynya ask` (TRF): SQL for a question."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, OperationError

ASK_NOT_CONFIGURED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-145",
    title="no language model is configured",
    message="the project names no language model",
    fix="add `ask` with `connection` and `model` to the project file; nothing is sent before",
    page="`polynya ask` sends a question, and the names and types of columns, to a language model. "
    "It is off until the project file names a connection to its API and a model.",
)
QUESTION_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TRF-146",
    title="a question cannot be asked about these tables",
    page="A request has the names and types of all tables, or of those that `--table` names. They "
    "have to have columns, and to fit into one request.",
)
PROPOSAL_UNUSABLE: Final = ErrorEntry(
    OperationError,
    "POLYNYA-TRF-147",
    title="the answer of a language model has no SQL",
    message="the answer cannot be used: {reason}",
    state="nothing was run",
    fix="ask again, or another model; the API has to answer `chat/completions` as OpenAI's does",
    page="The answer is not what an API of this kind sends, or has no SQL in it.",
)
