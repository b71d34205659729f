"""Nothing that is left after cleaning can move a terminal."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.language.clean import clean, clean_line

DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters()))
def test_no_control_character_survives(text: str) -> None:
    cleaned = clean(text)
    assert not DANGEROUS.search(cleaned)
    assert len(cleaned) == len(text)
    assert clean(cleaned) == cleaned
    cleaned.encode("utf-8")


def test_an_escape_sequence_becomes_its_picture() -> None:
    assert clean("\x1b]52;c;eA==\x07") == "␛]52;c;eA==␇"
    assert clean("a\x7fb\x9bc\u202ed\ud800e") == "a␡b�c�d�e"


def test_lines_and_tabs_stay() -> None:
    assert clean("a\n\tb\r\n") == "a\n\tb␍\n"


def test_text_without_control_characters_is_handed_back_itself() -> None:
    text = "plain text é 😀\n" * 1000
    assert clean(text) is text


def test_one_line_shows_its_breaks_and_is_cut() -> None:
    assert clean_line("a\n\tb\u2028c") == "a␊␉b�c"
    assert clean_line("abcdef", 4) == "abc…"
    assert clean_line("abcd", 4) == "abcd"
