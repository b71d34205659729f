"""Where things stand: keys, values, what is missing, and characters inside texts."""

from __future__ import annotations

import pytest

from tests.language.documents import PHASES
from workbench.language.problem import Path, TextSpan
from workbench.language.read.source import Source
from workbench.language.read.text import read_source


def source_of(text: str, file: str = "x.yaml") -> Source:
    return read_source(text, file)[0]


def test_a_key_and_its_value_have_each_their_place() -> None:
    source = source_of(PHASES)
    assert source.key_span(("phases", 0, "rules", "max_turns")) == TextSpan(7, 13, 7, 22)
    assert source.span(("phases", 0, "rules", "max_turns")) == TextSpan(7, 24, 7, 25)


def test_what_is_missing_has_the_place_of_its_nearest_ancestor() -> None:
    source = source_of(PHASES)
    path: Path = ("phases", 0, "rules", "max_attempts")
    assert not source.has(path)
    assert source.span(path) == source.span(("phases", 0, "rules"))
    assert source.span(("phases", 7, "name")) == source.span(("phases",))
    with pytest.raises(KeyError):
        source.offsets(path)


def test_a_short_form_has_the_place_of_what_it_stands_for() -> None:
    source = source_of(PHASES)
    assert source.span(("phases", 0, "handoffs", 1, "target")) == TextSpan(11, 9, 11, 14)


def test_a_block_ends_with_its_last_value() -> None:
    source = source_of("a:\n  b: 1 # one\n  c: |\n    x\n\n# note\nd: 2\n")
    assert source.text[slice(*source.offsets(("a",)))] == "b: 1 # one\n  c: |\n    x\n"
    assert source.text[slice(*source.offsets(()))].endswith("d: 2")


def test_an_alias_has_its_own_place() -> None:
    source = source_of("a: &x [1]\nb: *x\nc: [*x, 2, *x]\n")
    assert source.span(("b",)) == TextSpan(2, 4, 2, 6)
    assert source.span(("c", 0)) == TextSpan(3, 5, 3, 7)
    assert source.span(("c", 1)) == TextSpan(3, 9, 3, 10)
    assert source.span(("c", 2)) == TextSpan(3, 12, 3, 14)
    assert source.span(("b", 0)) == TextSpan(1, 8, 1, 9)
    assert source.span(()) == TextSpan(1, 1, 3, 15)


def test_a_merged_key_has_the_place_where_it_is_written() -> None:
    source = source_of("base: &b\n  x: 1\nuse:\n  <<: *b\n  y: 2\n")
    assert source.has(("use", "x"))
    assert source.span(("use", "x")) == TextSpan(2, 6, 2, 7)
    spot = source.spot(("use", "x"))
    assert spot is not None
    assert spot.shared


@pytest.mark.parametrize(
    ("text", "line", "column", "place"),
    [
        ("t: ab{{ x }}\n", 1, 6, (1, 9)),
        ("t: |\n  one\n  {{ two }}\n", 2, 4, (3, 6)),
        ("t: |2\n    one\n  two\n", 1, 3, (2, 5)),
        ("t: >-\n  one\n  {{ two }}\n", 1, 8, (3, 6)),
        ("t: >\n  one\n\n  two\n", 2, 1, (4, 3)),
        ('t: "a\\n{{ b }}"\n', 2, 4, (1, 11)),
        ('t: "a\\u00e9b"\n', 1, 3, (1, 12)),
        ('t: "one\n\n  two"\n', 2, 2, (3, 4)),
        ('t: "one \\\n  two"\n', 1, 6, (2, 4)),
        ("t: 'it''s x'\n", 1, 6, (1, 11)),
        ("t: one\n  two\n", 1, 5, (2, 3)),
        ("- t: &a !!str |\n    x\n    y\n", 2, 1, (3, 5)),
    ],
)
def test_a_position_in_a_text_is_found_in_the_file(text: str, line: int, column: int, place: tuple[int, int]) -> None:
    source = source_of(text)
    path: Path = (0, "t") if text.startswith("-") else ("t",)
    assert source.inner_span(path, line, column)[:2] == place


def test_escapes_of_json_are_undone() -> None:
    source = source_of('{"t": "a\\n\\"{{ b }}\\ud83d\\ude00c"}', "x.json")
    assert source.inner_span(("t",), 2, 5).column == source.text.index("b }}") + 1
    assert source.inner_span(("t",), 2, 10).column == source.text.index('c"') + 1


def test_a_position_beside_the_text_gives_the_text() -> None:
    source = source_of("t: |\n  x\n")
    assert source.inner_span(("t",), 9, 9) == source.span(("t",))
    assert source.inner_span(("nothing",), 1, 1) == source.span(())


def test_a_stretch_of_characters_has_its_length() -> None:
    source = source_of("t: |\n  {{ inptu.x }}\n")
    assert source.inner_span(("t",), 1, 4, 5) == TextSpan(2, 6, 2, 11)


def test_json_in_a_file_of_yaml_is_read_as_yaml_unless_yaml_cannot_read_it() -> None:
    sound, odd = '{"cascade_id": "x"}', '{"cascade_id": "\\ud83d\\ude00"}'
    assert [read_source(text, "x.yaml")[0].format for text in (sound, odd)] == ["yaml", "json"]
