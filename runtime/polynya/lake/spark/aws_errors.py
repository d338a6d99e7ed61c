"""What AWS said through Iceberg, PyIceberg or Arrow, as an error that people can act on.

The store room explains what it asks for itself; this is for what the libraries ask.
"""

from __future__ import annotations

from typing import Any, Final

from polynya.lake.spark.api import CapturedException, Py4JJavaError
from polynya.model.errors import DependencyError

_JAVA_SDK: Final = "software.amazon.awssdk."


def aws_error(error: BaseException) -> DependencyError | None:
    """The error to show when AWS, or the way there, is the cause; None for any other cause."""
    seen: BaseException | None = error
    while seen is not None:
        text = _of_python(seen) or _of_java(seen)
        if text is not None:
            # Start-up time: the AWS SDK.
            from polynya.store.aws.clients import explained_text

            return explained_text(text)
        seen = seen.__cause__
    return None


def _of_python(error: BaseException) -> str | None:
    from_sdk = type(error).__module__.partition(".")[0] == "botocore"
    from_arrow = isinstance(error, OSError) and "AWS Error " in str(error)
    return str(error) if from_sdk or from_arrow else None


def _of_java(error: BaseException) -> str | None:
    java: Any = None
    if isinstance(error, Py4JJavaError):
        java = error.java_exception
    elif isinstance(error, CapturedException):
        java = error._origin
    while java is not None:
        if str(java.getClass().getName()).startswith(_JAVA_SDK):
            return str(java.getMessage())
        java = java.getCause()
    return None
