"""Holds values against JSON Schemas that anybody may have written: nothing is fetched, and none takes for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

Rule = Callable[[Any, Any, Any, Any], Iterator["ValidationError"] | None]
"""What a keyword demands: of the validator, the keyword's value, the value held against it, and the whole schema."""

SECONDS = 2.0
"""How long a value may be held against a schema: patterns and references can be written to take years."""
_until: ContextVar[float] = ContextVar("until")
"""When that time is over, by the monotonic clock."""


class SchemaFault(ValueError):
    """A schema that no value can be held against: it takes too long, or refers to what is not there."""


def mismatch(schema: Mapping[str, Any], value: object) -> ValidationError | None:
    """The most telling of what is wrong with a value; None when nothing is. The draft is the schema's own, or 2020-12.

    Raises SchemaFault, and RecursionError for what is nested too deeply.
    """
    from jsonschema.exceptions import best_match  # 30 ms: most cascades have no schema
    from jsonschema.validators import Draft202012Validator, validator_for
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable

    if fault := unusable(schema):
        raise SchemaFault(fault)
    checking = _bounded(validator_for(schema, default=Draft202012Validator))
    token = _until.set(time.monotonic() + SECONDS)
    try:
        found: ValidationError | None = best_match(checking(schema, registry=REGISTRY).iter_errors(value))
    except Unresolvable as unknown:
        raise SchemaFault(_missing(unknown.ref)) from None
    finally:
        _until.reset(token)
    return found


def unusable(schema: Mapping[str, Any]) -> str:
    """Why no value can be held against a schema, before one is; empty where nothing speaks against it.

    References in a schema that names parts of itself by ``$id`` are looked up only when a value is held against it.
    """
    from jsonschema_specifications import REGISTRY
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    parts = list(_parts(schema))
    if any("unevaluatedProperties" in part for part in parts) and any("patternProperties" in part for part in parts):
        return "patternProperties cannot stand in a schema with unevaluatedProperties: its search has no end in time"
    if any(isinstance(part.get("$id"), str) for part in parts[1:]):
        return ""
    base = str(schema.get("$id", ""))
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = REGISTRY.with_resource(base, resource).resolver(base)
    for ref in (part.get(key) for part in parts for key in ("$ref", "$dynamicRef")):
        if not isinstance(ref, str):
            continue
        try:
            resolver.lookup(ref)
        except Unresolvable:
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
    from attrs import evolve
    from jsonschema.validators import extend

    own = {"pattern": _pattern, "patternProperties": _pattern_properties}
    rules = {name: _timed(own.get(name, rule)) for name, rule in draft.VALIDATORS.items()}
    rules["additionalProperties"] = _without_patterns(rules["additionalProperties"])
    bounded = extend(draft, rules)  # type: ignore[no-untyped-call]
    # What evolves would otherwise become an unbounded one where a part of the schema names a draft of its own.
    bounded.evolve = evolve
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
    import regex

    try:
        return regex.search(pattern, text, timeout=_left()) is not None
    except TimeoutError:
        raise SchemaFault(f"the pattern {pattern!r} takes over {SECONDS:g} s") from None
    except regex.error as fault:
        raise SchemaFault(f"the pattern {pattern!r} is not valid: {fault}") from None


def _pattern(_validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if isinstance(value, str) and not _found(wanted, value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def _pattern_properties(
    validator: Any, wanted: Mapping[str, Any], value: Any, _schema: Any
) -> Iterator[ValidationError]:
    for pattern, part in wanted.items() if isinstance(value, dict) else ():
        for name in [name for name in value if _found(pattern, name)]:
            yield from validator.descend(value[name], part, path=name, schema_path=pattern)


def _without_patterns(rule: Rule) -> Rule:
    """For a rule that looks at the patterns beside it: they are searched for here, and the names they match given."""

    @wraps(rule)
    def named(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError] | None:
        patterns = schema.get("patternProperties", {}) if isinstance(value, dict) else {}
        if patterns:
            matched = {name: True for name in value if any(_found(pattern, name) for pattern in patterns)}
            schema = {**schema, "properties": {**schema.get("properties", {}), **matched}}
            del schema["patternProperties"]
        return rule(validator, wanted, value, schema)

    return named
