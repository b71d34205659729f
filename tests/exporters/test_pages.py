"""``workbench export``: a page that needs nothing else, the definition, a checkpoint, and rows as Parquet."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.command import run_cli
from tests.support.workspaces import CASCADE, GREETING, filled
from tests.ui.support import Story, entry, triage_story
from workbench.context.assembly import Action, Grade, Kind
from workbench.context.message import Image, Message, TextPart
from workbench.context.place import Place
from workbench.engine.journal.state import RunState
from workbench.exporters.html import run_html

EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(2)> \x1b]0;t\x07 \" onload='x'"
DATA = b"\x89PNG\r\n\x1a\nrest"
DIGEST = hashlib.sha256(DATA).hexdigest()


class _Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def hostile() -> RunState:
    """A run in which every name and every text tries to get out."""
    story = Story()
    story.emit(
        "run_started",
        session_id=EVIL,
        cascade_id=EVIL,
        cascade_file=EVIL,
        cascade_text=EVIL,
        input={EVIL: EVIL},
        options={},
        ports={},
        parent=None,
    )
    phase = story.phase(EVIL)
    turn = phase._replace(attempt=1, turn=1, call=1)
    image = Message("user", (TextPart(EVIL), Image(DIGEST, EVIL, len(DATA), 2, 2)))
    story.context(turn, [entry(Message("user", EVIL), Kind.TASK, turn), entry(image, Kind.IMAGES, turn)], strategy=EVIL)
    story.answer(turn, EVIL)
    story.tool(turn, EVIL, EVIL, EVIL, error=True)
    story.emit("warning", turn, code="x", message=EVIL)
    story.emit("check_finished", turn, check="x", name=EVIL, valid=False, reason=EVIL)
    story.end_phase(phase, EVIL, status="failed", reason=EVIL)
    story.finish(EVIL, status="failed", reason=EVIL)
    return RunState.of(story.events)


def test_hostile_text_stays_text_and_nothing_is_loaded_or_run() -> None:
    page = run_html(hostile(), {DIGEST: DATA})
    tags = _Tags(page).tags
    assert not {"script", "link", "iframe", "object", "form"} & {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    for tag, attributes in tags:
        if tag == "a":
            assert (attributes.get("href", "#") or "").startswith("#"), "the place that a link leads to has none"
        if tag == "img":
            assert (attributes["src"] or "").startswith("data:")
    assert "\x1b" not in page
    assert "default-src 'none'" in page


def test_the_page_holds_the_context_of_every_call_with_reasons_and_numbers() -> None:
    page = run_html(RunState.of(triage_story(finished=True).events), {})
    assert page.count('<h3 id="c') == 4
    (tick,) = (attributes for tag, attributes in _Tags(page).tags if tag == "input")
    assert tick == {"type": "checkbox", "id": "unfold"}
    assert "#unfold:checked" in page, "nothing unfolds all that is folded"
    assert "age 2 &gt; 1 (line 22)" in page
    assert '<tr class="masked">' in page
    assert "$0.0074" in page
    assert "4 calls" in page
    assert "1 calls" not in run_html(hostile(), {})
    assert all(f'href="#c{number}"' in page for number in range(1, 5))


def tokens_in(words: str) -> int:
    (found,) = re.findall(r"~?([\d,]+) tokens in", words)
    return int(found.replace(",", ""))


@pytest.mark.parametrize("beside", [False, True])
def test_the_tree_of_a_page_says_what_each_phase_and_call_took(*, beside: bool) -> None:
    story = triage_story(finished=True)
    if beside:
        place = Place(call=1)
        story.context(place, [entry(Message("user", "Which walk is best?"), Kind.TASK, place)])
        story.answer(place, "The first.", cost=0.0002)
    state = RunState.of(story.events)
    page = run_html(state, {})
    head = page.partition("</h1>")[2].partition("</p>")[0]
    tree = page.partition('<ol class="tree">')[2].partition("<h2")[0]
    phases = re.findall(r'<li>(?:<a href="#v|beside)(.*?)<ol>', tree)
    calls = re.findall(r'<li><a href="#c(.*)', tree)
    assert len(calls) == len(state.calls)
    assert len(phases) == len(state.visits) + beside
    assert sum(map(tokens_in, phases)) == sum(map(tokens_in, calls)) == tokens_in(head)
    assert all(re.search(r'class="took">.* out · \$0\.\d+', line) for line in (*phases, *calls))


def test_the_page_names_the_winner_of_candidates_and_marks_numbers_that_are_estimates() -> None:
    story = triage_story(finished=True)
    place = next(event.place for event in story.events if event.kind == "phase_started")
    story.emit("candidates_started", place, factor=2)
    for name in ("s0", "s1"):
        story.emit("candidate_finished", place._replace(branch=name), index=int(name[1]), status="success")
    story.emit("evaluation_finished", place, branch="s1", winner=1, reason="clearer", decided_by="a person")
    state = RunState.of(story.events)
    page = run_html(state, {})
    assert "★ s1 wins: “clearer” (a person)" in page
    assert "~" not in page.partition("The cascade")[0]
    for call in state.calls:
        call.grade = Grade.ESTIMATE
    assert re.search(r'<td class="n">~\d', run_html(state, {}))


def test_a_page_writes_times_as_everything_else_does() -> None:
    story = Story().start()
    for _ in range(70):
        story.emit("warning", code="x", message="again")
    story.finish("done")
    page = run_html(RunState.of(story.events), {})
    assert "1m 11s" in page
    assert "71.0 s" not in page


def test_an_image_stands_on_the_page_once_and_is_named_where_it_is_gone() -> None:
    state = hostile()
    assert run_html(state, {DIGEST: DATA}).count("<img ") == 1
    assert "its bytes are gone" in run_html(state, {})


def test_what_is_as_in_the_call_before_is_one_line_where_it_is_long() -> None:
    story = Story().start()
    phase = story.phase("p", max_turns=3)
    turns = [phase._replace(attempt=1, turn=n, call=1) for n in (1, 2)]
    many = [entry(Message("user", f"message {n}"), Kind.USER, turns[0]) for n in range(40)]
    story.context(turns[0], many)
    story.context(turns[1], [*many, entry(Message("user", "new"), Kind.USER, turns[1])])
    page = run_html(RunState.of(story.events), {})
    assert page.count("message 7<") == 1
    before = r"<td[^>]*>as in <a href=\"#c1\">the call before</a>"
    assert re.search(f"1–40{before}", page)
    one = many[20]
    for other in (
        one._replace(sent=Message("user", "shorter")),
        one._replace(action=Action.TRUNCATED),
        one._replace(item=replace(one.item, source="elsewhere")),
    ):
        story = Story().start()
        story.phase("p", max_turns=3)
        story.context(turns[0], many)
        story.context(turns[1], [*many[:20], other, *many[21:]])
        page = run_html(RunState.of(story.events), {})
        assert re.search(f"1–20{before}", page)
        assert re.search(f"22–40{before}", page)


# The command.


@pytest.fixture
def folder(folder: Path) -> Path:
    filled(folder, GREETING)
    assert run_cli("run", "greet.yaml", "--session", "greet", "-q").code == 0
    return folder


def test_the_definition_comes_out_as_it_ran(folder: Path) -> None:
    (folder / "greet.yaml").write_text(CASCADE + "# changed since\n")
    assert run_cli("export", "greet", "--as", "cascade").out == CASCADE
    assert run_cli("export", "greet", "--as", "html", "-o", "run.html").code == 0
    assert "Hello, Ada." in (folder / "run.html").read_text()


def test_a_checkpoint_says_where_the_run_stands_and_what_each_phase_said(folder: Path) -> None:
    assert run_cli("export", "greet", "--as", "checkpoint", "-o", "point").code == 0
    names = sorted(path.relative_to(folder / "point").as_posix() for path in (folder / "point").rglob("*.*"))
    parts = ("prompt.md", "response.md", "status.json")
    assert names == sorted(
        ["cascade.yaml", "checkpoint.json", "manifest.json", *(f"{p}/{n}" for p in ("answer", "look") for n in parts)]
    )
    point = json.loads((folder / "point" / "checkpoint.json").read_text())
    assert (point["current_node"], point["completed_nodes"]) == ("answer", ["look", "answer"])
    assert point["context"] == {"outcome": "success", "last_stage": "answer", "last_response": "Hello, Ada."}
    assert (folder / "point" / "look" / "prompt.md").read_text().startswith("Read notes.txt for Ada.")
    status: dict[str, Any] = json.loads((folder / "point" / "look" / "status.json").read_text())
    assert (status.pop("started") < status.pop("finished"), status) == (
        True,
        {
            "outcome": "success",
            "preferred_next_label": "answer",
            "suggested_next_ids": ["answer"],
            "context_updates": {},
            "notes": "All is read.",
            "failure_reason": "",
            "status": "success",
            "kind": "llm",
            "model": "google/gemini-2.5-flash-lite",
        },
    )
    again = run_cli("export", "greet", "--as", "checkpoint", "-o", "point")
    assert (again.code, "already" in again.err) == (2, True)


def test_parquet_holds_the_rows_of_the_run_and_needs_a_file(folder: Path) -> None:
    refused = run_cli("export", "greet", "--as", "parquet")
    assert (refused.code, refused.err) == (2, "error: parquet goes to a file (--output FILE)\n")
    assert run_cli("run", "greet.yaml", "--input", '{"name": "Bob"}', "--session", "other", "-q").code == 0
    assert run_cli("export", "greet", "--as", "parquet", "-o", "rows.parquet").code == 0
    table = import_module("pyarrow.parquet").read_table(folder / "rows.parquet")
    assert set(table.column("session_id").to_pylist()) == {"greet"}
    assert table.num_rows > 10
    assert not list(folder.glob(".rows*"))
