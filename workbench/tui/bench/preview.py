"""The tree of a file before the language layer is imported: names and lines of its phases or nodes, nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from workbench.views.tree import PhaseOutline, TreeRows, TreeView

LARGEST = 512 * 1024
"""Bytes of a file that is looked at; a larger one is shown when it has been read properly."""


def preview(file: Path) -> TreeRows | None:
    """The tree of a cascade file as it will probably look; None where a quick look finds none."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return None
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    name, phases = pipeline_of(text) if _PIPELINE.match(text) else outline_of(text)
    if not phases:
        return None
    rows = TreeRows(None, TreeView(outline=phases))
    rows.title_right = ((name[:40], "dim"),)
    return rows


def outline_of(text: str) -> tuple[str, tuple[PhaseOutline, ...]]:
    """The cascade's id and its phases, from the YAML nodes alone; JSON is YAML here."""
    try:
        root: Any = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return "", ()
    top = _fields(root)
    phases = []
    for node in _items(top.get("phases")):
        fields = _fields(node)
        if (name := _text(fields.get("name"))) is not None:
            kind = "tool" if "tool" in fields else "llm"
            phases.append(PhaseOutline(name, kind, node.start_mark.line + 1))
    for node in _items(top.get("sub_tasks")):
        fields = _fields(node)
        if (name := _text(fields.get("id"))) is not None:
            kind = "llm" if _text(fields.get("action_type")) == "inference" else "tool"
            phases.append(PhaseOutline(name, kind, node.start_mark.line + 1))
    return _text(top.get("cascade_id")) or "", tuple(phases)


_PIPELINE = re.compile(r"(?:\s|//[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*(?:strict\s+)?digraph\b", re.DOTALL)
_TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|#[^\n]*|/\*.*?\*/|->|[A-Za-z_][A-Za-z0-9_.]*|[^\s\w]|[0-9][\w.]*',
    re.DOTALL,
)
_NAME = re.compile(r"(?!(?:strict|digraph|subgraph|graph|node|edge)\Z)[A-Za-z_]")


def pipeline_of(text: str) -> tuple[str, tuple[PhaseOutline, ...]]:
    """The name of a graph in DOT and its nodes as they are first named: every name outside brackets that is no
    attribute and no value of one."""
    title, found = "", dict[str, int]()
    before, inside, line, at = "", 0, 1, 0
    tokens = [match for match in _TOKEN.finditer(text) if not match[0].startswith(("//", "/*", "#"))]
    for number, match in enumerate(tokens):
        token = match[0]
        line, at = line + text.count("\n", at, match.start()), match.start()
        inside += (token == "[") - (token == "]")
        follows = tokens[number + 1][0] if number + 1 < len(tokens) else ""
        if before == "digraph" and token not in "{[":
            title = token.strip('"')
        elif not inside and _NAME.match(token) and "=" not in (before, follows) and before != "subgraph":
            found.setdefault(token, line)
        before = token
    return title, tuple(PhaseOutline(name, "llm", line) for name, line in found.items())


def _fields(node: Any) -> dict[str, Any]:
    pairs = node.value if getattr(node, "id", "") == "mapping" else ()
    return {key.value: value for key, value in pairs if isinstance(key.value, str)}


def _items(node: Any) -> list[Any]:
    return list(node.value) if getattr(node, "id", "") == "sequence" else []


def _text(node: Any) -> str | None:
    return node.value if getattr(node, "id", "") == "scalar" else None
