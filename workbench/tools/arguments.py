"""Checks the arguments of a tool call against the tool's schema and says what is wrong in words a model can act on."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.language.json_schema import mismatch
from workbench.tools.schema import shown_type

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_SHOWN = 60
"""Characters of a wrong value that an error repeats."""


class ArgumentError(ValueError):
    """Arguments that do not fit the tool."""


def checked(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, in the order of the schema, with text read as the number, boolean, list or object that is wanted.

    Nothing else is guessed: ``"5"`` becomes 5 and ``5.0`` becomes 5 where an integer is wanted, ``"five"`` is an error.
    Defaults are not filled in. Raises ArgumentError naming all missing and unknown arguments, or the first wrong value.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    problems = _missing(arguments, schema) + _unknown(arguments, schema)
    if problems:
        raise ArgumentError(f"{'; '.join(problems)}. {_expected(schema)}")
    ordered = [name for name in properties if name in arguments]
    ordered += [name for name in arguments if name not in properties]
    taken = {name: _coerced(arguments[name], properties.get(name, {})) for name in ordered}
    if (error := mismatch(schema, taken)) is not None:
        raise ArgumentError(_wrong(error, schema))
    return taken


def _missing(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    return [f"'{name}' is missing" for name in schema.get("required", ()) if name not in arguments]


def _unknown(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    if schema.get("additionalProperties", True) is not False:
        return []
    known = list(schema.get("properties", {}))
    problems = []
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            problems.append(f"'{_cut(name)}' is not known" + (f" (did you mean '{near[0]}'?)" if near else ""))
    return problems


def _expected(schema: Mapping[str, Any]) -> str:
    """One sentence that lists the parameters."""
    required = set(schema.get("required", ()))
    words = [
        f"{name} ({shown_type(part)}{'' if name in required else ', optional'})"
        for name, part in schema.get("properties", {}).items()
    ]
    return f"Expected: {', '.join(words)}." if words else "Expected: no arguments."


def _wrong(error: ValidationError, schema: Mapping[str, Any]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    value = _cut(json.dumps(error.instance, ensure_ascii=False, default=str))
    where = f"'{path}'" if path else "the arguments"
    if error.validator == "type":
        return f"{where} must be {shown_type({'type': error.validator_value})}, got {value}"
    if error.validator == "enum":
        options = json.dumps(error.validator_value, ensure_ascii=False)
        return f"{where} must be one of {options[1:-1]}; got {value}"
    if error.validator == "anyOf":
        return f"{where} must be {shown_type({'anyOf': error.validator_value})}, got {value}"
    if error.validator == "required":
        return f"{where}: {error.message}. {_expected(schema)}"
    return f"{where}: {error.message}"


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value, read as what the schema wants where that cannot be mistaken."""
    wanted = _types(schema)
    if _fits(value, wanted):
        return value
    if isinstance(value, float) and "integer" in wanted and value.is_integer():
        return int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and wanted == {"string"}:
        return json.dumps(value)
    return _read(value.strip(), wanted, value) if isinstance(value, str) else value


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types a schema names; empty when it takes anything."""
    if "anyOf" in schema:
        options = [_types(option) for option in schema["anyOf"]]
        return set().union(*options) if all(options) else set()
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())


def _fits(value: Any, wanted: set[str]) -> bool:
    if not wanted:
        return True
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator({})
    return any(validator.is_type(value, kind) for kind in wanted)


def _read(text: str, wanted: set[str], value: Any) -> Any:
    if "integer" in wanted and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in wanted and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if "boolean" in wanted and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if "null" in wanted and text.lower() in ("null", "none"):
        return None
    if (text[:1] == "[" and "array" in wanted) or (text[:1] == "{" and "object" in wanted):
        try:
            return json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return value
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
