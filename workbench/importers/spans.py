"""Spans of OpenTelemetry in the shapes they are exported in: OTLP JSON, the SDK's console form, Phoenix's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from workbench.importers.values import array, as_text, decoded, mapping, moment, string

_ALONE = ("gen_ai.", "openinference.span.kind", "llm.input_messages")
"""Names of attributes that say enough of a span to stand without it."""
_MAX_INDEX = 10_000
"""Entries of an array that is written as dotted keys; a larger index is no array."""


class ImportedSpan(Struct, frozen=True):
    """One span; attributes by their dotted names."""

    name: str
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    start: str = ""
    end: str = ""
    failed: bool = False
    trace: str = ""
    nested: Mapping[str, Any] = field(default_factory=dict)
    """The attributes with dotted names as objects, and numbers in them as arrays."""
    id: str = ""
    parent: str = ""
    """The id of the span that it is inside of; empty for the outermost one of a trace."""
    process: str = ""
    """The name and the instance of the service that made it, where its resource tells."""


def spans_of(body: Any) -> list[ImportedSpan]:
    """All spans of a file, with their log records; empty if it holds none."""
    logged: dict[str, list[Mapping[str, Any]]] = {}
    for span_id, record in records_of(body):
        logged.setdefault(span_id, []).append(record)
    spans: list[ImportedSpan] = []
    for raw in _raw(body):
        if (span := _span(raw)) is not None:
            spans.append(with_records(span, logged.pop(span.id, ())) if logged else span)
    return [*spans, *map(logged_span, logged.values())]


def with_records(span: ImportedSpan, records: Sequence[Mapping[str, Any]]) -> ImportedSpan:
    """A span with its log records as events."""
    return replace(span, events=(*span.events, *map(_event, records))) if records else span


def records_of(body: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The log records in OTLP's form, each with the id of its span."""
    for record in _records(body):
        yield string(record.get("spanId") or record.get("span_id")), record


def each_span(body: Any) -> Iterator[ImportedSpan]:
    """The spans of a file one at a time, for callers that stop at the first match."""
    for raw in _raw(body):
        if (span := _span(raw)) is not None:
            yield span
    records = list(_records(body))
    if records:
        yield logged_span(records)


def _records(body: Any) -> Iterator[Mapping[str, Any]]:
    """Log records in OTLP's form: events of the GenAI conventions are exported as such."""
    for one in body if isinstance(body, list) else [body]:
        for resource in map(mapping, array(mapping(one).get("resourceLogs"))):
            for scope in map(mapping, array(resource.get("scopeLogs"))):
                yield from map(mapping, array(scope.get("logRecords")))


def _event(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    attributes = _attributes(record.get("attributes"))
    name = string(record.get("eventName")) or string(attributes.get("event.name"))
    return name, attributes | _body(record)


def logged_span(records: Sequence[Mapping[str, Any]]) -> ImportedSpan:
    """A span that is known by its log records alone."""
    attributes: dict[str, Any] = {}
    for record in records:
        attributes |= _attributes(record.get("attributes"))
    times = [moment(record.get("timeUnixNano") or record.get("observedTimeUnixNano")) for record in records]
    events, trace = tuple(map(_event, records)), string(records[0].get("traceId"))
    id = string(records[0].get("spanId") or records[0].get("span_id"))
    return ImportedSpan("", attributes, events, min(times), max(times), trace=trace, nested=_nested(attributes), id=id)


def _raw(body: Any) -> Iterator[Mapping[str, Any]]:
    outer = mapping(body)
    if isinstance(body, list):
        for one in body:
            yield from _raw(one)
    elif resources := array(outer.get("resourceSpans") or outer.get("resource_spans")):
        for resource in map(mapping, resources):
            of = {"resource": resource["resource"]} if "resource" in resource else {}
            for scope in map(mapping, array(resource.get("scopeSpans") or resource.get("scope_spans"))):
                yield from ({**mapping(one), **of} for one in array(scope.get("spans")))
    elif _is_span(outer):
        yield outer
    elif any(key.startswith(_ALONE) for key in outer):
        yield {"name": outer.get("name"), "attributes": outer}
    else:
        for key in ("spans", "data", "trace"):
            if isinstance(outer.get(key), list | dict):
                yield from _raw(outer[key])


def _is_span(outer: Mapping[str, Any]) -> bool:
    """The SDK's form of a span, or a row of a table with a column for each attribute."""
    is_object = "attributes" in outer and ("name" in outer or "context" in outer)
    return is_object or any(key.startswith("attributes.") for key in outer)


def _span(raw: Mapping[str, Any]) -> ImportedSpan | None:
    attributes = _attributes(raw.get("attributes"))
    attributes |= {key.removeprefix("attributes."): v for key, v in raw.items() if key.startswith("attributes.")}
    if not attributes and not raw.get("spanId"):
        return None
    context = mapping(raw.get("context"))
    status = raw.get(
        "status_code", mapping(raw.get("status")).get("status_code", mapping(raw.get("status")).get("code"))
    )
    events = tuple(
        (string(one.get("name")), _attributes(one.get("attributes")) | _body(one))
        for one in map(mapping, array(decoded(raw.get("events"))))
    )
    flat = _flattened(attributes)
    return ImportedSpan(
        string(raw.get("name")),
        flat | ({"openinference.span.kind": raw["span_kind"]} if isinstance(raw.get("span_kind"), str) else {}),
        events,
        moment(next((raw[key] for key in _STARTS if raw.get(key)), None)),
        moment(next((raw[key] for key in _ENDS if raw.get(key)), None)),
        status in (2, "ERROR", "STATUS_CODE_ERROR"),
        string(raw.get("traceId"))
        or string(raw.get("trace_id"))
        or string(context.get("trace_id"))
        or string(mapping(raw.get("spanContext")).get("traceId"))
        or string(raw.get("context.trace_id")),
        _nested(flat),
        _first(raw, context, "spanId", "span_id"),
        _first(raw, {}, "parentSpanId", "parent_span_id", "parentId", "parent_id"),
        _process(mapping(raw.get("resource"))),
    )


def _first(raw: Mapping[str, Any], context: Mapping[str, Any], *names: str) -> str:
    return next((found for name in names if (found := string(raw.get(name)) or string(context.get(name)))), "")


def _process(resource: Mapping[str, Any]) -> str:
    told = _attributes(resource.get("attributes"))
    return " ".join(as_text(told[name]) for name in _PROCESS if name in told)


_PROCESS = ("service.name", "service.instance.id", "host.name", "process.pid")


_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
_ENDS = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")


def _body(event: Mapping[str, Any]) -> dict[str, Any]:
    body = _value(event["body"]) if isinstance(event.get("body"), dict) else None
    return dict(body) if isinstance(body, dict) else {}


def _attributes(value: object) -> dict[str, Any]:
    """Attributes as an object, from an object, its JSON text, or OTLP's list of keys and typed values."""
    value = decoded(value)
    if isinstance(value, dict):
        return {key: _value(one) if isinstance(one, dict) else one for key, one in value.items()}
    return {string(one.get("key")): _value(one.get("value")) for one in map(mapping, array(value)) if one.get("key")}


def _value(value: Any) -> Any:
    """A value of OTLP's AnyValue, also with snake_case names and a null for each kind that it is not, as Phoenix's API
    gives them, and a list without the name of its kind, as exports of attributes by name write it; any other value is
    itself."""
    if isinstance(value, dict) and value.keys() == {"values"} and _are_typed(value["values"]):
        return [_value(one) for one in value["values"]]
    if not isinstance(value, dict) or not value or not value.keys() <= _KINDS:
        return value
    told = [(kind, inner) for kind, inner in value.items() if inner is not None]
    if len(told) != 1:
        return value if told else None
    ((kind, inner),) = told
    match _KINDS_BY_NAME[kind]:
        case "stringValue" | "boolValue" | "doubleValue":
            return inner
        case "intValue":
            return int(inner) if isinstance(inner, str) and inner.isdecimal() and len(inner) < 20 else inner
        case "arrayValue":
            return [_value(one) for one in array(mapping(inner).get("values"))]
        case "kvlistValue":
            return {
                string(one.get("key")): _value(one.get("value"))
                for one in map(mapping, array(mapping(inner).get("values")))
            }
    return value


def _are_typed(values: object) -> bool:
    """Whether all values of a list name their kind."""
    return bool(array(values)) and all(isinstance(one, dict) and one and one.keys() <= _KINDS for one in array(values))


_KINDS_BY_NAME = {
    name: f"{kind}Value"
    for kind in ("string", "bool", "double", "int", "array", "kvlist", "bytes")
    for name in (f"{kind}Value", f"{kind}_value")
}
_KINDS = _KINDS_BY_NAME.keys()


def _flattened(attributes: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted names for objects inside objects; arrays stay."""
    flat: dict[str, Any] = {}
    for key, value in attributes.items():
        if isinstance(value, dict) and value:
            flat |= _flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def nested_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with dotted names as objects, and numbers in them as arrays."""
    return _nested(_flattened(attributes))


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        node = root
        for name in path:
            inner = node.setdefault(name, {})
            if not isinstance(inner, dict):
                inner = node[name] = {}
            node = inner
        node.setdefault(last, value)
    return {key: _with_arrays(value) for key, value in root.items()}


def _with_arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_arrays(one) for one in value]
    if not isinstance(value, dict):
        return value
    if any("." in key for key in value):  # of an element of an array, whose names are dotted in their turn
        return _nested(value)
    inner = {key: _with_arrays(one) for key, one in value.items()}
    if inner and all(key.isdecimal() and len(key) < 6 and int(key) < _MAX_INDEX for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner
