"""The language as JSON Schema, for editors: every field with its meaning, short forms and defaults included."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import PlainValidatorFunctionSchema

from workbench.language.model.base import Model, Tier
from workbench.language.model.cascade import Cascade
from workbench.language.model.shape import shape
from workbench.language.words import LATER_NAMES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODEL = "x-model"
_NOTES: dict[Tier, str] = {"2·load": "Loaded, but not run yet.", "W": "The workbench's own."}


@cache
def _schema() -> dict[str, Any]:
    root = _object(Cascade)
    models = sorted(_models(Cascade, {}).items())
    definitions = {name: _described(model, _object(model)) for name, model in models}
    root["properties"]["phases"]["items"] = {"$ref": "#/$defs/Phase", "required": ["name"]}
    definitions["Phase"]["oneOf"] = [{"required": ["instructions"]}, {"required": ["tool"]}]
    return {"$schema": DIALECT, "title": "Cascade", **root, "$defs": definitions}


def json_schema() -> dict[str, Any]:
    """The schema of a cascade file, draft 2020-12. It does not allow unknown keys, so that editors mark them; the
    loader accepts them, and `check` warns about them."""
    schema: dict[str, Any] = _copied(_schema())
    return schema


def field_schema(model: type[Model], key: str) -> Mapping[str, Any]:
    """The schema of one field; empty without one. Callers must not change it."""
    body = _schema() if model is Cascade else _schema()["$defs"].get(model.__name__, {})
    body = next((option for option in body.get("anyOf", ()) if option.get("type") == "object"), body)
    found: Mapping[str, Any] = body.get("properties", {}).get(key, {})
    return found


def type_words(schema: Mapping[str, Any]) -> str:
    """The type of a field in a few words: ``int ≥ 1``, ``list of text``, ``Rules``."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " · ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    options = [o for o in schema.get("anyOf", schema.get("oneOf", ())) if o.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(map(type_words, options)))
    if schema.get("type") == "array":
        return f"list of {type_words(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {type_words(schema['additionalProperties'])}"
    words = {"string": "text", "integer": "int", "boolean": "bool", "object": "map", "number": "number"}
    name = words.get(schema.get("type", ""), "any")
    return f"{name} ≥ {schema['minimum']}" if "minimum" in schema else name


def _models(model: type[Model], found: dict[str, type[Model]]) -> dict[str, type[Model]]:
    """All models below one, by name."""
    for field in shape(model).values():
        if field.model is not None and field.model.__name__ not in found:
            found[field.model.__name__] = field.model
            _models(field.model, found)
    return found


class _Named(GenerateJsonSchema):
    """Leaves a model inside another one as its name: each has a schema of its own."""

    def function_plain_schema(self, schema: PlainValidatorFunctionSchema) -> JsonSchemaValue:
        model = getattr(schema["function"]["function"], "__self__")  # noqa: B009 - mypy knows no methods here
        return {_MODEL: model.__name__}

    def encode_default(self, dft: Any) -> Any:
        # A default that is a mapping is not shown. Pydantic before 2.14 cannot convert one without a serializer.
        return {} if isinstance(dft, Model) else super().encode_default(dft)


def _object(model: type[Model]) -> dict[str, Any]:
    """The schema of a mapping, without what only pydantic needs."""
    body = model.model_json_schema(by_alias=True, schema_generator=_Named)
    body = body.get("$defs", {}).get(model.__name__, body)  # Where it holds itself.
    fields = shape(model)
    properties = {}
    for key, schema in body["properties"].items():
        field = fields[key]
        kept = _cleaned(
            {name: value for name, value in schema.items() if name not in ("tier", "template", "names", "keys")}
        )
        note = next((text for tier, text in _NOTES.items() if tier == field.tier), "")
        properties[key] = {**kept, "description": f"{field.description} {note}".rstrip()}
    for spelling, key in model.SPELLINGS.items():
        properties[spelling] = {**properties[key], "deprecated": True, "description": f"Read as '{key}'."}
    later = LATER_NAMES.get(model.__name__, {})
    for name, key in later.items():
        properties[name] = {**properties[key], "description": f"Later editions have it for '{key}'."}
    required = [key for key in body.get("required", ()) if not (model.__name__ == "Phase" and key == "name")]
    schema = {"type": "object", "description": body.get("description", ""), "properties": properties}
    schema["additionalProperties"] = False  # Editors show what is not allowed as a warning, as `check` does.
    either = [{"anyOf": [{"required": [one]}, *others]} for one in required if (others := _others(one, later))]
    required = [key for key in required if not _others(key, later)]
    schema |= {"allOf": either} if either else {}
    return {**schema, "required": required} if required else schema


def _others(key: str, later: Mapping[str, str]) -> list[dict[str, list[str]]]:
    """What satisfies a file that lacks a required key: each of its later names."""
    return [{"required": [name]} for name, meant in later.items() if meant == key]


def _described(model: type[Model], schema: dict[str, Any]) -> dict[str, Any]:
    """With the short forms that may stand in place of the mapping."""
    short: list[dict[str, Any]] = []
    if model.SHORT:
        short.append({"type": "string", "description": f"Short for '{model.SHORT}'."})
    if model.SWITCH or model.BARE:
        short.append({"type": "boolean", "description": "On with its defaults, or off."})
    if not short:
        return schema
    return {"description": schema["description"], "anyOf": [*short, schema]}


def _cleaned(value: Any) -> Any:
    """Without generated titles, empty defaults, and ``additionalProperties`` if all are allowed."""
    if isinstance(value, dict):
        if _MODEL in value:
            value = {"$ref": f"#/$defs/{value[_MODEL]}"} | {k: v for k, v in value.items() if k != _MODEL}
        dropped = {"title"}
        if value.get("default", ...) in (None, [], {}) or isinstance(value.get("default"), dict):
            dropped.add("default")
        if value.get("additionalProperties") is True:
            dropped.add("additionalProperties")
        return {key: _cleaned(item) for key, item in value.items() if key not in dropped}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list | tuple) else value
