"""Polynya: landed changes become live, atomic Apache Iceberg tables.

The names in `__all__` are public: programs may import them from here, and the changelog reports
each change of them. Everything else may move.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from polynya.engine.reader import Lake as Lake
    from polynya.engine.reader import LakeTable as LakeTable
    from polynya.engine.reader import LiveRead as LiveRead
    from polynya.engine.reader import Watermark as Watermark
    from polynya.engine.reader import open_lake as open  # noqa: A004 - as `gzip.open`
    from polynya.model.config.catalog import Catalog as Catalog
    from polynya.model.config.evolution import SchemaEvolution as SchemaEvolution
    from polynya.model.config.settings import ApplyPolicy as ApplyPolicy
    from polynya.model.config.settings import BatchSettings as BatchSettings
    from polynya.model.config.settings import Dataset as Dataset
    from polynya.model.config.settings import DatasetSettings as DatasetSettings
    from polynya.model.config.settings import Extracts as Extracts
    from polynya.model.config.settings import Landing as Landing
    from polynya.model.config.settings import ViewSettings as ViewSettings
    from polynya.model.config.target import Project as Project
    from polynya.model.config.target import Target as Target
    from polynya.model.config.task import StorageTask as StorageTask
    from polynya.model.errors import ConfigError as ConfigError
    from polynya.model.errors import ConfigErrors as ConfigErrors
    from polynya.model.errors import ConflictError as ConflictError
    from polynya.model.errors import DataError as DataError
    from polynya.model.errors import DependencyError as DependencyError
    from polynya.model.errors import FencedError as FencedError
    from polynya.model.errors import InternalError as InternalError
    from polynya.model.errors import OperationError as OperationError
    from polynya.model.errors import PolynyaError as PolynyaError
    from polynya.model.errors import StaleStepError as StaleStepError
    from polynya.model.errors import SuspendedError as SuspendedError
    from polynya.model.errors import TaskStoppedError as TaskStoppedError
    from polynya.model.loader import LoadedProject as LoadedProject
    from polynya.model.loader import load_project as load_project

__version__ = "0.7.0"

__all__ = [
    "ApplyPolicy",
    "BatchSettings",
    "Catalog",
    "ConfigError",
    "ConfigErrors",
    "ConflictError",
    "DataError",
    "Dataset",
    "DatasetSettings",
    "DependencyError",
    "Extracts",
    "FencedError",
    "InternalError",
    "Lake",
    "LakeTable",
    "Landing",
    "LiveRead",
    "LoadedProject",
    "OperationError",
    "PolynyaError",
    "Project",
    "SchemaEvolution",
    "StaleStepError",
    "StorageTask",
    "SuspendedError",
    "Target",
    "TaskStoppedError",
    "ViewSettings",
    "Watermark",
    "__version__",
    "load_project",
    "open",
]

_HOMES: Final = {
    "polynya.engine.reader": ("Lake", "LakeTable", "LiveRead", "Watermark", "open"),
    "polynya.model.config.evolution": ("SchemaEvolution",),
    "polynya.model.config.target": ("Catalog", "Project", "Target"),
    "polynya.model.config.settings": (
        "ApplyPolicy",
        "BatchSettings",
        "Dataset",
        "DatasetSettings",
        "Extracts",
        "Landing",
        "ViewSettings",
    ),
    "polynya.model.config.task": ("StorageTask",),
    "polynya.model.errors": tuple(name for name in __all__ if name.endswith(("Error", "Errors"))),
    "polynya.model.loader": ("LoadedProject", "load_project"),
}
#: Names that another word has in its module.
_OWN_NAMES: Final = {"open": "open_lake"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: `polynya --help` needs none of them."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), _OWN_NAMES.get(name, name))
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
