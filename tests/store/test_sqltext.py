"""SQL as tokens: what is inside strings and comments is left alone, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.store.sqltext import BadSql, one_statement, tokens

PIECES = [
    "'a;b'",
    '"x;y"',
    "`z;`",
    "-- c ;\n",
    "/* ; */",
    "$$;$$",
    "$t$ ; $t$",
    "# d ;\n",
    "'it''s'",
    "'\\';'",
    "x",
    "1",
    " ",
]


@given(st.text(alphabet="abAB_019 ;'\"`$#/*-\\\n\u2018\u2019é", max_size=40))
def test_the_pieces_together_are_the_text_or_it_is_refused(text: str) -> None:
    try:
        found = list(tokens(text))
    except BadSql:
        return
    assert "".join(token.text for token in found) == text


@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_a_semicolon_inside_strings_and_comments_ends_nothing(pieces: list[str]) -> None:
    inside = " ".join(pieces)
    assert one_statement(f"SELECT {inside} FROM All_Data ;").startswith(f"SELECT {inside} FROM all_data")
    with pytest.raises(BadSql, match="one statement"):
        one_statement(f"SELECT {inside} ; SELECT 1")


def test_the_two_magic_names_are_lowered_outside_strings_and_comments_alone() -> None:
    assert one_statement("SELECT 'ALL_DATA' FROM ALL_DATA a JOIN All_Evals e -- ALL_DATA") == (
        "SELECT 'ALL_DATA' FROM all_data a JOIN all_evals e"
    )
    assert one_statement("SELECT ALL_DATA_2, `ALL_DATA`, Role FROM x") == "SELECT ALL_DATA_2, `ALL_DATA`, Role FROM x"


@pytest.mark.parametrize("sql", ["SELECT 'open", 'SELECT "open', "SELECT `open", "SELECT /* open", "SELECT $$open"])
def test_what_is_not_closed_is_named_with_its_line(sql: str) -> None:
    with pytest.raises(BadSql, match=r"line 2: .+ is not closed"):
        one_statement("\n" + sql)


@pytest.mark.parametrize("sql", ["", " ", ";", "-- x", "/* x */ ;"])
def test_nothing_is_no_statement(sql: str) -> None:
    with pytest.raises(BadSql, match="no statement"):
        one_statement(sql)
