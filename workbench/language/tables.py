"""The tables that the outputs of phases are, and the places of a data phase's query or code that name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

SQL, PYTHON, JAVASCRIPT, CLOJURE, BASH = DATA_TOOLS = (
    "sql_data",
    "python_data",
    "js_data",
    "clojure_data",
    "bash_data",
)
"""The tools that run a phase's own query or code over the outputs of earlier phases."""
INPUT_TABLE = "input_table"
"""The argument of bash_data that is the name of a table."""


class TableUse(Struct, frozen=True, order=True):
    """A place that names the output of a phase: offsets into the text of the phase's name, the end exclusive."""

    start: int
    end: int
    phase: str
    written: str
    """As the text names it: ``_orders``, ``data.orders``."""


def table_name(phase: str) -> str:
    """The table that is the output of a phase; a list under KEY inside it is ``_PHASE_KEY``."""
    return f"_{phase}"


def owner_of(table: str, phases: Iterable[str]) -> str:
    """The phase whose output a table is, or is a part of; empty if it is of none of them."""
    fits = [phase for phase in phases if table == table_name(phase) or table.startswith(f"{table_name(phase)}_")]
    return max(fits, key=len, default="")


def table_uses(tool: str, argument: str, text: str, phases: Iterable[str]) -> Iterator[TableUse]:
    """The places where a data phase reads outputs of ``phases``, in the order of the text.

    ``text`` is the argument as the file writes it, before templates are rendered; expressions of templates, comments,
    and texts within a query are not looked at, nor names that a query itself gives to a table.
    """
    find = _FINDERS.get((tool, argument))
    if find is not None:
        yield from sorted(find(_blank(_TEMPLATE, text), tuple(phases)))


def _blank(what: re.Pattern[str], text: str) -> str:
    """The text with blanks in place of what is passed over, so that offsets stay."""
    return what.sub(lambda found: " " * len(found.group()), text)


_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_SQL_TEXT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SQL_NAME = re.compile(r'(?<![\w.$])(?:"_([^"\n]+)"|_(\w+))')
_SQL_MADE = re.compile(
    r'\b(?:table|view)\s+(?:if\s+not\s+exists\s+)?"?(\w+)|(?:\bwith\b(?:\s+recursive)?|,)\s*"?(\w+)"?\s*(?:\([^)]*\)\s*)?as\s*'
    r"(?:(?:not\s+)?materialized\s*)?\(",
    re.IGNORECASE,
)
_HASH = re.compile(r"(?m)(?:^|(?<=\s))#[^\n]*")
_SLASHES = re.compile(r"(?m)(?:^|(?<=\s))//[^\n]*|/\*.*?\*/", re.DOTALL)
_SEMICOLON = re.compile(r";[^\n]*")
_OF_DATA = re.compile(
    r"""(?<![\w.])data\s*(?:\?)?\.\s*(?:get\s*\(\s*["'](?P<got>[\w-]+)["']|(?P<dot>\w+))|(?<![\w.])data\s*\[\s*["'](?P<key>[\w-]+)["']"""
)
_OF_MAP = re.compile(r"\(\s*:(?P<of>[\w-]+)\s+data\b|\(\s*data\s+:(?P<by>[\w-]+)|\(\s*get\s+data\s+:(?P<got>[\w-]+)")


def _in_query(text: str, phases: Sequence[str]) -> Iterator[TableUse]:
    text, known = _blank(_SQL_TEXT, text), {phase.lower(): phase for phase in phases}  # SQL takes A for a.
    made = {name.lower() for pair in _SQL_MADE.findall(text) for name in pair if name}
    for found in _SQL_NAME.finditer(text):
        name = (found[1] or found[2]).lower()
        owner = owner_of(table_name(name), known)
        if owner and table_name(name) not in made:
            start = found.start(1 if found[1] else 2)
            yield TableUse(start, start + len(owner), known[owner], f"_{found[1] or found[2]}")


def _in_name(text: str, phases: Sequence[str]) -> Iterator[TableUse]:
    name = text.strip()
    owner = owner_of(name, phases)
    if owner:
        start = text.index(name) + len(table_name(""))
        yield TableUse(start, start + len(owner), owner, name)


def _in_code(
    text: str, phases: Sequence[str], *, comment: re.Pattern[str], reading: re.Pattern[str], kebab: bool = False
) -> Iterator[TableUse]:
    known = {phase.replace("_", "-") if kebab else phase: phase for phase in phases}
    for found in reading.finditer(_blank(comment, text)):
        group = next(name for name, value in found.groupdict().items() if value is not None)
        if (phase := known.get(found[group])) is not None:
            yield TableUse(found.start(group), found.end(group), phase, found.group().lstrip("( "))


_FINDERS: Mapping[tuple[str, str], Callable[[str, Sequence[str]], Iterator[TableUse]]] = {
    (SQL, "query"): _in_query,
    (PYTHON, "code"): partial(_in_code, comment=_HASH, reading=_OF_DATA),
    (JAVASCRIPT, "code"): partial(_in_code, comment=_SLASHES, reading=_OF_DATA),
    (CLOJURE, "code"): partial(_in_code, comment=_SEMICOLON, reading=_OF_MAP, kebab=True),
    (BASH, INPUT_TABLE): _in_name,
}
