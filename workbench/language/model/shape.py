"""The models as a table: which keys a mapping may have, what stands below each, and what a person may have meant."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import Struct

from workbench.language.model.base import Inputs, Model, Scalars
from workbench.language.model.candidates import Soundings, Ward
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.model.context import ContextRules
from workbench.language.problem import Path
from workbench.language.words import REPAIR

Holds = Literal["one", "list", "map"]


class FieldShape(Struct, frozen=True):
    """One key of a mapping."""

    key: str
    """As written in a file."""
    attribute: str
    """As named on the model."""
    tier: str
    template: str
    """``text`` or ``condition`` if Jinja renders it."""
    description: str
    choices: tuple[str, ...]
    model: type[Model] | None
    """The model of the value below, if it is a mapping of the language."""
    holds: Holds
    """Whether one such mapping stands below, a list of them, or a mapping by name."""
    scalars: bool
    """A mapping whose values are read as text."""
    switch: bool
    """It is true or false."""
    names: str = ""
    """What its values name (a ``Named``), in their short form too."""
    keys: str = ""
    """What the keys of its mapping name."""


class Place(Struct, frozen=True):
    """A mapping of a file that one of the models describes."""

    path: Path
    model: type[Model]
    data: dict[str, Any]
    within: tuple[tuple[type[Model], str], ...] = ()
    """The mappings around it, outermost first, each with the key that leads on."""

    @property
    def noun(self) -> str:
        """Its name for people: its key, or the kind of item."""
        key = self.path[-1] if self.path else None
        if isinstance(key, str) and self.within and shape(self.within[-1][0])[self.within[-1][1]].holds == "one":
            return key
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.model.__name__).lower()


@cache
def shape(model: type[Model]) -> Mapping[str, FieldShape]:
    """The fields of a model by their key in a file: its own, then those of the parameters that it takes."""
    fields = {}
    for name, info in sorted(model.model_fields.items(), key=lambda field: field[0] not in model.__annotations__):
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        below, holds = _below(info.annotation)
        key = info.alias or name
        fields[key] = FieldShape(
            key,
            name,
            str(extra.get("tier", "")),
            str(extra.get("template", "")),
            info.description or "",
            tuple(_choices(info.annotation)),
            below,
            holds,
            info.annotation in (Scalars, Inputs),
            info.annotation is bool,
            str(extra.get("names", ""))
            or (shape(below)[below.SHORT].names if below is not None and below.SHORT else ""),
            str(extra.get("keys", "")),
        )
    return fields


@cache
def enumerations(model: type[Model]) -> tuple[FieldShape, ...]:
    """The fields of a model that take words of a list."""
    return tuple(field for field in shape(model).values() if field.choices)


@cache
def switches(model: type[Model]) -> tuple[FieldShape, ...]:
    """The fields of a model that are true or false."""
    return tuple(field for field in shape(model).values() if field.switch)


@cache
def texts_by_name(model: type[Model]) -> tuple[FieldShape, ...]:
    """The fields of a model that map names to texts."""
    return tuple(field for field in shape(model).values() if field.scalars)


def places(data: Any, model: type[Model] = Cascade, path: Path = ()) -> Iterator[Place]:
    """Every mapping of a file that a model describes, outermost first, in the order of the file."""
    yield from _places(data, model, path, ())


def _places(data: Any, model: type[Model], path: Path, within: tuple[tuple[type[Model], str], ...]) -> Iterator[Place]:
    if not isinstance(data, dict):
        return
    yield Place(path, model, data, within)
    fields = shape(model)
    for key, value in data.items():
        field = fields.get(model.SPELLINGS.get(key, key))
        if field is None or field.model is None or not isinstance(value, dict | list):
            continue
        inside = (*within, (model, field.key))
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _places(item, field.model, (*path, key, index), inside)
        elif field.holds == "map":
            for name, item in value.items():
                yield from _places(item, field.model, (*path, key, name), inside)
        else:
            yield from _places(value, field.model, (*path, key), inside)


def _below(annotation: Any) -> tuple[type[Model] | None, Holds]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _below(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation, "one"
    if origin in (Union, types.UnionType):
        found = [_below(arg) for arg in get_args(annotation)]
        return next((item for item in found if item[0] is not None), (None, "one"))
    if origin is tuple:
        return _below(get_args(annotation)[0])[0], "list"
    if origin is dict:
        return _below(get_args(annotation)[1])[0], "map"
    return None, "one"


def _choices(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) is not dict:
        for arg in get_args(annotation):
            yield from _choices(arg)


MEANT: Mapping[type[Model], Mapping[str, str]] = {
    Cascade: {
        "id": "cascade_id",
        "name": "cascade_id",
        "inputs": "inputs_schema",
        "input_schema": "inputs_schema",
        "steps": "phases",
        "stages": "phases",
        "nodes": "phases",
        "cells": "phases",
        "cache": "tool_caching",
    },
    Phase: {
        "id": "name",
        "prompt": "instructions",
        "system_prompt": "instructions",
        "system": "instructions",
        "task": "instructions",
        "tools": "tackle",
        "traits": "tackle",
        "skills": "tackle",
        "next": "handoffs",
        "routes": "handoffs",
        "validators": "wards",
        "guardrails": "wards",
        "schema": "output_schema",
        "candidates": "soundings",
        "llm": "model",
    },
    Ward: {"max_retries": "max_attempts", "retries": "max_attempts"},
}
"""Words of neighbouring languages for what a key is called here."""

LATER: Mapping[type[Model], Mapping[str, str]] = {
    Phase: {
        "image_config": "no images are generated; what stands in 'parameters' is sent with a request",
        "use_training": "no answers of earlier runs are added to the task as examples",
        "manifest_refresh": "tools are chosen once, before the first turn",
        REPAIR: "no model rewrites the tool's code; on_error can name a phase",
    },
    Soundings: {"downstream_model": "cascades called as tools keep their own model"},
}
"""Keys of later editions of the language that would change a run, with what happens instead (L801)."""
NOTES: Mapping[type[Model], Mapping[str, str]] = {
    Cascade: {
        "internal": "its runs are listed like all others",
        "sql_function": "SQL cannot call this cascade; run, test and batch can",
        "explorer": "all cascades are listed alike",
        "manifest": "a cascade with inputs_schema in a tackle folder can be chosen anyway",
        "max_parallel": "phases run one after the other",
        **dict.fromkeys(("tags", "version", "author", "metadata"), "a note for people and other programs"),
    },
    Phase: {
        "manifest_limit": "all tools are there to choose from",
        "deterministic": "a phase with 'tool' calls no model anyway",
        **dict.fromkeys(
            (f"training_{key}" for key in ("limit", "strategy", "min_confidence", "verified_only", "format")),
            "it belongs to use_training",
        ),
    },
    ContextRules: {"enabled": "without 'context' a phase sees its task alone"},
}
"""Keys without an effect on a run here, with what is so instead (L214). One that begins with _ is one, too."""
