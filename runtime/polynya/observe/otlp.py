"""Spans to an OpenTelemetry collector, by OTLP over HTTP: the extra `polynya[otel]`.

The variables of OpenTelemetry's specification say where to and how much; without an endpoint
nothing of this is imported. Names, figures and codes leave the process, and no text of an error, no
value of a row and no address of a request.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from typing_extensions import override

from polynya import __version__
from polynya.model.error_catalogue.machine import SPANS_NOT_EXPORTED, SPANS_NOT_TAKEN
from polynya.model.errors import PolynyaError
from polynya.observe import trace
from polynya.observe.events import ErrorEvent, EventSink
from polynya.observe.trace import EndedSpan, OpenSpan, SpanExport, SpanKind

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"
#: A parent for the spans of a process, as a header of W3C Trace Context.
PARENT: Final = "TRACEPARENT"
#: The end of a process waits so long for a collector that does not answer.
_CLOSE_SECONDS: Final = 3.0
_MOST_CHARACTERS: Final = 500
#: Attributes that OpenTelemetry's conventions name.
_NAMES: Final = {
    "error": "error.type",
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
}
#: Spans of a step that found nothing to do.
_IDLE: Final = frozenset({"step", "look"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpansNotExported(ErrorEvent):
    """Spans do not reach a collector; reported once while that lasts."""

    type: ClassVar[str] = "spans.not_exported"
    template: ClassVar[str] = "{cause}"


def begin(environment: Mapping[str, str], sink: EventSink) -> None:
    """Export spans from now on, if the environment names a collector.

    What keeps that from working is an event and no error: an environment is set for many programs.
    """
    endpoint = _first(environment, _ENDPOINTS)
    off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporters = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if endpoint is None or off or "otlp" not in exporters.split(","):
        return
    where = _shown(endpoint)
    try:
        trace.export(_export(where, environment, sink))
    except ImportError:
        error = SPANS_NOT_EXPORTED(
            where=where,
            reason="OpenTelemetry is not installed",
            fix="`pip install 'polynya[otel]'`, or unset OTEL_EXPORTER_OTLP_ENDPOINT",
        )
        sink(SpansNotExported(subject="spans", error=error))
    except PolynyaError as known:
        sink(SpansNotExported(subject="spans", error=known))
    except Exception as failure:  # noqa: BLE001 - the SDK reads many variables; the command works
        error = SPANS_NOT_EXPORTED(
            where=where,
            reason=f"its settings are wrong ({type(failure).__name__})",
            fix="check the variables whose names begin with OTEL_",
        )
        sink(SpansNotExported(subject="spans", error=error))


def end() -> None:
    """Send what is left, and export nothing from now on."""
    trace.export(None)


def _first(environment: Mapping[str, str], names: Sequence[str]) -> str | None:
    found = (environment.get(name, "").strip() for name in names)
    return next((value for value in found if value), None)


def _shown(endpoint: str) -> str:
    """An endpoint without what may be a login."""
    scheme, _, rest = endpoint.partition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _export(where: str, environment: Mapping[str, str], sink: EventSink) -> SpanExport:
    protocol = _first(environment, _PROTOCOLS) or _PROTOCOL
    if protocol != _PROTOCOL:
        raise SPANS_NOT_EXPORTED(
            where=where,
            reason=f"the protocol is `{protocol[:40]}`, and Polynya speaks `{_PROTOCOL}`",
            fix=f"set OTEL_EXPORTER_OTLP_PROTOCOL={_PROTOCOL} and the port for it, often 4318",
        )
    # What runs without a collector needs none of this, nor that it is installed.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if not log.isEnabledFor(logging.DEBUG):
        # It logs each failure, with what the collector answered; `_telling` reports the first one.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    instance = environment.get("POLYNYA_NODE_ID") or f"{socket.gethostname()}:{os.getpid()}"
    own = {"service.version": __version__, "service.instance.id": instance}
    resource = Resource.create(own)
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "polynya"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_telling(OTLPSpanExporter(), where, sink)))
    return OtlpExport(provider, environment.get(PARENT))


def _telling(inner: SpanExporter, where: str, sink: EventSink) -> SpanExporter:
    """An exporter that reports when its collector begins to take nothing."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class TellingExporter(SpanExporter):
        fails = False

        @override
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = inner.export(spans)
            fails = result is not SpanExportResult.SUCCESS
            if fails and not self.fails:
                sink(SpansNotExported(subject="spans", error=SPANS_NOT_TAKEN(where=where)))
            self.fails = fails
            return result

        @override
        def shutdown(self) -> None:
            inner.shutdown()

    return TellingExporter()


class OtlpExport:
    """Spans by a tracer of the SDK. `parent`: what the whole process works for."""

    def __init__(self, provider: TracerProvider, parent: str | None) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider, self._parent = provider, parent
        self._tracer = provider.get_tracer("polynya", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def put(self, done: EndedSpan, parent: str | None) -> None:
        """Take the outermost span of a thread, unless it found nothing to do."""
        if not _is_idle(done):
            self._put(done, self._context(parent))

    def open(self, kind: SpanKind, parent: str | None) -> OpenSpan:
        """Begin a span that any thread ends."""
        from opentelemetry.trace import SpanKind as Kinds

        of = Kinds.SERVER if kind == "request" else Kinds.INTERNAL
        span = self._tracer.start_span(kind, self._context(parent), of)
        return _Open(span, self._traceparent(span))

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        # The SDK would wait half a minute for a collector that does not answer.
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(_CLOSE_SECONDS)

    def _put(self, done: EndedSpan, context: Context) -> None:
        from opentelemetry.trace import set_span_in_context

        span = self._tracer.start_span(done.name, context, start_time=_nanos(done.began))
        for inner in done.inner:
            self._put(inner, set_span_in_context(span, context))
        _describe(span, done.args, failed="error" in done.args)
        span.end(_nanos(done.ended))

    def _context(self, parent: str | None) -> Context:
        from opentelemetry.context import Context

        carrier = {"traceparent": parent or self._parent or ""}
        return self._propagator.extract(carrier, Context())

    def _traceparent(self, span: Span) -> str:
        from opentelemetry.trace import set_span_in_context

        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, set_span_in_context(span))
        return carrier.get("traceparent", "")


@dataclass(slots=True)
class _Open:
    span: Span
    traceparent: str

    def end(self, name: str, args: Mapping[str, Any], *, failed: bool = False) -> None:
        """End it now, under its name."""
        self.span.update_name(name)
        _describe(self.span, args, failed=failed)
        self.span.end()


def _describe(span: Span, args: Mapping[str, Any], *, failed: bool) -> None:
    from opentelemetry.trace import StatusCode

    for name, value in args.items():
        span.set_attribute(_NAMES.get(name, f"polynya.{name}"), _attribute(value))
    if failed:
        span.set_status(StatusCode.ERROR)


def _attribute(value: object) -> str | int | float:
    """A value that can be sent: names of files and tables may be no Unicode."""
    if isinstance(value, int | float):
        return value
    return str(value)[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()


def _nanos(seconds: float) -> int:
    return int(seconds * 1e9)


def _is_idle(done: EndedSpan) -> bool:
    """Whether a step found nothing to do, as most steps do where nothing lands."""
    return done.name in _IDLE and "error" not in done.args and all(map(_is_idle, done.inner))
