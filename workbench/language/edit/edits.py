"""Edits of a file as text: one value is replaced, all other bytes stay.

Each new text is read again before it is returned: by our reader, and for YAML by a second one. The two texts must
differ in the edited value alone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

from workbench.language.edit.dot import remove_attribute, set_attribute
from workbench.language.edit.emit import STEP, block, entry, flow, json_text, literal, quoted, scalar
from workbench.language.edit.errors import EditError
from workbench.language.problem import Path, Severity, path_text
from workbench.language.read.names import renamed
from workbench.language.read.source import Source, Spot
from workbench.language.read.text import read_source

_BLANK = " \t\r\n"
"""White space to YAML and JSON: other blanks are text."""


def replace(source: Source, path: Path, value: Any) -> str:
    """The file's text with ``value`` (plain JSON) at ``path``; what is missing on the way is added.

    A list grows by an item when the path ends at its length. Raises EditError when the value cannot be written in
    place: the file is not readable, the value is shared through an alias, or no spelling of it survives the re-reading.
    """
    if source.format == "dot":
        return set_attribute(source, path, value)
    return _first(source, path, _candidates(source, path, value), lambda data: _with(data, path, value))


def remove(source: Source, path: Path) -> str:
    """The file's text without the key at ``path`` and its value; lines of it that hold a comment alone stay.

    Raises EditError when it cannot be taken out in place, or is not there.
    """
    if source.format == "dot":
        return remove_attribute(source, path)
    return _first(source, path, _removals(source, path), lambda data: _without(data, path))


def _first(source: Source, path: Path, texts: Iterator[str], change: Callable[[Any], Any]) -> str:
    """The first of the texts that is the change. Raises EditError."""
    wanted = change(source.data)
    failure = "the file cannot be read"
    for text in texts if source.data is not None else ():
        failure = _verified(source, text, wanted, change)
        if not failure:
            return source.bom + text
    raise EditError(f"{path_text(path) or 'the file'} cannot be changed in place: {failure}")


def _with(data: Any, path: Path, value: Any) -> Any:
    """A copy of the data with the value set. Raises EditError if the path leads through a value that is no
    container.
    """
    if not path:
        return value
    part = path[0]
    if isinstance(part, str) and (data is None or isinstance(data, dict)):
        return {**(data or {}), part: _with((data or {}).get(part), path[1:], value)}
    if isinstance(part, int) and isinstance(data, list) and 0 <= part < len(data):
        return [_with(item, path[1:], value) if index == part else item for index, item in enumerate(data)]
    if isinstance(part, int) and part == len(data if isinstance(data, list) else ()) and isinstance(data, list | None):
        return [*(data or ()), _with(None, path[1:], value)]
    raise EditError(f"there is no place for {path_text(path)}: a {type(data).__name__} stands there")


def _without(data: Any, path: Path) -> Any:
    """A copy of the data without the key. Raises EditError if it is missing."""
    part = path[0]
    if isinstance(data, dict) and part in data:
        rest = {key: one for key, one in data.items() if key != part}
        return {**rest, part: _without(data[part], path[1:])} if path[1:] else rest
    if isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data) and path[1:]:
        return [_without(one, path[1:]) if i == part else one for i, one in enumerate(data)]
    raise EditError(f"there is no {path_text(path)}")


def _verified(source: Source, text: str, wanted: Any, change: Callable[[Any], Any]) -> str:
    """Returns why a text is not the edit that was asked for; empty if it is."""
    again, problems = read_source(source.bom + text, source.file)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    before = [p for p in read_source(source.bom + source.text, source.file)[1] if p.severity is Severity.ERROR]
    if len(errors) > len(before):
        return errors[-1].message
    if not same(again.data, wanted):
        return "other values would change with it"
    if source.format == "yaml" and not _second_reader_agrees(source.text, text, change):
        return "another YAML reader would read it differently"
    return ""


def same(a: Any, b: Any) -> bool:
    """Equal as JSON: 1 and true, 1 and 1.0 are not the same, the order of keys does not matter."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def _second_reader_agrees(before: str, after: str, change: Callable[[Any], Any]) -> bool:
    import ruamel.yaml  # 30 ms, and only an edit needs it

    try:
        data = renamed(_text_keys(ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(before))))
    except (ruamel.yaml.error.YAMLError, ValueError):
        return True  # What it cannot read, it has no opinion about.
    try:
        again = renamed(_text_keys(ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(after))))
        expected = change(data)
    except (ruamel.yaml.error.YAMLError, ValueError):
        return False
    return bool(again == expected)


def _text_keys(value: Any) -> Any:
    """Keys as the words they are, without sharing between aliases."""
    if isinstance(value, dict):
        return {json_text(k, None, "") if isinstance(k, bool) else str(k): _text_keys(v) for k, v in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


def _candidates(source: Source, path: Path, value: Any) -> Iterator[str]:
    """Texts that should be the edit, the best first."""
    spot = source.spot(path)
    if spot is None:
        parent, value = _insertion(source, path, value)
        yield from _inserted(source, parent, path[len(parent)], value)
        return
    if spot.shared:
        raise EditError(f"{path_text(path)} is shared through an alias; change it at the anchor")
    start, end = _bare(source, spot)
    if source.format == "yaml" and spot.style == "block" and spot.key is not None:
        yield from _moved_up(source, spot, value)
        return
    for written in _spellings(source, path, spot, value):
        yield source.text[:start] + written + source.text[end:]


def _removals(source: Source, path: Path) -> Iterator[str]:
    """Texts without a key and its value."""
    spot, text = source.spot(path), source.text
    if spot is None or spot.key is None or spot.shared:
        raise EditError(f"{path_text(path)} does not stand there by itself")
    begin, end = spot.key[0], max(spot.start + len(text[spot.start : spot.end].rstrip(_BLANK)), spot.key[1])
    if source.format == "json" or _in_flow(source, path):
        if (comma := re.compile(r"[ \t\r\n]*,[ \t\r\n]*").match(text, end)) is not None:
            yield text[:begin] + text[comma.end() :]
        yield re.sub(r",?[ \t\r\n]*\Z", "", text[:begin]) + text[end:]
        return
    first, last = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
    if not text[first:begin].strip():
        lines = text[first : last + 1 if last >= 0 else len(text)].splitlines(keepends=True)
        kept = "".join(line for line in lines if line.lstrip().startswith("#"))
        yield text[:first] + kept + (text[last + 1 :] if last >= 0 else "")
    elif (below := re.compile(r"[^\n]*\n\s*").match(text, end)) is not None:  # The first key behind a dash.
        yield text[:begin] + text[below.end() :]


def _moved_up(source: Source, spot: Spot, value: Any) -> Iterator[str]:
    """A value that replaces a block below its key: a block again if possible, else on the line of the key."""
    assert spot.key is not None
    colon = source.text.index(":", spot.key[1]) + 1
    head, gap, rest = source.text[:colon], source.text[colon : spot.start], source.text[spot.end :]
    rest = _ending(source, spot) + rest
    newline, column = _newline(source), source.position(spot.start)[1] - 1
    if isinstance(value, dict | list) and value:
        lines = block(value)
        yield head + gap + (newline + " " * column).join(lines) + rest
        margin = newline + " " * (_key_column(source, spot) + STEP)
        yield head + gap.rstrip() + "".join(margin + line for line in lines) + rest
    if isinstance(value, str) and (found := literal(value)) is not None and not gap.strip():
        margin = newline + " " * (_key_column(source, spot) + STEP)
        yield head + " " + found[0] + "".join(margin + line if line else newline for line in found[1:]) + rest
    inline = flow(value) if isinstance(value, dict | list) else scalar(value, in_flow=False)
    yield head + " " + inline + gap.rstrip() + rest
    if isinstance(value, str):
        yield head + " " + quoted(value) + gap.rstrip() + rest


def _ending(source: Source, spot: Spot) -> str:
    """The line ends that belong to a value because a block scalar ends it."""
    old = source.text[spot.start : spot.end]
    return old[len(old.rstrip("\r\n")) :]


def _bare(source: Source, spot: Spot) -> tuple[int, int]:
    """The value without an anchor or a tag before it, which stay."""
    match = re.compile(r"(?:&[^\s,\[\]{}]+\s+)+").match(source.text, spot.start, spot.end)
    return (match.end() if match else spot.start), spot.end


def _insertion(source: Source, path: Path, value: Any) -> tuple[Path, Any]:
    """The nearest existing ancestor, and the value to add there, wrapped in the missing levels."""
    for length in range(len(path) - 1, -1, -1):
        if source.spot(path[:length]) is not None:
            for part in reversed(path[length + 1 :]):
                value = {part: value} if isinstance(part, str) else [value]
            return path[:length], value
    return (), value


def _margin(source: Source, offset: int) -> str:
    """The white space that begins the line of an offset."""
    start = source.text.rfind("\n", 0, offset) + 1
    return re.compile(r"[ \t]*").match(source.text, start)[0]  # type: ignore[index]


def _newline(source: Source) -> str:
    return "\r\n" if "\r\n" in source.text else "\n"


def _spellings(source: Source, path: Path, spot: Spot, value: Any) -> Iterator[str]:
    """Spellings of the new value at the place of the old one."""
    if source.format == "json":
        wide = "\n" in source.text[spot.start : spot.end]
        yield json_text(value, _json_step(source) if wide else None, _margin(source, spot.start))
        return
    ending = _ending(source, spot)
    gap = " " if source.text[spot.start - 1 : spot.start] in (":", "-") else ""
    in_flow = _in_flow(source, path)
    column = source.position(spot.start)[1] - 1
    newline = _newline(source)
    if isinstance(value, str):
        if not in_flow and (lines := literal(value)) is not None:
            margin = " " * (_key_column(source, spot) + STEP)
            body = newline.join([lines[0], *(margin + line if line else "" for line in lines[1:])])
            yield gap + body + (newline if value.endswith("\n") and not ending else ending)
        if spot.style == "'" and "\n" not in value:
            yield "'" + value.replace("'", "''") + "'"
        if spot.style == '"':
            yield quoted(value)
    if isinstance(value, dict | list):
        if value and spot.style == "block":
            yield gap + (newline + " " * column).join(block(value)) + ending
        yield gap + flow(value) + ending
        return
    yield gap + scalar(value, in_flow=in_flow) + ending
    if isinstance(value, str):
        yield gap + quoted(value) + ending


def _key_column(source: Source, spot: Spot) -> int:
    """The column of the mapping or list that holds a value, counted from 0."""
    if spot.key is not None:
        return source.position(spot.key[0])[1] - 1
    line_start = source.text.rfind("\n", 0, spot.start) + 1
    dash = source.text.rfind("-", line_start, spot.start)
    return (dash if dash >= 0 else spot.start) - line_start


def _in_flow(source: Source, path: Path) -> bool:
    return any((spot := source.spot(path[:length])) is not None and spot.style == "flow" for length in range(len(path)))


def _json_step(source: Source) -> int:
    match = re.search(r"\n( +)\S", source.text)
    return len(match[1]) if match else STEP


def _inserted(source: Source, parent: Path, part: str | int, value: Any) -> Iterator[str]:
    """The text with a key or an item added at the end of a mapping or list."""
    spot = source.spot(parent)
    assert spot is not None
    if spot.shared:
        raise EditError(f"{path_text(parent)} is shared through an alias; change it at the anchor")
    if spot.kind == "scalar":
        whole = {part: value} if isinstance(part, str) else [value]
        yield from _filled(source, parent, spot, whole)
    elif source.format == "json":
        key = f"{json_text(part, None, '')}: " if isinstance(part, str) else ""
        yield _into_brackets(source, spot, lambda margin, step: key + json_text(value, step, margin))
    elif spot.style == "flow":
        key = f"{scalar(part, in_flow=True)}: " if isinstance(part, str) else ""
        yield _into_brackets(source, spot, lambda margin, step: key + flow(value))
    else:
        yield _below(source, spot, entry(part, value) if isinstance(part, str) else block([value]))


def _filled(source: Source, path: Path, spot: Spot, value: Any) -> Iterator[str]:
    """Spellings of a mapping or list in an empty place."""
    if source.text[spot.start : spot.end].strip() not in ("", "null", "~"):
        raise EditError(f"{path_text(path)} is written in its short form; replace it as a whole")
    if source.format == "yaml" and spot.start == spot.end and spot.key is not None and not _in_flow(source, path):
        margin = _newline(source) + " " * (_key_column(source, spot) + STEP)
        yield source.text[: spot.start] + "".join(margin + line for line in block(value)) + source.text[spot.end :]
    for written in _spellings(source, path, spot, value):
        yield source.text[: spot.start] + written + source.text[spot.end :]


def _below(source: Source, spot: Spot, lines: list[str]) -> str:
    """New lines after the last one of a block, past a comment that stands behind it."""
    newline, text = _newline(source), source.text
    margin = " " * (source.position(spot.start)[1] - 1)
    at = spot.end
    if not text[:at].endswith("\n"):
        end = text.find("\n", at)
        at = len(text) if end < 0 else end + 1
    before = "" if text[:at].endswith("\n") or not at else newline
    return text[:at] + before + "".join(f"{margin}{line}".rstrip(" ") + newline for line in lines) + text[at:]


def _into_brackets(source: Source, spot: Spot, write: Callable[[str, int | None], str]) -> str:
    """A new item before the closing bracket: on its own line if the others are."""
    text, close = source.text, spot.end - 1
    inside = text[spot.start + 1 : close]
    tail = len(inside.rstrip(_BLANK))
    at = spot.start + 1 + tail
    if not inside.strip(_BLANK):
        return text[: spot.start + 1] + write(_margin(source, spot.start), None) + text[close:]
    comma = "" if inside.rstrip(_BLANK).endswith(",") else ","
    if "\n" not in inside:
        return text[:at] + comma + " " + write("", None) + text[at:]
    margin = _margin(source, at - 1)
    step = _json_step(source) if source.format == "json" else None
    return text[:at] + comma + _newline(source) + margin + write(margin, step) + text[at:]
