"""Results of data phases: what a value becomes as an output, and which tables the outputs of a run are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.language.tables import table_name

Rows = Sequence[Mapping[str, Any]]


def shaped(value: Any) -> dict[str, Any]:
    """A value as the output of a data phase.

    A list of objects has ``rows``, ``columns`` and ``row_count``; anything else is under ``result``. ``type`` is
    dataframe, dict, list or scalar. ``_route`` is ``success``, for ``routing``.
    """
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return table(value)
    kind = "dict" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"
    return {"result": value, "type": kind, "_route": "success"}


def table(rows: Rows, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """Rows as the output of a data phase; ``columns`` are those that the rows have, in order of appearance."""
    names = list(columns) if columns is not None else list(dict.fromkeys(key for row in rows for key in row))
    return {
        "rows": [dict(row) for row in rows],
        "columns": names,
        "row_count": len(rows),
        "type": "dataframe",
        "_route": "success",
    }


def unwrapped(output: Any) -> Any:
    """Returns the form in which code gets a phase's output: the rows of a table, the result of another data phase, else
    the output."""
    if isinstance(output, Mapping):
        for key in ("rows", "result"):
            if key in output:
                return output[key]
    return output


def data_of(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what code finds under ``data``: the output of each phase by its name, in the form that code gets, and the
    tables that phases name (``result_table``) or make by their names without the underscore."""
    found = {phase: unwrapped(output) for phase, output in outputs.items()}
    for output in outputs.values():
        for name, rows in _made(output).items():
            found.setdefault(name.removeprefix("_"), rows)
        more = output.get("table") if isinstance(output, Mapping) else None
        if isinstance(more, str):
            found.setdefault(more.removeprefix("_"), unwrapped(output))
    return found


def tables_of(outputs: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The tables that the outputs of a run are, by name.

    ``_PHASE`` holds a list of objects, or the plain values of an object; ``_PHASE_KEY`` a list of objects, or an
    object, inside it. A phase may name one more table (``result_table``), and a query may make some, or change some of
    earlier phases.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for phase, output in outputs.items():
        own = table_name(phase)
        for name, rows in _tables(own, _read(output)):
            found[name] = rows
        more = output.get("table") if isinstance(output, Mapping) else None
        if isinstance(more, str) and own in found:
            found[more] = found[own]
        found |= _made(output)
    return found


def _made(output: Any) -> dict[str, list[dict[str, Any]]]:
    """The tables that a query made or changed (``CREATE TEMP TABLE``), which its output holds beside its rows."""
    held = output.get("tables") if isinstance(output, Mapping) and output.get("type") == "dataframe" else None
    return {name: rows for name, rows in held.items() if _is_rows(rows)} if isinstance(held, Mapping) else {}


def _read(output: Any) -> Any:
    """The data in an output. A model's answer is text; if that text is JSON, it is a table, too."""
    if isinstance(output, str) and output.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(output)
        except (ValueError, RecursionError):
            return None
    return unwrapped(output)


def _tables(name: str, value: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if _is_rows(value):
        yield name, value
    elif isinstance(value, dict):
        plain = {key: item for key, item in value.items() if not isinstance(item, (list, dict))}
        if plain:
            yield name, [plain]
        for key, item in value.items():
            if _is_rows(item):
                yield f"{name}_{key}", item
            elif isinstance(item, dict) and item:
                yield f"{name}_{key}", [item]


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and row for row in value)
