"""How candidates are drawn while a person chooses among them, as the file says it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tests.engine.support import call, play
from tests.ui.bench import bench
from tests.ui.test_candidates import HUMAN, told
from tests.ui.test_candidates import REPLIES as SCRIPTED
from workbench.engine.contracts import ToolImage, ToolResult
from workbench.engine.journal.state import RunState
from workbench.tui.screens.candidates import CandidatesScreen
from workbench.tui.screens.form import FormDialog
from workbench.views.candidate_docs import choosing_doc
from workbench.views.candidates import CandidateRows
from workbench.views.picture import Gallery


def choosing(human_eval: dict[str, Any], outputs: list[str], at: int, verdict: str = "") -> tuple[str, str]:
    """The list of candidates and what stands below it, while a person chooses, alone or after an evaluator."""
    soundings = {"factor": len(outputs), "max_parallel": 1, "human_eval": human_eval}
    soundings |= {"evaluator": "hybrid", "llm_prefilter": 2} if verdict else {"evaluator": "human"}
    soundings |= {"mutation_mode": "augment", "mutations": ["Be brief."]}
    phase = {"name": "generate", "instructions": "Write.", "soundings": soundings}
    answers = [told(text, 0.1, 10) for text in (*outputs, *([verdict] if verdict else ()))]
    events = play({"cascade_id": "c", "phases": [phase]}, answers).events
    asked = next(i for i, event in enumerate(events) if event.kind == "human_asked")
    state = RunState.of(events[: asked + 1])
    rows = CandidateRows(state, state.contests.all[0])
    one = rows.by_index(at)
    assert one is not None
    doc = choosing_doc(rows.contest, one, rows)
    doc.lay_out(80)
    below = [doc.row(i, 80).text for i in range(len(doc))]
    title = "".join(text for text, _ in doc.title)
    return "\n".join(rows.row(i, 160).text for i in range(len(rows))), "\n".join([title, *below])


def test_candidates_are_shown_as_the_file_says_while_a_person_chooses() -> None:
    texts = ["# Lamp\n\n- bright", "# Lamp\n\n- dark", "<p>third &amp; last</p>"]
    listed, below = choosing({"presentation": "tabbed", "preview_render": "markdown"}, texts, 1)
    assert "Be brief." in listed
    assert " s0  s1  s2 " in below
    assert "• dark" in below
    assert "↑ 3 of 3 ↓" in choosing({"presentation": "carousel", "preview_render": "html"}, texts, 2)[1]
    assert "third & last" in choosing({"preview_render": "html"}, texts, 2)[1]
    assert "− - bright" in choosing({"presentation": "diff"}, texts, 1)[1]
    listed, below = choosing({"show_metadata": False, "show_mutations": False}, texts, 1)
    assert not any(word in listed + below for word in ("Be brief", "gpt-4o", "0.1", "tokens"))


def test_who_chooses_is_told_which_candidates_the_evaluator_counts_by_its_own_numbers() -> None:
    verdict = '{"winner": 2, "reason": "attempt 2 is short", "scores": {"1": 10, "2": 90, "3": 50}}'
    listed, _ = choosing({}, ["One lamp", "Lamp", "A lamp"], 1, verdict)
    assert 'the evaluator would pick s1: "attempt 2 is short"' in listed
    assert "the evaluator calls s0, s1, s2 attempts 1 to 3" in listed


def test_a_choice_shows_as_much_of_each_output_as_the_file_says_and_what_it_cost() -> None:
    below = choosing({"max_preview_length": 4}, ["bright and light", "x"], 0)[1]
    assert "output  the first 4 of 16 characters" in below
    assert "brig…" in below
    assert "bright" not in below
    assert "cost ~$0.1" in below
    beside = choosing({"max_preview_length": 4, "presentation": "diff"}, ["bright and light", "bring it"], 1)[1]
    assert "bring" not in beside
    assert "brig" in beside


def test_pictures_that_candidates_made_are_drawn_where_the_form_asks_for_them_or_leaves_it_open() -> None:
    def draw(x: str) -> ToolResult:
        return ToolResult("drawn", images=(ToolImage(x.encode(), "image/png", 64, 32),))

    def asked_for(render: str) -> tuple[str, str]:
        """The document of the second candidate, and the digest of the picture that it wants drawn."""
        human = {"preview_render": render}
        soundings = {"factor": 2, "max_parallel": 1, "evaluator": "human", "human_eval": human}
        phase = {"name": "p", "instructions": "Draw.", "tackle": ["draw"], "soundings": soundings}
        replies = [call("draw", x="one"), "first", call("draw", x="two"), "second"]
        events = play({"cascade_id": "c", "phases": [phase]}, replies, tools={"draw": draw}).events
        asked = next(i for i, event in enumerate(events) if event.kind == "human_asked")
        state, gallery = RunState.of(events[: asked + 1]), Gallery(enabled=True)
        rows = CandidateRows(state, state.contests.all[0])
        one = rows.by_index(1)
        assert one is not None
        doc = choosing_doc(rows.contest, one, rows, gallery)
        doc.lay_out(80)
        text = "\n".join(doc.row(i, 80).text for i in range(len(doc)))
        wanted = gallery.next()
        return text, wanted.digest if wanted else ""

    for render in ("image", "auto"):
        text, wanted = asked_for(render)
        assert "[image/png 64×32 3 bytes" in text
        assert wanted == hashlib.sha256(b"two").hexdigest()
    assert asked_for("code")[1] == ""


async def test_a_form_that_is_asked_for_behind_a_choice_is_shown_as_one(tmp_path: Path) -> None:
    form = "human_input: {type: form, fields: [{name: date, type: date}]}"
    text = HUMAN.replace("    soundings:\n", f"    {form}\n    soundings:\n", 1)

    async with bench(tmp_path, text=text, replies=SCRIPTED, given={"topic": "hits"}) as it:
        await it.press("r")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "nobody was asked")
        await it.press("c", "enter")
        await it.until(lambda: isinstance(it.app.screen, FormDialog), "no form came")
