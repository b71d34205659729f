"""What goes to a terminal, to a pipe and to a program."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.cli.output import Cell, Column, Printer, write_json

COLUMNS = [Column("name", flexible=True), Column("tokens", right=True)]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


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


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_obey_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = Terminal()
    Printer(stream=coloured).line(Cell("failed", "bad"))
    assert "\x1b[" in coloured.getvalue()
    monkeypatch.setenv(variable, value)
    bare = Terminal()
    Printer(stream=bare).line(Cell("failed", "bad"))
    assert bare.getvalue() == "failed\n"


def test_plain_has_no_colours_in_a_terminal() -> None:
    stream = Terminal()
    Printer(plain=True, stream=stream).line(Cell("failed", "bad"))
    assert stream.getvalue() == "failed\n"


@settings(max_examples=60, deadline=None)
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
    write_json(value, lines=True)
    written = capsys.readouterr().out
    assert written.isascii()
    assert "\x1b" not in written
    assert json.loads(written) == value
