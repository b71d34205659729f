"""Values that are a language of their own: regular expressions and JSON Schemas."""

from __future__ import annotations

import warnings
from typing import Any

from workbench.language.json_schema import unusable
from workbench.language.problem import Path


def bad_pattern(pattern: object) -> tuple[str, int | None] | None:
    """What is wrong with a regular expression, and at which character; None when it compiles or is no text.

    The dialect is the one that runs use: the ``regex`` package, which knows time limits.
    """
    if not isinstance(pattern, str):
        return None
    import regex

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regex.compile(pattern, regex.DOTALL | regex.IGNORECASE)
    except regex.error as fault:
        return str(fault.msg), fault.pos
    except RecursionError:
        return "it is nested too deeply", None
    return None


def bad_schema(schema: dict[str, Any]) -> tuple[Path, str] | None:
    """Where and why a value is no JSON Schema; None when it is one. The draft is the schema's own, else 2020-12."""
    # Costs some 60 ms at the first import, which a file without any schema need not pay.
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    if not isinstance(schema.get("$schema", ""), str):
        return ("$schema",), "$schema is no text"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
        told = unusable(schema)
    except SchemaError as fault:
        # Of "a name or a list of names" the names are what a person got wrong.
        choice = next((inner for inner in fault.context or () if inner.validator == "enum"), fault)
        return tuple(fault.absolute_path), choice.message
    except RecursionError:
        return (), "it is nested too deeply"
    return ((), told) if told else None
