"""Checks values against JSON Schemas from any source: nothing is fetched, and every check ends in time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import regex

from workbench.language.problem import Path

if TYPE_CHECKING:
    from jsonschema import ValidationError

# Values that are a language of their own: regular expressions and JSON Schemas.


def bad_pattern(pattern: object) -> tuple[str, int | None] | None:
    """Describes the fault of a regular expression, and its position in characters; None when it compiles, or is no
    text.

    The dialect is the one that runs use: the ``regex`` package, which has time limits.
    """
    if not isinstance(pattern, str):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regex.compile(pattern, regex.DOTALL | regex.IGNORECASE)
    except regex.error as fault:
        return str(fault.msg), fault.pos
    except RecursionError:
        return "it is nested too deeply", None
    return None


class _Schemas(NamedTuple):
    """jsonschema, and the packages that it stands on."""

    jsonschema: ModuleType
    referencing: ModuleType
    registry: Any
    evolve: Callable[..., Any]


@cache
def _library() -> _Schemas:
    # It takes 80 ms to import, and most files have no schema.
    import attrs
    import jsonschema
    import jsonschema_specifications
    import referencing.jsonschema

    return _Schemas(jsonschema, referencing, jsonschema_specifications.REGISTRY, attrs.evolve)


def is_type(value: object, kind: str) -> bool:
    """Returns whether a value is of a type of JSON Schema."""
    return bool(_library().jsonschema.Draft202012Validator({}).is_type(value, kind))


def bad_schema(schema: dict[str, Any]) -> tuple[Path, str] | None:
    """Returns where and why a value is not a JSON Schema; None when it is one. The draft is the schema's own, else
    2020-12."""
    library = _library().jsonschema
    if not isinstance(schema.get("$schema", ""), str):
        return ("$schema",), "$schema is not text"
    try:
        library.validators.validator_for(schema, default=library.Draft202012Validator).check_schema(schema)
        told = unusable(schema)
    except library.SchemaError as fault:
        # Of "a name or a list of names" the names are what a person got wrong.
        choice = next((inner for inner in fault.context or () if inner.validator == "enum"), fault)
        return tuple(fault.absolute_path), choice.message
    except RecursionError:
        return (), "it is nested too deeply"
    return ((), told) if told else None


Rule = Callable[[Any, Any, Any, Any], Iterator["ValidationError"] | None]
"""The check of a keyword: of the validator, the keyword's value, the value compared with it, and the whole schema."""

SECONDS = 2.0
"""How long a value may be held against a schema: patterns and references can be written to take years."""
_until: ContextVar[float] = ContextVar("until")
"""When that time is over, by the monotonic clock."""


class SchemaFault(ValueError):
    """A schema that cannot be used to check a value: it takes too long, or has an unknown reference."""


def mismatch(schema: Mapping[str, Any], value: object) -> ValidationError | None:
    """The most telling mismatch of a value; None if the value fits. The draft is the schema's own, or 2020-12.

    Raises SchemaFault, and RecursionError for nesting that is too deep.
    """
    library = _library().jsonschema
    if fault := unusable(schema):
        raise SchemaFault(fault)
    checking = _bounded(library.validators.validator_for(schema, default=library.Draft202012Validator))
    token = _until.set(time.monotonic() + SECONDS)
    try:
        found: ValidationError | None = library.exceptions.best_match(
            checking(schema, registry=_library().registry).iter_errors(value)
        )
    except _library().referencing.exceptions.Unresolvable as unknown:
        raise SchemaFault(_missing(unknown.ref)) from None
    finally:
        _until.reset(token)
    return found


def unusable(schema: Mapping[str, Any]) -> str:
    """Returns why a schema cannot be used, found before any check; empty if it can.

    References in a schema that names parts of itself by ``$id`` are resolved only during a check.
    """
    parts = list(_parts(schema))
    if any("unevaluatedProperties" in part for part in parts) and any("patternProperties" in part for part in parts):
        return "patternProperties cannot stand in a schema with unevaluatedProperties: its search has no end in time"
    if any(isinstance(part.get("$id"), str) for part in parts[1:]):
        return ""
    base = str(schema.get("$id", ""))
    references = _library().referencing
    resource = references.Resource.from_contents(schema, default_specification=references.jsonschema.DRAFT202012)
    resolver = _library().registry.with_resource(base, resource).resolver(base)
    for ref in (part.get(key) for part in parts for key in ("$ref", "$dynamicRef")):
        if not isinstance(ref, str):
            continue
        try:
            resolver.lookup(ref)
        except references.exceptions.Unresolvable:
            return _missing(ref)
    return ""


def _parts(value: object) -> Iterator[Mapping[str, Any]]:
    """Every mapping in a schema, the whole one first."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _missing(ref: str) -> str:
    return f"'{ref}' leads to nothing in the schema, and nothing is fetched from elsewhere"


@lru_cache
def _bounded(draft: Any) -> Any:
    """The same rules with an end: each looks at the clock, and patterns are searched for by what knows time limits."""
    own = {"pattern": _pattern, "patternProperties": _pattern_properties}
    rules = {name: _timed(own.get(name, rule)) for name, rule in draft.VALIDATORS.items()}
    rules["additionalProperties"] = _without_patterns(rules["additionalProperties"])
    bounded = _library().jsonschema.validators.extend(draft, rules)
    # What evolves would otherwise become an unbounded one where a part of the schema names a draft of its own.
    bounded.evolve = _library().evolve
    return bounded


def _timed(rule: Rule) -> Rule:
    @wraps(rule)
    def timed(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError] | None:
        _left()
        return rule(validator, wanted, value, schema)

    return timed


def _left() -> float:
    left = _until.get() - time.monotonic()
    if left <= 0:
        raise SchemaFault(f"an answer cannot be held against it within {SECONDS:g} s")
    return left


def _found(pattern: str, text: str) -> bool:
    try:
        return regex.search(pattern, text, timeout=_left()) is not None
    except TimeoutError:
        raise SchemaFault(f"the pattern {pattern!r} takes over {SECONDS:g} s") from None
    except regex.error as fault:
        raise SchemaFault(f"the pattern {pattern!r} is not valid: {fault}") from None


def _pattern(_validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _found(wanted, value):
        yield _library().jsonschema.ValidationError(f"{value!r} does not match {wanted!r}")


def _pattern_properties(
    validator: Any, wanted: Mapping[str, Any], value: Any, _schema: Any
) -> Iterator[ValidationError]:
    for pattern, part in wanted.items() if isinstance(value, dict) else ():
        for name in [name for name in value if _found(pattern, name)]:
            yield from validator.descend(value[name], part, path=name, schema_path=pattern)


def _without_patterns(rule: Rule) -> Rule:
    """A rule with the patterns beside it: they are searched for here, and it gets the names that they match."""

    @wraps(rule)
    def named(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError] | None:
        patterns = schema.get("patternProperties", {}) if isinstance(value, dict) else {}
        if patterns:
            matched = {name: True for name in value if any(_found(pattern, name) for pattern in patterns)}
            schema = {**schema, "properties": {**schema.get("properties", {}), **matched}}
            del schema["patternProperties"]
        return rule(validator, wanted, value, schema)

    return named
