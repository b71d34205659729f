"""The Candidates screen: what ran side by side, who won and why, and the person's choice."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from tests.engine.support import Played, call, play
from tests.store.examples import candidate_run
from tests.ui.bench import Bench, bench, screen_text
from tests.ui.snapshot import check_sizes
from workbench.analysis.ranking import RankedCandidate
from workbench.context.place import Place
from workbench.engine.contracts import Answer, Notice, ValidatorVerdict
from workbench.engine.journal.candidate_rounds import Entrant
from workbench.engine.journal.state import RunState
from workbench.engine.journal.usage import Usage
from workbench.tui.commands import calls_found
from workbench.tui.screens.candidates import CandidatesScreen
from workbench.tui.screens.dialog import Dialog
from workbench.views.candidate_docs import beside, candidate_doc, evaluation_doc
from workbench.views.candidates import CandidateRows, contest_words, previews, stops_of, why_text
from workbench.views.playground import where
from workbench.views.timeline import Timeline, words_of
from workbench.views.tree import TreeRows, TreeView
from workbench.workspace.playground import Subject

CASCADE = """\
cascade_id: charts
phases:
  - name: generate
    instructions: Describe a dashboard for {{ input.topic }}.
    soundings:
      factor: 4
      max_parallel: 2
      mutation_mode: augment
      mutations: [Work step by step., Give concrete examples., Be concise.]
      evaluator_instructions: Prefer what a reader could build.
      cost_aware_evaluation: {quality_weight: 0.7, cost_weight: 0.3}
      reforge: {steps: 1, factor_per_step: 2, honing_prompt: Name the axes., mutate: true}
    wards:
      post: [{validator: has_words, mode: blocking}]
  - name: tell
    instructions: "Say it: {{ outputs.generate }}"
validators:
  has_words:
    instructions: Are there words in {{ input.content }}?
"""
REPLIES = """\
replies:
  generate:
    - branch: s0
      text: A dashboard with three panels.
      usage: {input: 1100, output: 104}
    - branch: s1
      text: "First, the data: hits per hour. Then the layout [b]bold[/b]."
      usage: {input: 1400, output: 511}
    - branch: s2
      text: Three charts, each with its axes and a note on what to look for.
      usage: {input: 1200, output: 330}
    - branch: s3
      text: "Chart: lines."
      usage: {input: 700, output: 102}
    - branch: r1.0
      text: Three charts with named axes, hours across and hits up.
      usage: {input: 1600, output: 250}
    - branch: r1.1
      text: Three charts. The axes are obvious.
      usage: {input: 1600, output: 120}
    - aside: 1
      text: '{"winner": 3, "scores": {"1": 71, "2": 88, "3": 90, "4": 64}, "reason": "covers what to look for"}'
    - aside: 2
      text: '{"winner": 2, "scores": {"1": 80, "2": 93, "3": 40}, "reason": "the axes are named"}'
  tell:
    - text: Told.
  has_words:
    - text: '{"valid": true, "reason": "words"}'
"""
JUDGING = CASCADE.replace("      cost_aware_evaluation: {quality_weight: 0.7, cost_weight: 0.3}\n", "")
HUMAN = re.sub(r"      reforge: .*\n", "", JUDGING).replace(
    "      factor: 4\n", "      factor: 4\n      evaluator: human\n"
)


async def opened(it: Bench) -> CandidatesScreen:
    """Run to the end and open the screen."""
    await it.press("r")
    await it.until(lambda: it.presenter.state.run.finished, "the run did not end")
    await it.press("C")
    await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "the screen did not open")
    return shown(it)


def shown(it: Bench) -> CandidatesScreen:
    assert isinstance(it.app.screen, CandidatesScreen)
    return it.app.screen


def told(text: str, cost: float | None, tokens: int) -> Answer:
    return Answer(text, usage=Usage(input=tokens, output=tokens // 4), cost=cost, duration_s=0.8)


def contested(*others: str) -> Played:
    """Candidates of several models, one blocked, one without a known price; refined once. Its clock only steps.
    ``others``: further phases with the same candidates."""
    soundings = {
        "factor": 4,
        "max_parallel": 1,
        "mutation_mode": "augment",
        "mutations": ["Work step by step.", "Give concrete examples.", "Be concise."],
        "models": ["google/gemini-2.5-flash-lite", "anthropic/claude-sonnet-4.5", "x-ai/grok-4.1-fast"],
        "cost_aware_evaluation": {"quality_weight": 0.7, "cost_weight": 0.3},
        "reforge": {"steps": 1, "factor_per_step": 2, "honing_prompt": "Name the axes.", "mutate": True},
    }
    phase = {"name": "generate", "instructions": "Describe a dashboard.", "soundings": soundings}
    phase["wards"] = {"post": [{"validator": "has_words", "mode": "blocking"}]}
    scores = [{"1": 71, "2": 88, "3": 90}, {"1": 80, "2": 93}]
    replies: list[Any] = [
        told("A dashboard with three panels.", 0.0002, 1204),
        told("First, the data: hits per hour. Then the layout [b]bold[/b].", 0.0071, 1911),
        told("Three charts, each with its axes and a note on what to look for.", None, 1530),
        told("####", 0.0001, 802),
        json.dumps({"winner": 3, "scores": scores[0], "reason": "covers what to look for"}),
        told("Three charts with named axes, hours across and hits up.", 0.0011, 1850),
        told("Three charts. The axes are obvious.", 0.0009, 1720),
        json.dumps({"winner": 2, "scores": scores[1], "reason": "the axes are named"}),
        json.dumps({"winner": 2, "scores": scores[1], "reason": "the axes are named"}),
    ]
    validators = {"has_words": lambda text: ValidatorVerdict(text != "####", "there are no words in it")}
    phases = [phase | {"name": name} for name in ("generate", *others)]
    return play({"cascade_id": "charts", "phases": phases}, replies * len(phases), validators=validators)


async def test_rounds_stand_below_each_other_and_a_plot_takes_the_place_of_the_text(tmp_path: Path) -> None:
    events = (await asyncio.to_thread(contested)).events

    async with bench(tmp_path, text=CASCADE, events=events) as it:
        await it.press("C")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "the screen did not open")
        await check_sizes(it, "candidates", picture=True)
        await it.press("P")
        await check_sizes(it, "candidates-plot")
        await it.press("escape")
        assert isinstance(it.app.screen, CandidatesScreen), "escape closes one thing: the plot"
        assert not it.app.screen.has_class("-plot")
        assert "US dollars" not in screen_text(it.app)


async def test_two_outputs_and_two_prompts_stand_side_by_side(tmp_path: Path) -> None:
    async with bench(tmp_path, text=JUDGING, replies=REPLIES, given={"topic": "hits"}) as it:
        screen = await opened(it)
        one = next(i for i in range(len(screen.rows)) if (c := screen.rows.candidate(i)) and c.number == "s1")
        screen.view.move_to(one)
        await it.press("space", "j", "d")
        text = screen_text(it.app)
        assert "Outputs  s1 and s2" in text
        assert "First, the data" in text
        assert "[b]bold[/b]" in text
        await it.press("escape", "D")
        text = screen_text(it.app)
        assert "− Work step by step" in text
        assert "+ Give concrete examples" in text
        await it.press("escape", "enter")
        assert "Three charts, each with its axes" in screen_text(it.app)
        await it.press("escape", "v")
        assert "Prefer what a reader could build." in screen_text(it.app)
        await it.press("escape", "i")
        assert it.app.screen is it.screen
        assert it.presenter.state.selected is not None
        assert it.presenter.state.selected.branch == "s2"


async def test_a_person_chooses_on_this_screen_and_the_run_goes_on(tmp_path: Path) -> None:
    async with bench(tmp_path, text=HUMAN, replies=REPLIES, given={"topic": "hits"}) as it:
        await it.press("r")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "nobody was asked")
        screen = shown(it)
        assert screen.rows.offered == (0, 1, 2, 3)
        assert "you choose" in screen_text(it.app)
        await it.press("j", "j", "c")
        await it.type("clear axes")
        await it.press("enter")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not go on")
        run = it.presenter.state.run
        assert run.outputs["generate"].startswith("Three charts")
        assert run.contests.all[0].rounds[0].evaluation is not None
        assert run.contests.all[0].rounds[0].evaluation["reason"] == "clear axes"


async def test_a_reason_that_the_file_asks_for_is_given_with_the_choice(tmp_path: Path) -> None:
    text = HUMAN.replace("evaluator: human\n", "evaluator: human\n      human_eval: {require_reasoning: true}\n")

    async with bench(tmp_path, text=text, replies=REPLIES, given={"topic": "hits"}) as it:
        await it.press("r")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "nobody was asked")
        await it.press("c", "enter")
        assert "the file asks for a reason" in " ".join(screen_text(it.app).replace("▌", " ").split())
        assert not it.presenter.state.run.contests.all[0].rounds[0].evaluation
        await it.type("clear axes")
        await it.press("enter")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not go on")
        evaluation = it.presenter.state.run.contests.all[0].rounds[0].evaluation
        assert evaluation is not None
        assert evaluation["reason"] == "clear axes"


async def test_a_further_question_that_was_closed_comes_back_by_its_key_alone(tmp_path: Path) -> None:
    text = HUMAN.replace("evaluator: human\n", "evaluator: human\n      human_eval: {capture_rejected_reasons: true}\n")

    async with bench(tmp_path, text=text, replies=REPLIES, given={"topic": "hits"}) as it:
        await it.press("r")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "nobody was asked")
        await it.press("c", "enter")
        await it.until(lambda: isinstance(it.app.screen, Dialog), "the reasons are not asked for")
        await it.press("escape")
        assert "waiting for your answer" in screen_text(it.app)
        assert "a answer" in screen_text(it.app)
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, Dialog), "the key does not bring it back")
        await it.press("escape", "escape")
        await it.until(lambda: it.app.screen is it.screen)
        await it.feed(notices=[Notice("hint", Place(), {"message": "a frame"})])
        assert it.app.screen is it.screen
        await it.press("a")
        await it.until(lambda: isinstance(it.app.screen, Dialog), "the key does not bring it back")
        await it.type("too vague")
        await it.press("enter")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not go on")
        rows = CandidateRows(it.presenter.state.run, contest := it.presenter.state.run.contests.all[0])
        (settled,) = (of for of in contest.rounds if of.kind == "soundings")
        assert why_text(settled, rows.rounds[0][1]).endswith("Not chosen, s1: too vague; s2: too vague; s3: too vague")
        await it.press("C", "j")
        await it.until(lambda: "not chosen: too vague" in screen_text(it.app))


async def test_all_can_be_rejected_after_asking(tmp_path: Path) -> None:
    async with bench(tmp_path, text=HUMAN, replies=REPLIES, given={"topic": "hits"}) as it:
        await it.press("r")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "nobody was asked")
        await it.press("X", "r")
        await it.until(lambda: it.presenter.state.run.finished, "the run did not go on")
        assert it.presenter.state.run.status == "failed"
        assert "all candidates were rejected" in it.presenter.state.run.reason


async def test_without_candidates_the_key_says_so(tmp_path: Path) -> None:
    async with bench(tmp_path) as it:
        await it.press("C")
        assert it.app.screen is it.screen
        assert "No run yet" in it.text()


def test_a_verdict_without_a_model_says_so() -> None:
    run = RunState.of(candidate_run())
    contest = run.contests.all[0]
    document = evaluation_doc(run, contest, contest.rounds[0], CandidateRows(run, contest).rounds[0][1])
    assert [line.text for line in document.lines] == ['s1 wins: "colour" ()', "", "No model was asked."]
    assert document.title == (("Evaluation", "title"), ("  write", "name"))
    open_round = RunState.of(candidate_run()[:14])
    contest = open_round.contests.all[0]
    document = evaluation_doc(open_round, contest, contest.rounds[0], [])
    assert [line.text for line in document.lines] == ["not settled yet"]


def test_what_a_model_says_cannot_steer_the_terminal() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e[/b]"
    soundings = {"factor": 2, "max_parallel": 1, "mutation_mode": "augment", "mutations": [f"Vary {hostile}"]}
    phase = {"name": "generate", "instructions": "Write.", "soundings": soundings}
    said = json.dumps({"winner": 1, "scores": {"1": 9, "2": 8}, "reason": hostile})
    run = play(
        {"cascade_id": "c", "phases": [phase]}, [told(hostile, 0.1, 10), told(f"b {hostile}", 0.2, 10), said]
    ).state
    contest = run.contests.all[0]
    rows = CandidateRows(run, contest)
    one, two = rows.rounds[0][1]
    documents = [candidate_doc(contest, one), evaluation_doc(run, contest, contest.rounds[0], [one, two])]
    shown = [rows.row(i, 160).text for i in range(len(rows))] + [line.text for doc in documents for line in doc.lines]
    for width in (38, 160):
        sides = beside(one, two, "outputs")
        sides.lay_out(width)
        shown += [sides.row(i, width).text for i in range(len(sides))]
    assert any("owned" in text for text in shown)
    assert not [text for text in shown if re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)]


def test_a_candidate_that_asks_a_person_turns_no_spinner_and_says_that_it_waits() -> None:
    soundings = {"factor": 2, "max_parallel": 1}
    phase = {"name": "p", "instructions": "Write.", "tackle": ["ask_human"], "soundings": soundings}
    asks = call("ask_human", question="Which?")
    events = play({"cascade_id": "c", "phases": [phase]}, [asks, "one", "two", "1"], answers=["this"]).events
    asked = next(i for i, event in enumerate(events) if event.kind == "human_asked")
    for until, sign, words in ((asked, "⠋", "1 running"), (asked + 1, "?", "1 waiting for you · 1 queued")):
        state = RunState.of(events[:until])
        rows = CandidateRows(state, state.contests.all[0])
        assert rows.row(0, 120).text.split()[:2] == [sign, "s0"]
        assert rows.turning == (sign == "⠋")
        assert words in "".join(text for text, _ in rows.title)
    document = candidate_doc(rows.contest, rows.rounds[0][1][0], status=rows.status(rows.contest.rounds[0].entrants[0]))
    assert "waiting for your answer" in document.lines[0].text
    # The same where a run that the candidate started asks, or is paused.
    child, run = state, RunState.of(events[:asked])
    run.visits[-1].children.append({"run_id": child.run_id})
    children, called = {child.run_id: child}, child.calls[-1].place
    for held, sign in ((None, "?"), (called, "‖")):
        rows = CandidateRows(run, run.contests.all[0], stops=stops_of(run, children, held, child.run_id))
        assert rows.row(0, 120).text.split()[:2] == [sign, "s0"]
        assert not rows.turning


def test_a_mutation_takes_the_room_that_the_outputs_leave() -> None:
    mutation = "Take the opposite view of what the task asks for, and say why it may be right after all."
    soundings = {"factor": 2, "mode": "aggregate", "mutation_mode": "augment", "mutations": [mutation]}
    phase = {"name": "p", "instructions": "Write.", "soundings": soundings}
    run = play({"cascade_id": "c", "phases": [phase]}, ["one", "two", "both"]).state
    rows = CandidateRows(run, run.contests.all[0])
    assert mutation in rows.row(1, 200).text
    assert rows.row(1, 200).text.rstrip().endswith("two")
    assert rows.row(1, 120).text.rstrip().endswith("two")


def test_a_narrow_list_tells_mutation_and_output_below_the_row() -> None:
    mutation = "Take the opposite view of what the task asks for."
    soundings = {"factor": 2, "mode": "aggregate", "mutation_mode": "augment", "mutations": [mutation]}
    phase = {"name": "p", "instructions": "Write.", "soundings": soundings}
    said = "A dashboard with three panels, each with its own source"
    run = play({"cascade_id": "c", "phases": [phase]}, ["one", said, "both"]).state
    rows = CandidateRows(run, run.contests.all[0])
    assert rows.row(1, 80).text.endswith("…")
    first, *below = (row.text.strip() for row in rows.whole(1, 80))
    assert "dashboard" not in first, "it is told twice"
    assert " ".join(" ".join(below).split()) == f"mutation  augment: {mutation} output  {said}".replace("  ", " ")
    assert all(len(row.text) <= 80 for row in rows.whole(1, 80))


def test_the_winner_of_the_soundings_is_told_where_its_refinement_was_not_decided() -> None:
    soundings = {"factor": 2, "reforge": {"steps": 1, "factor_per_step": 1, "honing_prompt": "Shorter."}}
    phase = {"name": "p", "instructions": "Write.", "soundings": soundings}
    said = json.dumps({"winner": 2, "reason": "clear"})
    run = play({"cascade_id": "c", "phases": [phase]}, ["one", "two", said, "t", "all good", "all good"]).state
    words = "2 candidates · 1 reforge step · candidate s1 won the soundings; reforge step 1 undecided"
    assert contest_words(CandidateRows(run, run.contests.all[0])) == words


def test_a_call_beside_the_turns_has_one_name_in_the_tree_the_timeline_the_palette_and_the_playground() -> None:
    run = contested().state
    found = next(one for one in run.calls if one.aside)
    assert found.words == f"generate {found.aside}"
    assert calls_found("eval 1", run.calls) == [found]
    assert all(one.place.turn for one in calls_found("generate 1", run.calls))
    assert found.words in [words_of(bar, {}) for bar in Timeline.of(run).bars]
    rows = TreeRows(run, TreeView(unfolded=True))
    assert any(found.aside in rows.row(at, 120).text for at in range(len(rows)))
    subject = Subject(run.run_id, run.session_id, found, (), None, offline=True)
    assert where(subject).startswith(f"{found.words} of ")


def test_a_hundred_candidates_fit_into_one_list() -> None:
    phase = {"name": "p", "instructions": "Write.", "soundings": {"factor": 100, "mode": "aggregate"}}
    run = play({"cascade_id": "c", "phases": [phase]}, ["text"] * 100).state
    rows = CandidateRows(run, run.contests.all[0])
    assert [i for i in range(len(rows)) if rows.candidate(i) is not None] == list(range(100))
    assert "all 100 outputs are joined" in rows.row(100, 120).text


async def test_who_won_and_why_is_said_in_full_in_a_narrow_terminal(tmp_path: Path) -> None:
    events = (await asyncio.to_thread(contested, "tell")).events

    async with bench(tmp_path, text=CASCADE, events=events[:-1]) as it:
        await it.press("C")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "the screen did not open")
        screen = shown(it)
        await it.until(lambda: screen.candidate is not None, "no candidate is under the cursor")
        chosen = screen.candidate
        await it.pilot.resize_terminal(80, 24)
        await it.until(lambda: "pick was s2)" in screen_text(it.app), "the end of the reason is cut off")
        assert chosen is not None
        await it.until(
            lambda: screen.candidate is not None and screen.candidate.number == chosen.number,
            "the cursor is not on its candidate any more",
        )
        before = screen.rows
        await it.feed(events[-1:])
        await it.until(lambda: screen.rows is not before, "the end of the run is not shown")
        assert screen.candidate is not None
        assert screen.candidate.number == chosen.number, "the cursor is not where it was when the run went on"
        await it.press("left_square_bracket")
        assert "generate · " in screen_text(it.app)
        assert screen.contest is not None
        assert screen.candidate is not None, "the cursor is on none of the other phase's candidates"
        assert screen.candidate.entrant.index == screen.contest.winner


async def test_the_borders_between_list_text_and_plot_move_and_stay(tmp_path: Path) -> None:
    events = (await asyncio.to_thread(contested)).events

    async with bench(tmp_path, text=CASCADE, events=events, size=(160, 40)) as it:
        await it.press("C")
        await it.until(lambda: isinstance(it.app.screen, CandidatesScreen), "the screen did not open")
        screen = shown(it)
        await it.until(lambda: screen.preview.edge, "there is no plot")
        width, height = screen.plot.size.width, screen.preview.size.height
        x, y = screen.preview.region.right - 1, screen.preview.region.y
        await it.pilot.mouse_down(offset=(x, y + 4))
        await it.pilot.hover(offset=(x - 12, y + 4))
        await it.pilot.mouse_up(offset=(x - 12, y + 4))
        await it.until(lambda: screen.plot.size.width == width + 12)
        await it.pilot.mouse_down(offset=(150, y))
        await it.pilot.hover(offset=(150, y + 3))
        await it.pilot.mouse_up(offset=(150, y + 3))
        await it.until(lambda: screen.preview.size.height == height - 3)
        await it.press("alt+right", "alt+up")
        await it.until(lambda: (screen.plot.size.width, screen.preview.size.height) == (width + 8, height - 1))
        await it.pilot.resize_terminal(100, 24)
        await it.until(lambda: screen.preview.size.height and not screen.preview.edge)
        assert screen.view.size.height >= 5, "the list keeps its room"
        await it.press("alt+left")
        assert "No panes stand beside each other here." in screen_text(it.app)


def test_a_preview_leaves_out_what_two_outputs_begin_with_alike() -> None:
    def ranked(index: int, output: str) -> RankedCandidate:
        entrant, unknown = Entrant(index, f"s{index}", "success", output=output), (None, None, "unknown", None, None)
        return RankedCandidate(entrant, Place(), (), (), "m", *unknown, False, None, None, False, True)  # type: ignore[arg-type]

    outputs = ['{"headline": "Sun"}', '{"headline": "Sea"}', "Sea", '{"headline": "Sea"}']
    found = previews([ranked(index, output) for index, output in enumerate(outputs)])
    assert found == {0: '…Sun"}', 1: '…Sea"}', 2: "Sea", 3: '…Sea"}'}
