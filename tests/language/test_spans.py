"""Every value has a place, and the text there is the value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.language.documents import MAPPINGS, STYLES, as_json, as_yaml, paths
from workbench.language.read.source import Source
from workbench.language.read.text import read_source
from workbench.language.read.yaml import read_yaml


def read(text: str, file: str = "x.yaml") -> Source:
    source, problems = read_source(text, file)
    assert not problems, problems
    return source


def parsed_again(source: Source, start: int, end: int) -> Any:
    """What the text between two offsets says on its own, at its own indentation."""
    column = source.position(start)[1]
    reading = read_yaml(" " * (column - 1) + source.text[start:end])
    assert not reading.faults, reading.faults
    return reading.data


@given(MAPPINGS, STYLES)
def test_the_text_at_every_value_of_a_yaml_file_says_the_value(data: Any, style: str) -> None:
    source = read(as_yaml(data, style))
    for path, value in paths(source.data):
        start, end = source.offsets(path)
        assert parsed_again(source, start, end) == value, (path, source.text[start:end])


@given(MAPPINGS, st.sampled_from([None, 2, 3]))
def test_the_text_at_every_value_of_a_json_file_says_the_value(data: Any, indent: int | None) -> None:
    source = read(as_json(data, indent), "x.json")
    assert source.data == data
    for path, value in paths(data):
        start, end = source.offsets(path)
        assert json.loads(source.text[start:end]) == value


@given(MAPPINGS, STYLES)
def test_every_character_of_a_text_is_found_in_the_file(data: Any, style: str) -> None:
    source = read(as_yaml(data, style))
    for path, value in paths(source.data):
        if isinstance(value, str) and value:
            start, end = source.offsets(path)
            places = [source.inner_span(path, *line_column(value, at)) for at in range(len(value))]
            whole = source.span(path)
            assert all(whole.line <= p.line <= whole.end_line for p in places)
            plain = [at for at, char in enumerate(value) if char.isalnum() and char.isascii()]
            for at in plain:
                found = source.line_text(places[at].line)[places[at].column - 1 :]
                assert found.startswith((value[at], "\\")), (path, value, at, source.text[start:end])


def line_column(value: str, at: int) -> tuple[int, int]:
    before = value[:at].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")
