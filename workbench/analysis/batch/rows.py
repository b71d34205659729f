"""The rows of a batch: the columns of a record that are a run's input, and the problems of a row."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import isinf
from typing import Any

from msgspec import Struct, field

INPUT = "input"
"""A column whose object is the whole input."""
EXPECTED = "expected"
"""The column that scorers compare with, unless they name another one."""
NAMES = ("id", "name")
"""The columns that name a row, the first that is there."""


class InputRow(Struct, frozen=True):
    """One record of the inputs."""

    number: int
    """From 1."""
    where: str = ""
    """File and line, or another description of its place."""
    input: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    """All of the record: what scorers may look at."""
    fault: str = ""
    """Its place, and why it cannot become a run; empty if it can."""

    @property
    def name(self) -> str:
        """The name that people use: its ``id`` or ``name``, else its number."""
        found = next((self.columns[key] for key in NAMES if isinstance(self.columns.get(key), str | int)), "")
        return str(found).strip() or str(self.number)

    @property
    def label(self) -> str:
        """Its number, and its name where it has one."""
        return str(self.number) if self.name == str(self.number) else f"{self.number} ({self.name})"

    @property
    def expected(self) -> Any:
        """The expected output; None if unknown."""
        return self.columns.get(EXPECTED)


_IN_SESSIONS = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""An ``id`` that can stand in a session id: no dot, which sets the parts of one apart."""
_LIKE_NUMBERS = re.compile(r"r\d+")


def session_names(rows: Sequence[InputRow], *, by_id: bool) -> tuple[str, ...]:
    """The part of each row in the session ids of its runs: with ``by_id`` its own ``id`` where that is safe and no
    other row's, else ``r`` and its number. Ids that look like the numbers of rows count only where every row is named
    by its id."""
    ids = [str(row.columns.get("id", "")).strip() for row in rows]
    counted = Counter(map(str.casefold, ids))
    usable = [by_id and bool(_IN_SESSIONS.fullmatch(id)) and counted[id.casefold()] == 1 for id in ids]
    every = all(usable)
    return tuple(
        id if fits and (every or not _LIKE_NUMBERS.fullmatch(id.casefold())) else f"r{row.number}"
        for row, id, fits in zip(rows, ids, usable, strict=True)
    )


def row_of(number: int, where: str, record: Any, declared: Collection[str]) -> InputRow:
    """A record as a row. ``declared`` are the inputs of the cascade: each must be present; further columns are kept for
    scorers. A cascade that declares none takes every column but ``id``, ``name`` and ``expected``.
    """
    if not isinstance(record, Mapping):
        return InputRow(number, where, fault=_placed(where, f"a row is an object, this is {_kind(record)}"))
    record = {str(key): value for key, value in record.items()}
    inner = record.get(INPUT)
    given = inner if isinstance(inner, Mapping) and INPUT not in declared else record
    if given is inner:
        input = dict(given)
    elif declared:
        input = {key: value for key, value in given.items() if key in declared}
    else:
        input = {key: value for key, value in given.items() if key not in (EXPECTED, *NAMES)}
    missing = [name for name in declared if input.get(name) is None]
    fault = ""
    if missing and all(name in given for name in missing):
        fault = f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} null: the cascade needs a value"
    elif missing:
        known = ", ".join(list(given)[:8]) or "no column"
        fault = f"{_listed(missing)} missing: the cascade declares {_listed(list(declared))}, the row has {known}"
    elif endless := [key for key, value in input.items() if _finite(value) != value]:
        fault = f"{_listed(endless)} holds a number that is too large: JSON has no infinity"
    elif unknown := [key for key in input if declared and key not in declared]:
        fault = f"{_listed(unknown)} not an input of the cascade, which declares {_listed(list(declared))}"
    return InputRow(number, where, _finite(input), _finite(record), _placed(where, fault))


def _finite(value: Any) -> Any:
    """A value with infinite numbers as text: no journal can hold them."""
    if isinstance(value, float):
        return str(value) if isinf(value) else value
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def _placed(where: str, fault: str) -> str:
    return f"{where}: {fault}" if where and fault else fault


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name[:40]}'" for name in names[:8])


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", list: "a list", str: "a text", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def canonical(value: Any) -> str:
    """A value as text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


def cell_key(definition: str, asked: Mapping[str, Any], input: Mapping[str, Any], *number: int) -> str:
    """Returns the key of a cell: the text of the cascade (its digest), who is ``asked`` and how, the input, and the
    ``number`` of the run among equal ones. A change of any of them makes another cell, so a batch whose file was edited
    runs the new cells and keeps the rest."""
    body = canonical([definition, asked, input, number])
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:20]
