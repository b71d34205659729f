"""Finds the place in a cascade that names a refused model, and known names similar to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.engine.definition import Definition, DefinitionError
from workbench.engine.journal.parts import CallState
from workbench.engine.journal.state import RunState
from workbench.engine.model_name import split_effort
from workbench.language.problem import Path
from workbench.models.prices import PriceTable

DOUBTED = frozenset({"not_found", "no_model"})
"""Kinds of faults that the name of the model may explain."""


def model_words(state: RunState, call: CallState, table: PriceTable) -> str:
    """``flow.yaml:5:12: 'openai/gpt-4.1-minii' is named here; known are openai/gpt-4.1-mini, …``; a model that no line
    of the file names is said to come from elsewhere."""
    spot = _place(state, call)
    near = [] if table.listed(call.model) else table.near(split_effort(call.model)[0])
    start = (
        f"no line of the file names '{call.model}': "
        "it comes from --model, from WORKBENCH_DEFAULT_MODEL, or is the built-in default"
    )
    where = f"{spot}: '{call.model}' is named here" if spot else start
    return where + (f"; known names like it: {', '.join(near)}" if near else "")


def _place(state: RunState, call: CallState) -> str:
    """``file:line:column`` of the first value or key of the call's phase, else of the file, that is the model."""
    try:
        definition = Definition.of(state.cascade_text, state.cascade_file)
    except DefinitionError:
        return ""
    source = definition.source
    names = [phase.name for phase in definition.cascade.phases]
    own = ("phases", names.index(call.place.phase)) if call.place.phase in names else ()
    found = [*_naming(source.data, call.model), *_naming(source.data, split_effort(call.model)[0])]
    path = next((one for one in found if one[0][: len(own)] == own), next(iter(found), None))
    if path is None:
        return ""
    span = source.key_span(path[0]) if path[1] else source.span(path[0])
    return f"{state.cascade_file}:{span.line}:{span.column}"


def _naming(data: Any, model: str, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """The paths of values, and (True) of keys, that name the model."""
    if data == model:
        yield path, False
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key == model:
            yield (*path, key), True
        yield from _naming(value, model, (*path, key))
