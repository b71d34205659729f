"""Edits change one value and leave every other byte alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.language.documents import KEYS, MAPPINGS, PHASES, STYLES, VALUES, as_json, as_yaml, paths
from workbench.language.edit.edits import remove, replace, same
from workbench.language.edit.errors import EditError
from workbench.language.problem import Path
from workbench.language.read.source import Source
from workbench.language.read.text import read_source


def source_of(text: str, file: str = "x.yaml") -> Source:
    return read_source(text, file)[0]


def after(text: str, path: Path, value: Any, file: str = "x.yaml") -> str:
    return replace(source_of(text, file), path, value)


def with_value(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    if isinstance(data, dict):
        return {**data, path[0]: with_value(data.get(path[0]), path[1:], value)}
    return [with_value(item, path[1:], value) if i == path[0] else item for i, item in enumerate(data)]


@given(MAPPINGS, STYLES, VALUES, st.data())
def test_any_value_of_a_yaml_file_can_be_replaced(data: Any, style: str, value: Any, draw: st.DataObject) -> None:
    source = source_of(as_yaml(data, style))
    path = draw.draw(st.sampled_from([path for path, _ in paths(source.data) if path]))
    text = replace(source, path, value)
    assert same(source_of(text).data, with_value(source.data, path, value))
    start, end = source.offsets(path)
    spot = source.spot(path)
    assert spot is not None
    if spot.style == "block" and spot.key is not None:
        start = spot.key[1]
    assert text.startswith(source.text[:start])
    assert text.endswith(source.text[end:])


@given(MAPPINGS, st.sampled_from([None, 2, 4]), VALUES, st.data())
def test_any_value_of_a_json_file_can_be_replaced(
    data: Any, indent: int | None, value: Any, draw: st.DataObject
) -> None:
    source = source_of(as_json(data, indent), "x.json")
    path = draw.draw(st.sampled_from([path for path, _ in paths(source.data) if path]))
    text = replace(source, path, value)
    assert same(source_of(text, "x.json").data, with_value(source.data, path, value))
    start, end = source.offsets(path)
    assert text.startswith(source.text[:start])
    assert text.endswith(source.text[end:])


@given(MAPPINGS, STYLES, KEYS, VALUES, st.data())
def test_a_missing_key_is_added_to_any_mapping(
    data: Any, style: str, key: str, value: Any, draw: st.DataObject
) -> None:
    source = source_of(as_yaml(data, style))
    mappings = [path for path, item in paths(source.data) if isinstance(item, dict)]
    path = (*draw.draw(st.sampled_from(mappings)), key)
    assume(not source.has(path))
    text = replace(source, path, value)
    assert same(source_of(text).data, with_value(source.data, path, value))


def test_comments_and_layout_stay() -> None:
    text = "# top\na:   1   # one\nb: {x: 1,  y: 2} # two\n\n# end\n"
    assert after(text, ("a",), 2) == text.replace("1   # one", "2   # one")
    assert after(text, ("b", "y"), "z") == text.replace("y: 2", "y: z")
    assert after(text, ("b", "z"), [1]) == text.replace("y: 2}", "y: 2, z: [1]}")


def test_a_block_scalar_stays_one() -> None:
    changed = after(PHASES, ("phases", 1, "instructions"), "One.\nTwo: {{ x }}\n")
    assert "    instructions: |\n      One.\n      Two: {{ x }}\n    context:" in changed


def test_a_new_rule_goes_below_the_last_key_of_its_phase() -> None:
    changed = after(PHASES, ("phases", 0, "intra_context", "step"), 5)
    assert "intra_context: {mask_observations_after: 2, step: 5}" in changed
    changed = after(PHASES, ("phases", 1, "intra_context", "mask_observations_after"), 3)
    assert "max_attempts: 2}]}\n    intra_context:\n      mask_observations_after: 3\n  - name: noise" in changed


def test_a_mapping_is_begun_where_nothing_is_written_yet() -> None:
    assert after("a:\nb: 1\n", ("a", "x"), 1) == "a:\n  x: 1\nb: 1\n"


def test_an_item_is_added_at_the_end_of_a_list() -> None:
    assert after("a:\n- x\n- y # last\nb: 1\n", ("a", 2), "z") == "a:\n- x\n- y # last\n- z\nb: 1\n"
    assert after('{"a": [1, 2]}', ("a", 2), 3, "x.json") == '{"a": [1, 2, 3]}'


def test_json_keeps_its_layout() -> None:
    text = '{\n    "a": {\n        "b": 1\n    }\n}\n'
    assert after(text, ("a", "c"), "d", "x.json") == text.replace("1\n", '1,\n        "c": "d"\n')


def test_a_file_with_carriage_returns_keeps_them() -> None:
    changed = after("a: 1\r\nb:\r\n  c: 2\r\n", ("b", "d"), {"e": 1})
    assert changed == "a: 1\r\nb:\r\n  c: 2\r\n  d:\r\n    e: 1\r\n"
    assert not re.search(r"(?<!\r)\n", changed)


def test_a_byte_order_mark_stays() -> None:
    assert after("\ufeffa: 1\n", ("a",), 2) == "\ufeffa: 2\n"


@pytest.mark.parametrize("text", ["yes", "012", "1e3", "2026-01-01", "null", "a: b", "x #y", "\x1b[2J", "\ud7ff\u2028"])
def test_a_text_that_reads_as_something_else_is_quoted(text: str) -> None:
    assert source_of(after("a: 1\n", ("a",), text)).data == {"a": text}


def test_what_an_alias_shares_is_not_changed() -> None:
    text = "a: &x {k: 1}\nb: *x\nc: {<<: *x}\n"
    for path in [("b",), ("b", "k"), ("c", "k"), ("a", "k")]:
        with pytest.raises(EditError):
            after(text, path, 2)


def test_a_short_form_is_not_grown_into_a_mapping() -> None:
    with pytest.raises(EditError, match="stands there"):
        after(PHASES, ("phases", 0, "handoffs", 1, "description"), "quiet")


def test_a_file_that_cannot_be_read_is_not_edited() -> None:
    with pytest.raises(EditError, match="cannot be read"):
        after("a: [1\n", ("a",), 2)


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ("a: 1\nb:  # of b\n  # kept\n  c: 2\n\n# end\n", ("b",), "a: 1\n  # kept\n\n# end\n"),
        ("x:\n  - a: {b: 1}\n    c: 2\n", ("x", 0, "a"), "x:\n  - c: 2\n"),
        ("{a: 1, b: 2}\n", ("a",), "{b: 2}\n"),
        ("{a: 1, b: 2}\n", ("b",), "{a: 1}\n"),
        ("a: 1\r\nb: 2", ("b",), "a: 1\r\n"),
        ('{\n  "a": [1],\n  "b": {}\n}', ("a",), '{\n  "b": {}\n}'),
        ('{\n  "a": [1],\n  "b": {}\n}', ("b",), '{\n  "a": [1]\n}'),
    ],
)
def test_a_key_is_taken_out_and_all_else_stays(text: str, path: Path, left: str) -> None:
    assert remove(read_source(text, "c.json" if text[:2] == "{\n" else "c.yaml")[0], path) == left


def test_a_key_that_others_refer_to_stays() -> None:
    for path in (("a",), ("gone",)):
        with pytest.raises(EditError):
            remove(read_source("a: &x {c: 1}\nb: *x\n", "c.yaml")[0], path)


def test_a_blank_that_is_text_stays_in_the_value_before_a_new_key() -> None:
    text = after("{name: \xa0}\n", ("",), None)
    assert source_of(text).data == {"name": "\xa0", "": None}
