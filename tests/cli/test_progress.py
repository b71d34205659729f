"""The progress of a run on a terminal: what moves, and when it stands still."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from workbench.cli.archive_options import archive_words, done_words
from workbench.cli.batch_progress import progress_words
from workbench.cli.progress import Progress
from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.journal.event import Event
from workbench.workspace.archive.workers import ArchiveProgress
from workbench.workspace.batch.running import BatchProgress

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
"""The cursor is hidden while a line moves."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        ({}, "0/1,200 runs · $0.0000"),
        ({"done": 300, "earlier": 300, "spent": 0.5}, "300/1,200 runs · $0.5000"),
        ({"done": 300, "earlier": 300, "failed": 2, "spent": 0.5}, "300/1,200 runs · 2 failed · $0.5000"),
        ({"done": 300, "earlier": 300, "predicted": 0.5}, "300/1,200 runs · ~$0.5000"),
        ({"done": 300, "earlier": 300, "spent": 0.5, "estimated": True}, "300/1,200 runs · ~$0.5000"),
        ({"done": 300, "earlier": 300, "spent": 0.5, "unpriced": 1}, "300/1,200 runs · ≥$0.5000"),
    ],
)
def test_the_line_of_a_batch_says_what_was_counted(counted: dict[str, Any], words: str) -> None:
    assert progress_words(BatchProgress(1200, **counted)) == words


def test_the_moving_line_stands_still_while_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress() as progress:
        with progress.person():
            asked = terminal.getvalue()
        answered = terminal.getvalue().removeprefix(asked)
    assert asked.rfind(SHOWN) > asked.rfind(HIDDEN) >= 0
    assert HIDDEN in answered


AT, CANDIDATE = Place("", "look", 2, 2, 3, 1), Place("s0", "look", 1)
LINES: list[tuple[str, Place, dict[str, Any], str]] = [
    ("phase_started", Place("", "look", 1), {"model": "m"}, "look           phase  m"),
    ("phase_started", Place("", "look", 2), {"kind": "deterministic"}, "look           phase  no model, visit 2"),
    ("context_assembled", AT, {"tokens_sent": 90, "tokens_full": 120}, "look:3 try 2   sends  90 of 120 tokens"),
    (
        "context_assembled",
        AT,
        {"tokens_sent": 9, "tokens_full": 9, "purpose": "evaluation", "problems": [[1, "no system"], [2, "x"]]},
        "look:3 try 2   sends  9 tokens  evaluation  2 broken: no system",
    ),
    (
        "call_finished",
        AT,
        {
            "model": "m",
            "usage": {"input": 1000, "cached": 5, "output": 2},
            "duration_s": 1.5,
            "cost": 0.5,
            "cost_grade": "billed",
        },
        "look:3 try 2   call   m  1.5s  in 1,000  cached 5  out 2  $0.5000",
    ),
    ("call_finished", AT, {"usage": {"output": 2}, "cost": 0.5}, "look:3 try 2   call     –  out 2  ~$0.5000"),
    (
        "call_failed",
        AT,
        {"try": 2, "error": {"kind": "rate_limit", "message": "slow\ndown"}, "retry_in": 2.0},
        "look:3 try 2   call   try 2 failed, rate limit: slow␊down, tries again in 2.0s",
    ),
    ("call_failed", AT, {"error": {"kind": "server"}}, "look:3 try 2   call   try 1 failed, server: "),
    (
        "tool_finished",
        AT,
        {"tool": "t", "duration_s": 0.5, "text": "x" * 1200},
        "look:3 try 2   tool   t  0.5s  1,200 characters",
    ),
    (
        "tool_finished",
        AT,
        {"tool": "t", "cached": True, "is_error": True},
        "look:3 try 2   tool   t  from the cache  error  ",
    ),
    ("child_started", AT, {"cascade_id": "c", "session_id": "s_sub_0"}, "look:3 try 2   starts c  s_sub_0"),
    ("child_finished", AT, {"session_id": "s_sub_0", "status": "failed"}, "look:3 try 2   child  s_sub_0  failed"),
    ("check_finished", AT, {"name": "polite", "valid": True}, "look:3 try 2   check  polite  passed"),
    (
        "check_finished",
        AT,
        {"check": "schema", "valid": False, "reason": "no a"},
        "look:3 try 2   check  schema  failed: no a",
    ),
    ("context_selected", AT, {"picked": [1], "offered": [1, 2]}, "look:3 try 2   select  1 of 2 messages"),
    ("context_selected", AT, {"fault": "no JSON"}, "look:3 try 2   select  the heuristic instead: no JSON"),
    (
        "candidates_started",
        CANDIDATE,
        {"factor": 3, "max_parallel": 2},
        "s0/look        tries  3 candidates, 2 at once",
    ),
    ("candidates_started", CANDIDATE, {"factor": 1, "step": 2}, "s0/look        refine  step 2, 1 candidate"),
    ("evaluation_finished", AT, {"winner": None}, "look:3 try 2   joins  the outputs of all that passed"),
    ("evaluation_finished", AT, {"winner": 1, "reason": "clearer"}, "look:3 try 2   picks  candidate s1: clearer"),
    ("evaluation_finished", AT, {"winner": 0, "decided": False}, "look:3 try 2   keeps  candidate s0, undecided"),
    ("route_chosen", AT, {"to": "tell", "rule": "route_to"}, "look:3 try 2   route  tell (route_to)"),
    ("route_chosen", AT, {"to": ""}, ""),
    ("warning", Place(), {"message": "mind"}, "               warns  mind"),
    ("phase_finished", AT, {"status": "success"}, ""),
    ("phase_finished", AT, {"status": "failed", "check": "call"}, ""),
    ("phase_finished", AT, {"status": "failed", "reason": "no"}, "look:3 try 2   phase  failed: no"),
    ("phase_finished", AT, {"status": "blocked", "reason": "blocked"}, "look:3 try 2   phase  blocked"),
    ("state_set", AT, {"key": "k"}, ""),
]


@pytest.mark.parametrize(("kind", "place", "data", "line"), LINES)
def test_an_event_is_a_line(
    capsys: pytest.CaptureFixture[str], kind: str, place: Place, data: dict[str, Any], line: str
) -> None:
    with Progress() as progress:
        progress.event(Event(1, "2026-01-01T00:00:00.000000Z", "r", kind, place, data))
    said = capsys.readouterr().err
    assert said[len("   0.0s  ") :].rstrip() == line.rstrip()


@pytest.mark.parametrize(
    ("kind", "data", "line"),
    [
        ("unsaved", {"message": "the disk is full"}, "look:3 try 2   the disk is full"),
        ("retry", {"try": 2, "seconds": 1.0}, ""),
        ("waiting", {"try": 2}, ""),
        ("other", {"message": "x"}, ""),
    ],
)
def test_a_notice_is_a_line_if_it_is_for_people(
    capsys: pytest.CaptureFixture[str], kind: str, data: dict[str, Any], line: str
) -> None:
    with Progress() as progress:
        progress.notice(Notice(kind, AT, data))
    assert capsys.readouterr().err[len("   0.0s  ") :].rstrip("\n") == line


def test_what_was_told_before_is_not_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    warn = Event(5, "2026-01-01T00:00:00.000000Z", "r", "warning", Place(), {"message": "mind"})
    with Progress(resumed=True) as progress:
        progress.event(warn)
        progress.event(replace(warn, seq=6, kind="run_resumed"))
        progress.event(warn)
        progress.event(replace(warn, seq=7))
    assert capsys.readouterr().err.count("mind") == 1
    with Progress(quiet=True) as progress:
        progress.event(warn)
    assert capsys.readouterr().err == ""


def test_the_line_of_an_archive_says_what_is_done_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    some = ArchiveProgress(1000, 300, 100, 90.0)
    assert (archive_words(some), done_words(some)) == ("300/1,000 runs · 20.0/s · 35.0s left", "300 of 1,000 runs")
    assert (archive_words(ArchiveProgress(1, began=90.0)), done_words(ArchiveProgress(1))) == ("0/1 run", "")
    assert archive_words(ArchiveProgress(2, 2, 0, 90.0, "file")) == "2/2 files · 0.2/s"
    assert progress_words(BatchProgress(1000, 300, 100, 90.0)) == "300/1,000 runs · 20.0/s · $0.0000 · 35.0s left"
