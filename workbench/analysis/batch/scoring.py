"""Scorers that need only the output and the row, and the parser for the answer of any scorer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import regex
from msgspec import Struct

from workbench.analysis.batch.rows import EXPECTED, InputRow, canonical
from workbench.engine.toolcalls import first_fenced
from workbench.language.json_schema import bad_pattern, bad_schema, mismatch

KINDS = ("exact", "regex", "schema", "validator", "cascade", "python", "person")
PURE = ("exact", "regex", "schema")
"""Those that this module answers itself."""
_MATCH_S = 2.0
"""Seconds that a regular expression may take for one output."""


class ScorerError(ValueError):
    """An invalid scorer; the message says what is allowed."""


class Scorer(Struct, frozen=True):
    """How outputs are judged: ``KIND`` or ``KIND:ARGUMENT``, after ``NAME=`` if the user named it."""

    kind: str
    argument: str = ""
    name: str = ""
    """Its column."""

    @classmethod
    def parse(cls, text: str) -> Scorer:
        """Raises ScorerError."""
        head, _, argument = text.partition(":")
        name, equals, kind = head.rpartition("=")
        kind, name, argument = kind.strip(), name.strip() if equals else "", argument.strip()
        if kind not in KINDS:
            raise ScorerError(
                f"'{text[:80]}' is not a scorer: use {', '.join(KINDS)}, most with an argument after a colon"
            )
        if not argument and kind in ("regex", "schema", "validator", "cascade", "python"):
            needs = {"regex": "PATTERN", "schema": "FILE", "cascade": "FILE"}.get(kind, "NAME")
            raise ScorerError(f"'{kind}' needs {needs} after a colon: {kind}:{needs}")
        if kind == "regex" and (wrong := bad_pattern(argument)) is not None:
            raise ScorerError(f"'{argument[:80]}' is not a regular expression: {wrong[0]}")
        return cls(kind, argument, name or _named(kind, argument))

    @property
    def spec(self) -> str:
        """As it is parsed."""
        return f"{self.kind}:{self.argument}" if self.argument else self.kind


def _named(kind: str, argument: str) -> str:
    if kind in ("validator", "python"):
        return argument
    if kind in ("cascade", "schema"):
        return argument.replace("\\", "/").rpartition("/")[2].split(".")[0] or kind
    return kind


class Score(Struct, frozen=True, omit_defaults=True):
    """A scorer's verdict on one output. ``value`` is None if it could not tell, and ``fault`` says why."""

    value: float | None = None
    reason: str = ""
    fault: str = ""
    cost: float | None = None
    """US dollars of a scoring run."""
    run: str = ""
    """Its id."""


def read_score(answer: Any) -> Score:
    """Reads the answer of a function, a validator or a cascade: a number, a boolean, ``{"valid"|"score", "reason"}``,
    or the JSON text of one. Anything else is a fault, and no score."""
    if isinstance(answer, str):
        for text in (answer.strip(), first_fenced(answer)):
            try:
                body = json.loads(text or "")
            except (ValueError, RecursionError):
                continue
            if not isinstance(body, str):
                return read_score(body)
        return Score(fault=f"no score in the answer: {answer.strip()[:120]!r}")
    if isinstance(answer, bool):
        return Score(float(answer))
    if isinstance(answer, int | float):
        return Score(float(answer)) if isfinite(answer) else Score(fault=f"{answer} is not a score")
    if isinstance(answer, Mapping):
        reason = str(answer.get("reason") or "")
        for key in ("score", "valid"):
            value = answer.get(key)
            if isinstance(value, bool | int | float) and isfinite(value):
                return Score(float(value), reason)
    return Score(fault=f"no score in the answer: {str(answer)[:120]!r}")


def score(scorer: Scorer, output: str, row: InputRow, schema: Mapping[str, Any] | None = None) -> Score:
    """Returns the score by one of ``PURE``; ``schema`` is the JSON of a ``schema`` scorer's file."""
    match scorer.kind:
        case "exact":
            return _exact(output, row, scorer.argument or EXPECTED)
        case "regex":
            return _regex(output, scorer.argument)
        case _:
            return _schema(output, schema or {})


def _exact(output: str, row: InputRow, column: str) -> Score:
    wanted = row.columns.get(column)
    if wanted is None:
        return Score(fault=f"the row has no '{column}' to compare with")
    if isinstance(wanted, str):
        return Score(float(output.strip() == wanted.strip()))
    try:
        given = json.loads(first_fenced(output) or output)
    except (ValueError, RecursionError):
        return Score(0.0, "the output is not JSON")
    return Score(float(canonical(given) == canonical(wanted)))


def _regex(output: str, pattern: str) -> Score:
    try:
        return Score(
            float(regex.search(pattern, output, regex.DOTALL | regex.IGNORECASE, timeout=_MATCH_S) is not None)
        )
    except TimeoutError:
        return Score(fault=f"the regular expression took longer than {_MATCH_S:g} s")


def _schema(output: str, schema: Mapping[str, Any]) -> Score:
    try:
        given = json.loads(first_fenced(output) or output)
    except (ValueError, RecursionError) as fault:
        return Score(0.0, f"the output is not JSON: {fault}")
    try:
        wrong = mismatch(schema, given)
    except (TimeoutError, RecursionError) as fault:
        return Score(fault=str(fault))
    if wrong is None:
        return Score(1.0)
    at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in wrong.absolute_path).lstrip(".")
    return Score(0.0, f"{at}: {wrong.message}"[:300] if at else wrong.message[:300])


def checked_schema(text: str, file: str) -> Mapping[str, Any]:
    """The JSON Schema in the text of a file. Raises ScorerError, which names the file."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as fault:
        at, said = file, str(fault)
        if isinstance(fault, json.JSONDecodeError):
            at, said = f"{file}:{fault.lineno}:{fault.colno}", fault.msg
        raise ScorerError(f"{at}: not valid JSON: {said}") from fault
    if not isinstance(schema, dict):
        raise ScorerError(f"{file}: a JSON Schema is an object")
    if (wrong := bad_schema(schema)) is not None:
        raise ScorerError(f"{file}: {'.'.join(map(str, wrong[0])) or 'it'} is not a JSON Schema: {wrong[1]}")
    return schema
