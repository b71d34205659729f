"""JSON by the letter of its grammar, with the usual mistakes named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.documents import MAPPINGS, as_json
from workbench.language.problem import Problem
from workbench.language.read.text import read_source


def problems_of(text: str) -> list[Problem]:
    return read_source(text, "x.json")[1]


@given(MAPPINGS, st.sampled_from([None, 1, 3]))
def test_generated_documents_read_as_the_standard_library_reads_them(data: Any, indent: int | None) -> None:
    text = as_json(data, indent)
    source, problems = read_source(text, "x.json")
    assert not problems
    assert source.data == json.loads(text)


@given(st.text(st.sampled_from('{}[]:,"\\ \n019-+.eEtrufalsn/*#\ud800é'), max_size=30))
def test_what_is_accepted_is_what_the_standard_library_accepts(text: str) -> None:
    source, problems = read_source(text, "x.json")
    if not problems:
        assert json.loads(text.removeprefix("\ufeff")) == source.data
    else:
        assert problems[0].code in ("L101", "L103", "L105")


def test_many_lists_beside_each_other_are_not_deep() -> None:
    text = f"[{', '.join(['[{}]'] * 500)}]"
    assert problems_of(text) == []
    assert [problem.code for problem in problems_of("[" * 500 + "]" * 500)] == ["L104"]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{"a": 1, // one\n "b": 2}', 1, 10, "JSON has no comments"),
        ('{"a": 1, /* one */ "b": 2}', 1, 10, "JSON has no comments"),
        ('{"a": [1, 2,]}', 1, 12, "a comma before a closing bracket"),
        ("{'a': 1}", 1, 2, "a key needs double quotes"),
        ("{a: 1}", 1, 2, "a key needs double quotes"),
        ("{\"a\": 'x'}", 1, 7, "a text needs double quotes"),
        ('{"a": True}', 1, 7, "True is not a JSON value"),
        ('{"a": NaN}', 1, 7, "NaN is not a JSON value"),
        ('{"a": -Infinity}', 1, 7, "-Infinity is not a JSON value"),
        ('{"a": 1e999}', 1, 7, "too large for a number"),
        ('{"a": 01}', 1, 7, "unexpected '0'"),
        ('{"a": +1}', 1, 7, "+1 is not a JSON value"),
        ('{"a" 1}', 1, 6, "a ':' must follow the key"),
        ('["a" "b"]', 1, 5, "a ',' or ']' must follow"),
        ('{"a": "x\ny"}', 1, 9, "must not run over a line end"),
        ('{"a": "\\q"}', 1, 8, "\\q is not an escape"),
        ('{"a": "\x01"}', 1, 8, "U+0001 must be escaped"),
        ('{"a": "x', 1, 7, "no closing quote"),
        ('{"a": "\\ud800"}', 1, 7, "half of a surrogate pair"),
        ('{"a": [1,', 1, 10, "the text ends too early"),
        ('{"a": 1', 1, 8, "the text ends before the closing '}'"),
        ('{"a": 1} x', 1, 10, "nothing may follow the value"),
        ("", 1, 1, "the file is empty"),
    ],
)
def test_a_mistake_is_named_at_its_line_and_column(text: str, line: int, column: int, words: str) -> None:
    problem = problems_of(text)[0]
    assert problem.code == "L101"
    assert (problem.span.line, problem.span.column) == (line, column)
    assert words in problem.message


def test_a_key_written_twice_names_the_first() -> None:
    (problem,) = problems_of('{"k": 1,\n "k": 2}')
    assert (problem.code, problem.message) == ("L103", "key 'k' is written twice, first at 1:2")
    assert problem.span == (2, 2, 2, 5)


def test_comments_are_told_once_and_the_file_is_still_read() -> None:
    source, problems = read_source('{// a\n"a": 1, // b\n"b": 2,}', "x.json")
    assert source.data == {"a": 1, "b": 2}
    assert len(problems) == 2


def test_a_text_without_a_name_is_json_by_its_first_character() -> None:
    assert read_source(' {"a": 1}')[0].format == "json"
    assert read_source("a: 1")[0].format == "yaml"
    assert read_source('{"a": 1, b: yes}', "x.yaml")[0].data == {"a": 1, "b": "yes"}
