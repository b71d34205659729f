"""YAML or JSON text to its data with their places; DOT has its own reader (``dot.py``). Loads no model of a cascade:
what only wants the data is quick."""

from __future__ import annotations

import re

from workbench.language.problem import Problem, Severity
from workbench.language.read.endings import DOT_ENDINGS
from workbench.language.read.json import read_json
from workbench.language.read.names import by_names_used_here
from workbench.language.read.reading import MAX_BYTES, MAX_DOT_BYTES, Fault, Reading
from workbench.language.read.source import Format, Source
from workbench.language.read.yaml import read_yaml

_BOM = "\ufeff"
_GRAPH = re.compile(
    r"(?:\s+|(?://|#)[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/)*+(?:strict\s+)?(?:di)?graph\b(?:\s*+\"[^\"]*+\"|[^\n\"{:]*+)\s*+\{"
).match


def read_source(text: str | bytes, file: str = "") -> tuple[Source, list[Problem]]:
    """The text with its places, and its problems as YAML or JSON. ``data`` is None when it cannot be read,
    and for DOT.
    """
    source, problems = unread_source(text, file)
    if problems or source.format == "dot":
        return source, problems
    text, form, bom = source.text, source.format, source.bom
    reading = _read(text, form)
    if form == "yaml" and reading.faults and _looks_like_json(text):
        # YAML has no surrogate pairs, so "\ud83d\ude00" is valid JSON and a fault in YAML.
        as_json = read_json(text)
        if not as_json.faults:
            reading, form = as_json, "json"
    source = Source(text, file, form, reading.data, bom, reading.layout)
    return by_names_used_here(source), [_problem(source, fault) for fault in reading.faults]


def unread_source(text: str | bytes, file: str = "") -> tuple[Source, list[Problem]]:
    """The characters of a file and the format they are in, without data; and why they cannot be read further."""
    text, refused = _text(text, file)
    bom = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(_BOM)
    source = Source(text, file, _format(text, file), bom=bom)
    return source, [] if refused is None else [_problem(source, refused)]


def _text(text: str | bytes, file: str) -> tuple[str, Fault | None]:
    """The characters, and why they are not read further."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_BYTES:
        shown = raw[:4096].decode("utf-8", "replace")
        dot = _format(shown.removeprefix(_BOM), file) == "dot"
        limit, of = (MAX_DOT_BYTES, " of a graph in DOT") if dot else (MAX_BYTES, "")
        if len(raw) > limit:
            message = f"too large: {len(raw):,} bytes, the limit{of} is {limit:,}"
            return shown, Fault(Severity.ERROR, "L104", message, 0, 0)
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError as fault:
        at = len(raw[: fault.start].decode("utf-8"))
        hint = "it looks like UTF-16; save it as UTF-8" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        shown = raw.decode("utf-8", "replace")
        return shown, Fault(Severity.ERROR, "L105", f"not UTF-8 at byte {fault.start + 1}", at, at + 1, hint)


def _format(text: str, file: str) -> Format:
    name = file.lower()
    if name.endswith(DOT_ENDINGS) or _GRAPH(text) is not None:
        return "dot"
    if name.endswith(".json"):
        return "json"
    if name.endswith((".yaml", ".yml")):
        return "yaml"
    return "json" if _looks_like_json(text) else "yaml"


def _looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _read(text: str, form: Format) -> Reading:
    if form == "json":
        return read_json(text)
    return read_yaml(text)


def _problem(source: Source, fault: Fault) -> Problem:
    return Problem(
        fault.severity, fault.code, fault.message, source.file, source.between(fault.start, fault.end), (), fault.hint
    )
