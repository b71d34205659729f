"""What goes to a terminal, to a pipe and to a program."""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench
from workbench.cli.printer import STYLES, Printer, write_json, write_json_list
from workbench.views.value import Cell, Column, width_of

COLUMNS = [Column("name", flexible=True), Column("tokens", right=True)]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def bare(self) -> list[str]:
        """The lines without what makes them bold or coloured."""
        return re.sub(r"\x1b\[[\d;]*m", "", self.getvalue()).splitlines()


def table(printer: Printer, stream: io.StringIO, *rows: tuple[str, str]) -> list[str]:
    printer.table(COLUMNS, rows)
    return stream.getvalue().splitlines()


def test_columns_are_aligned_and_numbers_stand_right() -> None:
    stream = io.StringIO()
    assert table(Printer(stream=stream), stream, ("intake", "412"), ("triage", "4,748")) == [
        "name    tokens",
        "intake     412",
        "triage   4,748",
    ]


def test_wide_letters_take_two_columns() -> None:
    stream = io.StringIO()
    lines = table(Printer(stream=stream), stream, ("日本", "1"), ("abcd", "2"))
    assert lines[1:] == ["日本       1", "abcd       2"]


def test_a_pipe_gets_every_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    assert "x" * 300 in table(Printer(stream=stream), stream, ("x" * 300, "1"))[1]


def test_a_narrow_terminal_cuts_only_what_may_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    line = table(Printer(stream=stream), stream, ("x" * 300, "123,456,789"))[1]
    assert len(line) == 40
    assert line.endswith("…  123,456,789")


RUNS = [
    Column("session", flexible=True, least=12),
    Column("took", right=True, leaves=1),
    Column("note", flexible=True, leaves=2),
    Column("cost", right=True),
]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (60, ["session", "a-long-session-name-1f3a  12.3s  a long note  $1,234.5678"]),
        (50, ["session", "a-long-session-n…  12.3s  a long note  $1,234.5678"]),
        (44, ["session", "a-long-session-na…  a long note  $1,234.5678", "too narrow for: took (--plain shows all)"]),
        (30, ["session", "a-long-session-n…  $1,234.5678", "too narrow for: took, note", "  (--plain shows all)"]),
    ],
)
def test_columns_give_way_by_importance_and_are_named(
    monkeypatch: pytest.MonkeyPatch, width: int, lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    Printer(stream=stream).table(RUNS, [("a-long-session-name-1f3a", "12.3s", "a long note", "$1,234.5678")])
    found = stream.bare()
    assert [found[0].split()[0], *found[1:]] == lines


def test_a_column_without_content_leaves_first_and_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    Printer(stream=stream).table(RUNS, [("a-long-session-name-1f3a", "", "", "$1,234.5678")])
    assert "too narrow" not in stream.getvalue()
    assert "took" not in stream.getvalue()


@given(
    st.lists(st.sampled_from(["412", "a", "日本語", "x" * 50, "two words", ""]), min_size=4, max_size=4),
    st.integers(20, 90),
)
def test_no_row_of_a_table_is_wider_than_the_terminal(fields: list[str], width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("NO_COLOR", "1")
        stream = Terminal()
        Printer(stream=stream).table(RUNS, [fields])
    assert max(width_of(line) for line in stream.bare()) <= width


def test_a_long_line_is_folded_between_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    Printer(stream=stream).line("started  2026-01-31 09:00:07   took ", Cell("12.3s", "ok"), "   model offline")
    assert stream.getvalue() == "started  2026-01-31 09:00:07\n  took \x1b[32m12.3s\x1b[0m   model offline\n"


def test_a_word_that_is_longer_than_a_line_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    Printer(stream=stream).line("see " + "x" * 50 + " for more")
    assert stream.bare() == ["see", "  " + "x" * 50, "  for more"]


def test_the_texts_below_rows_leave_the_table_its_one_head() -> None:
    stream = io.StringIO()
    Printer(stream=stream).table(COLUMNS, [("a", "1"), ("b", "22")], below=("one\ntwo", ""))
    assert stream.getvalue().splitlines() == ["name  tokens", "a          1", "    one", "    two", "b         22"]


@pytest.mark.parametrize(
    ("variable", "value", "written"),
    [
        ("NO_COLOR", "", "\x1b[31m\x1b[1mfailed\x1b[0m\x1b[32mdone\x1b[0m\n"),
        ("NO_COLOR", "1", "\x1b[1mfailed\x1b[0mdone\n"),
        ("TERM", "dumb", "faileddone\n"),
    ],
)
def test_colours_obey_the_environment_and_bold_stays(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, written: str
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(variable, value)
    stream = Terminal()
    Printer(stream=stream).line(Cell("failed", "error"), Cell("done", "ok"))
    assert stream.getvalue() == written


@pytest.mark.parametrize(
    ("value", "no_color", "written"),
    [("1", "", "\x1b[32mdone\x1b[0m"), ("0", "", "done"), ("", "", "done"), ("1", "1", "done")],
)
def test_force_color_colours_what_is_piped_and_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch, value: str, no_color: str, written: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", value)
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = io.StringIO()
    Printer(stream=stream).line(Cell("done", "ok"), " x" * 100)
    assert stream.getvalue() == written + " x" * 100 + "\n"


NAMES_A_STYLE = ("Cell", "talk")


def test_every_style_that_is_named_has_its_colour() -> None:
    """A word that is none would be printed as plain text, without a fault."""
    named = dict[str, str]()
    for file in Path(workbench.__file__).parent.rglob("*.py"):
        text = file.read_text("utf-8")
        if not any(f"{name}(" in text for name in NAMES_A_STYLE):  # Most files name none, and take a second to parse.
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in NAMES_A_STYLE:
                given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg in ("token", "style"))]
                either = [
                    one for style in given for one in (getattr(style, "body", style), getattr(style, "orelse", 0))
                ]
                styles = [one.value for one in either if isinstance(one, ast.Constant)]
                named |= {str(style): f"{file.name}:{call.lineno}" for style in styles}
    assert {"error", "warning", "ok", "dim"} <= named.keys()
    assert {style: at for style, at in named.items() if style not in {*STYLES, "", "plain"}} == {}


def test_plain_has_no_colours_in_a_terminal() -> None:
    stream = Terminal()
    Printer(plain=True, stream=stream).line(Cell("failed", "error"))
    assert stream.getvalue() == "failed\n"


@given(st.text(), st.text())
def test_no_text_can_steer_the_terminal(first: str, second: str) -> None:
    stream = Terminal()
    printer = Printer(plain=True, stream=stream)
    printer.line(first)
    printer.table(COLUMNS, [(first, second)])
    printer.block(second)
    written = stream.getvalue()
    assert not any(ord(c) < 0x20 and c not in "\n\t" for c in written)
    assert not any(0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in written)


def test_json_is_ascii_and_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"text": "\x1b[31m é \u202e \ud800"}
    write_json(value)
    written = capsys.readouterr().out
    assert written.isascii()
    assert "\x1b" not in written
    assert json.loads(written) == value


@pytest.mark.parametrize("values", [[], [{"a": [1, {"b": "one\ntwo"}], "c": {}}, [], None, "\u2028"]])
def test_a_list_of_json_is_one_document_whose_values_are_written_as_they_come(
    values: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[str] = []

    def each() -> Iterator[object]:
        for number, value in enumerate(values):
            written.append(capsys.readouterr().out)
            assert bool(written[-1]) == bool(number), "a value is made when the one before it is written"
            yield value

    write_json_list(each())
    assert "".join(written) + capsys.readouterr().out == json.dumps(values, indent=2) + "\n"
