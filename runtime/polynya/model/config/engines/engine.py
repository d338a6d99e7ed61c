"""`engine:` of a task or a target: where Spark works."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic_core import CoreSchema

from polynya.model.config.engines.standalone import MASTER_PATTERN, SparkEngine
from polynya.model.config.engines.submitted import EmrServerlessEngine, GlueEngine
from polynya.model.config.fields import Frozen


class LocalEngine(Frozen):
    """Spark in a process of this machine."""

    mode: Literal["local"] = Field(description="`local`: Spark runs here.")


Engine: TypeAlias = LocalEngine | SparkEngine | EmrServerlessEngine | GlueEngine
#: Engines of AWS, to which work is submitted.
Submitted: TypeAlias = EmrServerlessEngine | GlueEngine
LOCAL: Final = LocalEngine(mode="local")


def _named(value: Any) -> Any:
    """`local` is short for `{mode: local}`, and an address of a master for `{mode: spark, …}`."""
    if value == "local":
        return {"mode": "local"}
    if isinstance(value, str):
        return {"mode": "spark", "master": value}
    if isinstance(value, dict) and "master" in value and "mode" not in value:
        return {"mode": "spark", **value}
    return value


class _EngineSchema:
    """The JSON Schema of an engine with its short forms."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> dict[str, Any]:
        short = [{"const": "local"}, {"type": "string", "pattern": MASTER_PATTERN}]
        return {"anyOf": [*short, handler(core)]}


EngineSetting: TypeAlias = Annotated[
    Annotated[Engine, Field(discriminator="mode")], BeforeValidator(_named), _EngineSchema
]
