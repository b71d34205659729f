"""Generated documents: JSON values whose texts are hard on parsers, written as YAML or JSON in several styles."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import strategies as st
from ruamel.yaml import YAML

from workbench.language.problem import Path

WORDS = st.sampled_from(
    (
        *("yes", "NO", "on", "null", "~", "012", "1e3", "12:30:45", "a: b", "- x", "#", "'", '"', "{{ input.x }}"),
        *("|", ">", "{% if a %}\n  x\n{% endif %}", "two\nlines\n", "three\n\n\nlines", " lead", "trail ", "\ttab"),
        *("é😀", "", "0x1F", "long " * 40, "a\\b", "%", "@", "*x", "&x", "!x", "? q", "true ", "1_000", "\n"),
        "line\n  more\n    deep\nback\n",
    )
)
RUAMEL_FAILS = re.compile(r"[-+]?(0[box]|\.)?_[._]*")
"""Plain words that ruamel takes for a number and cannot read."""
TEXTS = st.one_of(
    WORDS,
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12).filter(
        lambda text: not RUAMEL_FAILS.fullmatch(text)
    ),
)
KEYS = st.one_of(st.sampled_from(["name", "on", "yes", "1", "a b", "é", "k:", "#k"]), st.text("abcxyz_", max_size=5))
SCALARS = st.one_of(
    TEXTS,
    st.integers(-(10**9), 10**9),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=15,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=5)


class _Literal(yaml.SafeDumper):
    """Writes texts of several lines as block scalars."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


class _Folded(yaml.SafeDumper):
    """Writes texts of several lines as folded scalars."""


def _fold(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=">" if "\n" in text or len(text) > 60 else None)


_Literal.add_representer(str, _block)
_Folded.add_representer(str, _fold)


def as_yaml(data: Any, style: str) -> str:
    """The data written as YAML: ``block``, ``flow``, ``literal``, ``folded``, ``narrow``, ``quoted`` or ``ruamel``."""
    if style == "ruamel":
        out = io.StringIO()
        writer = YAML(typ="safe", pure=True)
        writer.default_flow_style = False
        writer.dump(data, out)
        return out.getvalue()
    dumper = {"literal": _Literal, "folded": _Folded}.get(style, yaml.SafeDumper)
    return str(
        yaml.dump(
            data,
            Dumper=dumper,
            default_flow_style=style == "flow",
            allow_unicode=True,
            sort_keys=False,
            width=20 if style in ("narrow", "folded") else 100,
            indent=4 if style == "narrow" else 2,
            default_style='"' if style == "quoted" else None,
        )
    )


STYLES = st.sampled_from(["block", "flow", "literal", "folded", "narrow", "quoted", "ruamel"])


def as_json(data: Any, indent: int | None) -> str:
    return json.dumps(data, indent=indent, ensure_ascii=indent == 3)


def paths(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value with its path, outermost first."""
    yield path, data
    if isinstance(data, dict):
        for key, item in data.items():
            yield from paths(item, (*path, key))
    elif isinstance(data, list):
        for index, item in enumerate(data):
            yield from paths(item, (*path, index))


PHASES = """\
cascade_id: triage
inputs_schema: {path: the log file}
phases:
  - name: look
    instructions: "Find the failure in {{ input.path }}."
    tackle: [read_file]
    rules: {max_turns: 6}
    intra_context: {mask_observations_after: 2}
    handoffs:
      - {target: crash, description: the process died}
      - noise
  - name: crash
    instructions: |
      Explain the cause.
      Use three sentences.
    context: {from: [{phase: look, include: [messages], messages_filter: last_turn}], include_input: false}
    wards: {post: [{validator: length_check, mode: retry, max_attempts: 2}]}
  - name: noise
    instructions: Say why it can be ignored.
"""
"""A cascade without a fault."""
