"""JSON values written as YAML or JSON, in as few words as the reader needs."""

from __future__ import annotations

import json
import re
from typing import Any

from workbench.language.read.yaml import NotJson, plain_value

_SAFE = re.compile(r"[A-Za-z0-9_./(][A-Za-z0-9_./()+=;'\"|~@$%&*!?<>^ -]*(?:: ?[A-Za-z0-9_/][A-Za-z0-9_./ -]*)?")
_SAFE_IN_FLOW = re.compile(r"[A-Za-z_./][A-Za-z0-9_./()+= -]*")
_OLD_BOOLEANS = frozenset({"yes", "no", "on", "off", "y", "n"})
"""Words that readers of YAML 1.1 take for true or false."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
STEP = 2


def json_text(value: Any, indent: int | None, margin: str) -> str:
    """JSON; with an indent over several lines, each but the first after the margin."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return _escaped(text).replace("\n", "\n" + margin) if indent else _escaped(text)


def quoted(text: str) -> str:
    """A YAML text in double quotes, on one line."""
    return _escaped(json.dumps(text, ensure_ascii=False))


def _escaped(text: str) -> str:
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}" if match[0] != "\n" else "\n", text)


def scalar(value: Any, *, in_flow: bool) -> str:
    """A YAML scalar on one line: plain if every reader takes it for the same text, else quoted."""
    if not isinstance(value, str):
        return json.dumps(value, allow_nan=False)
    return value if _is_plain(value, in_flow=in_flow) else quoted(value)


def _is_plain(text: str, *, in_flow: bool) -> bool:
    pattern = _SAFE_IN_FLOW if in_flow else _SAFE
    if not pattern.fullmatch(text) or text != text.strip() or text.lower() in _OLD_BOOLEANS:
        return False
    if ": " in text or " #" in text or text.endswith(":"):
        return False
    try:
        return plain_value(text) == text and not re.fullmatch(r"[-+0-9._:]+", text)
    except NotJson:
        return False


def flow(value: Any) -> str:
    """Any value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key, in_flow=True)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    return scalar(value, in_flow=True)


def literal(text: str) -> list[str] | None:
    """A text of several lines as a block scalar: the header, then lines to be indented; None if that is impossible."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    if "\n" not in text or not lines[0] or lines[0][0] in " \t" or not lines[-1].strip() or _UNPRINTABLE.search(text):
        return None
    return ["|" if text.endswith("\n") else "|-", *lines]


def block(value: Any) -> list[str]:
    """A mapping or list, not empty, as lines of YAML in block style."""
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _entry(f"{scalar(key, in_flow=False)}:", item)]
    lines: list[str] = []
    for item in value:
        if isinstance(item, dict | list) and item:
            first, *rest = block(item)
            lines += [f"- {first}", *(_indented(line) for line in rest)]
        else:
            lines += _entry("-", item)
    return lines


def _entry(head: str, value: Any) -> list[str]:
    if isinstance(value, dict | list) and value:
        return [head, *(_indented(line) for line in block(value))]
    if isinstance(value, str) and (lines := literal(value)) is not None:
        return [f"{head} {lines[0]}", *(_indented(line) for line in lines[1:])]
    return [f"{head} {flow(value) if isinstance(value, dict | list) else scalar(value, in_flow=False)}"]


def _indented(line: str) -> str:
    return " " * STEP + line if line else line


def entry(key: str, value: Any) -> list[str]:
    """A key with its value as lines of YAML in block style."""
    return _entry(f"{scalar(key, in_flow=False)}:", value)
