"""Every table and line of the command line on a terminal of 40 columns; answers in SQL too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.test_output import Terminal
from tests.support.command import run_cli
from tests.support.workspaces import CASCADE, REPLIES, alone
from workbench.cli.main import main
from workbench.cli.printer import Printer
from workbench.store.index.table import Column, ResultTable
from workbench.views.result import AnswerView
from workbench.views.value import width_of

COMMANDS = (
    ("runs",),
    ("runs", "--fields"),
    ("show", "s"),
    ("tree", "s"),
    ("context", "s"),
    ("context", "s", "--text"),
    ("diff", "s", "--strategies", "selective", "mask(after=1)"),
    ("sweep", "s", "--strategy", "mask(after=1..3)"),
    ("candidates", "c", "--plot"),
    ("analyze", "tries.yaml", "--min-runs", "1"),
    ("config", "show"),
    ("graph", "greet.yaml"),
    ("memory",),
    ("test", "list"),
)
TRIES = """\
cascade_id: tries
phases:
  - name: write
    instructions: Write.
    soundings: {factor: 3, evaluator_instructions: Which is best?, mutation_mode: augment, mutate: true}
"""
JUDGED = """\
replies:
  write:
    - text: A text.
    - {aside: 1, text: '{"winner": 2, "reason": "shorter"}'}
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run of two phases, one with candidates, and a frozen one."""
    folder = tmp_path_factory.mktemp("narrow")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder, folder / "work")
        for name, text in {
            "greet.yaml": CASCADE,
            "greet.replies.yaml": REPLIES,
            "tries.yaml": TRIES,
            "tries.replies.yaml": JUDGED,
        }.items():
            Path(name).write_text(text)
        Path("notes.txt").write_text("Ada likes short greetings.\n" * 9)
        assert run_cli("run", "greet.yaml", "--session", "s").code == 0
        assert run_cli("run", "tries.yaml", "--session", "c").code == 0
        assert run_cli("test", "freeze", "s", "--name", "n").code == 0
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal_but_for_one_long_word(
    command: tuple[str, ...], stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(monkeypatch, stored, stored / "work")
    written = Terminal()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", written)
    monkeypatch.setattr(sys, "stderr", written)
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0
    lines = written.bare()
    assert lines
    assert [line for line in lines if width_of(line) > 40 and " " in line.strip()] == []


def test_a_question_in_sql_gives_a_block_for_each_row_where_no_table_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    table = ResultTable(
        (Column("session_id", "String"), Column("text", "String"), Column("cost", "Nullable(Float64)")),
        (("a-session-of-24-characters", "many words " * 4, 0.25), ("b", "日本", None)),
    )
    written = {}
    for width in (80, 30):
        monkeypatch.setenv("COLUMNS", str(width))
        stream = Terminal()
        Printer(stream=stream).show(AnswerView(table).blocks())
        written[width] = stream.bare()
    assert written[80][0].split() == ["session_id", "text", "cost"]
    assert written[80][2].split() == ["b", "日本", "NULL"]
    assert written[30][:3] == ["row 1", "session_id", "  a-session-of-24-characters"]
    assert "cost        $0.2500" in written[30]
    assert written[30][-1] == written[80][-1] == "(2 rows)"


def test_a_text_folds_between_words_below_its_own_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream, address = Terminal(), "https://example.org/" + "a" * 40
    prose = "The request failed because the server was busy.\n\n  - and said so, twice, in the very same words"
    Printer(stream=stream).block(f"{prose}\nsee {address} for more\n{'日本語の文。' * 5}", indent="  ")
    assert stream.bare() == [
        *("  The request failed because the server", "  was busy.", ""),
        *("    - and said so, twice, in the very", "    same words"),
        *("  see", f"  {address}", "  for more"),
        *("  日本語の文。日本語の文。日本語の文。日", "  本語の文。日本語の文。"),
    ]
