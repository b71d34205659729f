"""Whole panes of a few runs: contexts, documents, logs, summaries, cards of a file, and the lines above them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.engine.support import Played, play
from tests.store.examples import rich_run
from tests.support.panes import check_panes, mark, pane, text_of
from tests.support.stored import check_stored
from tests.ui.stored import failed_story
from tests.ui.support import Story, entry, triage_story
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW
from tests.ui.test_tree_rows import family
from workbench.context.assembly import Grade, Kind
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.debugger.stepper import Breakpoint
from workbench.engine.definition import Definition
from workbench.engine.journal.state import RunState
from workbench.views import candidate_docs, documents, log, node, reasons, viewer
from workbench.views.breakpoints import BreakpointRows
from workbench.views.candidates import CandidateRows
from workbench.views.context import ContextRows, View
from workbench.views.definition import CardRows
from workbench.views.diffs import DiffRows
from workbench.views.header import HeaderState, header, waiting
from workbench.views.json_tree import JsonRows
from workbench.views.large_text import LargeTextRows
from workbench.views.model import Filtered, Lines, Rows
from workbench.views.picture import Gallery
from workbench.views.problems import ProblemRows, counted, of_call, of_run
from workbench.views.summary import SummaryRows
from workbench.views.tab_line import TabLabel, tab_line
from workbench.views.timeline import Timeline, TimelineRows
from workbench.views.wire import as_curl, as_python, body_of, destination, wire_doc
from workbench.views.words import words_of

STORED = Path(__file__).parent / "stored"


def walked() -> Played:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"])


# -- one call ----------------------------------------------------------------------------------------------------------


def contexts() -> Iterator[tuple[str, Rows | list[str]]]:
    story, rich = RunState.of(triage_story().events), RunState.of(rich_run())
    last, before = story.calls[-1], story.calls[-2]
    yield "as it is", ContextRows(last, View(budget=2000, max_turns=6))
    yield "compared", ContextRows(last, View(compare=True, before=before, unfold=True, budget=400, divided=True))
    yield "compact", ContextRows(last, View(compact=True, filed=False, over=True))
    for number, call in enumerate(rich.calls):
        yield f"rich call {number}", ContextRows(call, View(asking=frozenset({1})))
    yield "a call that failed", ContextRows(refused().calls[-1], View())
    yield "an evaluator", ContextRows(contested().state.calls[-1], View())


def refused() -> RunState:
    """A run whose first call failed twice; its request breaks two rules."""
    story = Story().start()
    at = story.phase("intake")._replace(attempt=1, turn=1, call=1)
    ask = entry(
        Message("user", "Say what it is about."), Kind.TASK, at, reason=("task",), rule=("phases[0]", 6), redacted=2
    )
    story.context(at, [ask], grade=Grade.ESTIMATE, problems=[(3, "two tasks", 0), (4, "no task", -1)], notes=["a note"])
    for number in (1, 2):
        story.emit("call_failed", at, **{"try": number}, error=ERROR, retry_in=2.5 if number == 1 else None)
    return RunState.of(story.events)


def test_contexts_of_calls_are_the_stored_panes() -> None:
    check_panes(STORED, "contexts", contexts())


def texts() -> Iterator[tuple[str, Rows | list[str]]]:
    story, rich = RunState.of(triage_story().events), RunState.of(rich_run())
    call, failed = story.calls[-1], refused()
    text = story.cascade_text
    changed = text.replace("  - name: triage", "  # The triage.\n  - name: triage").replace("window: 5", "window: 6")
    for index, one in enumerate(call.entries):
        yield f"message {index + 1}", documents.message_doc(call, index, full=False)
        if one.sent != one.item.message:
            yield f"message {index + 1} in full", documents.message_doc(call, index, full=True)
            sides = documents.sides_doc(call, index)
            yield f"message {index + 1} beside", sides or ["none"]
        why = pane(reasons.why_doc(call, index, text, "log_triage.yaml", changed), 60)
        yield f"why message {index + 1}", [*why[:6], why[-1]]
        seen = viewer.viewed_entry(call, index, story, Gallery())
        yield (
            f"forms of message {index + 1}",
            [f"first {seen.first}", mark(forms(seen)), *forms(seen)[: 2 * (index > 3)]],
        )
    yield "why the cache breaks", reasons.break_doc(call)
    yield "no forecast", reasons.break_doc(replace(failed.calls[-1], forecast=None))
    for call in (story.calls[0], *rich.calls[:3]):
        yield f"answer of {call.place}", documents.answer_doc(call)
        yield f"forms of the answer of {call.place}", forms(viewer.viewed_answer(call, Gallery()))
        for index, tool in enumerate(call.tools):
            yield f"tool of {call.place}", documents.tool_doc(tool)
            yield f"forms of the tool of {call.place}", forms(viewer.viewed_tool(call, index, Gallery()))
    yield "streaming", documents.streaming_doc("An answer that\ncomes in", 3)
    yield "event", documents.event_doc(rich_run()[3])
    yield "outputs", documents.outputs_doc(RunState.of(triage_story(finished=True).events), typeset=False)
    yield "outputs, typeset", documents.outputs_doc(rich, typeset=True)
    yield "no outputs", documents.outputs_doc(None, typeset=False)
    visit = walked().state.visits[0]
    yield "a visit without a call", documents.visit_doc(visit, walked().state)


def forms(seen: viewer.ViewedMessage) -> list[str]:
    """Each form of a message, shortened, or why it is missing."""
    lines = []
    for form in viewer.FORMS:
        missing = seen.missing(form)
        shown = [missing] if missing else pane(seen.rows(form), 60, most=2)
        lines += [f"{form}:", *(f"  {line}" for line in shown)]
    return lines


def test_documents_of_a_run_are_the_stored_panes() -> None:
    check_panes(STORED, "documents", texts())


def test_requests_on_the_wire_are_the_stored_ones() -> None:
    def all_of_them() -> Iterator[tuple[str, Rows | list[str]]]:
        story, rich = RunState.of(triage_story().events), RunState.of(rich_run())
        for name, run in (("story", story), ("rich", rich)):
            call = run.calls[-1]
            _, said = body_of(call, run)
            yield f"{name}: {said}", wire_doc(call, run, entry=0)
            yield f"{name}, raw", [line[:100] for line in pane(wire_doc(call, run, raw=True))]
            for url in ("", "http://127.0.0.1:8080/v1/"):
                to = destination(call, url)
                yield f"{name} to {to}", [*as_curl("{}", to).splitlines(), *as_python('{"a": 1}', to).splitlines()]
        for model in ("anthropic/claude-sonnet-4.5", "openrouter/x/y", "my-own/model", "/x"):
            to = destination(replace(call, model=model))
            yield f"{model} to {to}", [*as_curl("{}", to).splitlines(), *as_python("[]", to).splitlines()[-12:]]

    check_panes(STORED, "wires", all_of_them())


# -- a run -------------------------------------------------------------------------------------------------------------


def runs() -> Iterator[tuple[str, Rows | list[str]]]:
    parent, children = family()
    states = {
        "story": RunState.of(triage_story(finished=True).events),
        "rich": RunState.of(rich_run()),
        "failed": RunState.of(failed_story().events),
        "candidates": contested().state,
        "pipeline": walked().state,
    }
    for name, run in states.items():
        yield f"summary, {name}", SummaryRows(run, {})
        yield f"times, {name}", TimelineRows(Timeline.of(run))
        yield (
            f"problems, {name}",
            ProblemRows([*of_run(run, Definition.of(run.cascade_text, "c.dot" if name == "pipeline" else "c.yaml"))]),
        )
    yield "summary of a family", SummaryRows(parent, children)
    yield "times of a family", TimelineRows(Timeline.of(parent, children))
    story = RunState.of(triage_story().events)
    found = [problem for call in (*story.calls, *refused().calls) for problem in of_call(call, "c.yaml")]
    yield "broken rules", [*pane(ProblemRows(found)), *map(str, counted(found))]


def test_what_a_run_took_is_the_stored_panes() -> None:
    check_panes(STORED, "runs", runs())


def logs() -> Iterator[tuple[str, Rows | list[str]]]:
    for name, events in (("rich", rich_run()), ("candidates", contested().events), ("pipeline", walked().events)):
        run, rows = RunState(), log.LogRows()
        for event in events:
            run.apply(event)
            if (line := log.log_line(event, run)) is not None:
                rows.add(line)
        yield f"log, {name}", rows
        if name == "rich":
            yield "events", [line[:130] for line in pane(log.EventRows(events))]
    rows = log.LogRows()
    rows.can_run = False
    rows.explain("It has [no] cascade.")
    yield "an empty log", rows
    full = log.LogRows()
    for number in range(log.KEPT_LINES + 2):
        full.add(
            log.LogLine(
                "2026-11-02T14:02:01.204000Z", Place("", "a", 2, 2, 3, 1), "call", f"line {number}", recorded=True
            )
        )
    yield "a full log", [row.text for width in (30, 90) for row in (*full.heads(width), full.row(0, width))]
    state = RunState()
    yield "words of events", [f"{kind} {json.dumps(data)[:60]}: {told(state, kind, data)}" for kind, data in EVENTS]


def told(run: RunState, kind: str, data: dict[str, Any]) -> str:
    event = Story().emit(kind, Place("", "a", 1), **data)
    return " | ".join(words_of(event, run) or ("-",))


USAGE = {"input": 1200, "output": 30, "cached": 1000}
ERROR = {"kind": "rate_limit", "message": "too many", "status": 429}
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("run_started", {"cascade_id": "c", "input": {"a": 1, "b": "x" * 70}}),
    ("run_started", {"cascade_id": "c", "input": {}, "parent": {"kind": "fork", "session_id": "s"}}),
    ("run_started", {"cascade_id": "c", "input": {}, "parent": {"kind": "rerun", "session_id": "s"}}),
    ("run_started", {"cascade_id": "c", "input": {}, "parent": {"kind": "tool", "session_id": "s"}}),
    ("run_started", {"input": None}),
    ("run_resumed", {}),
    ("run_resumed", {"over": True}),
    ("what_if", {"strategy": "slide", "tokens": 9, "sent_tokens": 90, "all_cost": 0.1, "all_sent_cost": 0.2}),
    ("what_if", {"strategy": "s", "tokens": 9, "sent_tokens": 9, "all_cost": 1, "all_sent_cost": 2, "invalid": "a"}),
    ("paused", {"stop": "before_call", "seconds": 3}),
    ("paused", {"stop": "child", "seconds": 3}),
    ("phase_started", {"kind": "deterministic"}),
    ("phase_started", {"kind": "human", "model": ""}),
    ("phase_started", {"kind": "llm", "model": "m", "tools": ["a", "b"]}),
    ("phase_started", {"kind": "llm"}),
    ("context_assembled", {"grade": "estimate", "tokens_sent": 1200}),
    ("context_assembled", {"tokens_sent": 12, "forecast": {"cached": 9, "reason": "a message changed"}}),
    ("context_assembled", {"tokens_sent": 12, "problems": [[3, "two tasks", 0], [4, "b", 1]]}),
    ("context_selected", {"fault": "no model"}),
    ("context_selected", {"model": "m", "picked": [1, 2], "offered": [1, 2, 3], "reason": "best"}),
    ("context_selected", {"offered": [1]}),
    ("embedded", {"fault": ERROR}),
    ("embedded", {"keys": ["a"], "by": "m", "duration_s": 0.5, "cost": 0.001}),
    ("embedded", {"keys": ["a", "b"], "by": "m"}),
    ("call_finished", {"usage": USAGE, "provider": "p", "duration_s": 2.5, "cost": 0.25, "cost_grade": "exact"}),
    ("call_finished", {"usage": {}, "model": "m", "recorded": True, "cost": 0, "cost_grade": "none", "partial": True}),
    ("call_finished", {"usage": {"input": None}}),
    ("call_failed", {"error": ERROR, "try": 2, "retry_in": 4.0}),
    ("call_failed", {}),
    ("tool_finished", {"tool": "read", "index": 1, "duration_s": 0.1}),
    ("tool_finished", {"tool": "read", "index": 1, "cached": True}),
    ("tool_finished", {"tool": "read", "index": 1, "is_error": True, "duration_s": 0.1}),
    ("tool_finished", {"tool": "read", "index": 1, "sandbox": "left", "text": "x"}),
    ("state_set", {"key": "a", "value": {"b": [1, None]}}),
    ("check_finished", {"name": "plain", "valid": True, "reason": "it is"}),
    ("check_finished", {"check": "output_schema", "valid": False, "reason": "no JSON"}),
    ("check_finished", {}),
    ("route_chosen", {"to": "b", "rule": "route_to"}),
    ("route_chosen", {"to": ""}),
    ("candidates_started", {"factor": 12345}),
    ("candidate_finished", {"index": 1, "status": "success", "output": "o" * 130}),
    ("candidate_finished", {"index": "x", "status": "failed"}),
    ("evaluation_finished", {"winner": 2, "reason": "best"}),
    ("evaluation_finished", {"winner": 2, "decided": False, "fault": "no verdict"}),
    ("evaluation_finished", {"branch": "a/s3"}),
    ("human_asked", {"question": "Which?\nOne?"}),
    ("human_answered", {"timed_out": True}),
    ("human_answered", {"nobody": True}),
    ("human_answered", {"answer": "x", "refused": "no number"}),
    ("human_answered", {"answer": "yes"}),
    ("audible", {"text": None, "left": 1}),
    ("audible", {"text": "Hurry", "left": 2, "redo": True}),
    ("audible", {"text": "Hurry"}),
    ("hook", {"name": "h", "type": "after_call", "error": "it fell"}),
    ("hook", {"name": "h", "type": "after_call", "action": "say", "text": "t" * 130, "reason": "because"}),
    ("hook", {"name": "h", "type": "after_call", "action": "stop"}),
    ("edited", {"what": "change", "edit": {"at": 1}}),
    ("edited", {"what": "drop", "edit": {"at": 0}}),
    ("edited", {"what": "move", "edit": {"at": 1, "to": 4}}),
    ("edited", {"what": "model", "edit": {"model": "m", "parameters": {"temperature": 0.5}}}),
    ("edited", {"what": "model", "edit": {"model": "", "parameters": {"top_p": None}}}),
    ("edited", {"what": "state", "edit": {"key": "k", "value": [1]}}),
    ("edited", {"what": "arguments", "after": "{}", "edit": {}}),
    ("edited", {"what": "result", "edit": {"text": "other"}}),
    ("edited", {"what": "answer", "edit": {"message": {"role": "assistant", "content": "new"}}}),
    ("edited", {"what": "change"}),
    ("callout", {"name": "verdict"}),
    ("remembered", {"bank": "b", "count": 1}),
    ("remembered", {"bank": "b", "fault": "full"}),
    ("tools_chosen", {"tools": ["a"], "offered": 1200, "reason": "r"}),
    ("tools_chosen", {}),
    ("tools_listed", {"server": "s", "names": {"s__a": "a", "s__b": "b"}}),
    ("tools_listed", {"server": "s", "fault": "gone"}),
    ("tools_listed", {"server": "s", "names": {}}),
    ("warning", {"line": 3, "message": "odd"}),
    ("warning", {"message": "odd"}),
    ("large_request", {"message": "large"}),
    ("phase_finished", {"status": "failed", "reason": "r"}),
    ("phase_finished", {}),
    ("run_finished", {"status": "success"}),
    ("run_finished", {"status": "stopped", "reason": "stopped by the user"}),
    ("run_finished", {"status": "failed", "reason": "r"}),
    ("child_started", {"kind": "sub", "session_id": "s"}),
    ("child_finished", {"session_id": "s", "status": "failed"}),
    ("blob", {}),
]  # fmt: skip


def test_logs_and_the_words_of_events_are_the_stored_ones() -> None:
    check_panes(STORED, "logs", logs())


# -- a file ------------------------------------------------------------------------------------------------------------

CARDS = """\
cascade_id: cards
memory: bank
inputs_schema: {path: The path, who: Who}
token_budget: {max_total: 9000, reserve_for_output: 1000, phase_overrides: {tools: 5000}}
auto_context: {intra_phase: {window: 3, mask_observations_after: 1}, inter_phase: {}}
strategies: {lean: mask(2)}
phases:
  - name: tools
    instructions: Use them.
    model: openai/gpt-4.1
    temperature: 0.5
    tackle: [bank, linux_shell]
    use_native_tools: true
    rules: {max_turns: 4, max_attempts: 2, loop_until: short}
    wards: {pre: [short], turn: [short], post: [short]}
    output_schema: {type: object}
    enforce: prompt
    handoffs: [carried, {target: auto, description: or this}]
  - name: carried
    instructions: Carry.
    context: {from: [tools, {phase: first, include: [messages, state]}], include_input: true}
    soundings: {factor: 3}
    rag: {directory: kb}
  - name: injected
    instructions: Inject.
    inject_from: [tools]
    strategy: lean
    intra_context: {enabled: false}
  - name: auto
    instructions: Select.
    context: {mode: auto, anchors: {from: [tools]}}
    rag: {directory: kb, model: text-embedding-3-small}
    human_input: {type: text}
    audibles: {enabled: true, budget: 2}
    decision_points: {enabled: true}
  - name: entering
    instructions: Enter.
    strategy: snowball+slide(2)
  - name: nothing
    instructions: Nothing.
    context: {from: []}
    manifest: true
  - name: levels
    instructions: Levels.
    fidelity: compact
  - name: broken
    instructions: Broken.
    strategy: slide(
  - name: rows
    for_each_row: {table: t, instructions: Look at it.}
  - name: command
    tool: linux_shell
    inputs: {command: date, cwd: .}
  - name: page
    htmx: <p>Choose</p>
    hitl_title: Choose one
"""
GRAPH = """\
digraph p { goal="g" start [shape=Mdiamond] done [shape=Msquare]
  ask [shape=hexagon, label="Which?"]
  work [prompt="Work on $goal", label="The work", max_retries=2, timeout="900s", goal_gate=true]
  fan [shape=component, join_policy="first_success", max_parallel=2] meet [shape=tripleoctagon]
  run [shape=parallelogram, tool_command="true"]
  again [shape=house, manager.poll_interval="45s", manager.max_cycles=3]
  start -> ask -> work [label="[W] Work"] ask -> run [label="[R] Run"]
  work -> fan -> run -> meet -> done fan -> again -> meet }
"""


def cards() -> Iterator[tuple[str, Rows | list[str]]]:
    definition = Definition.of(CARDS, "cards.yaml")
    cascade, source = definition.cascade, definition.source
    for at, phase in enumerate(cascade.phases):
        given = {"path": "a.log", "n": 3} if at == 0 else None
        status = ("", "success", "waiting")[at % 3]
        yield (
            phase.name,
            CardRows(cascade, phase, f"Hint {at}.", "m-1" if at % 2 else "", status, source=source, given=given),
        )
    graph = Definition.of(GRAPH, "p.dot")
    for one in graph.graph.nodes:
        lowered = next((phase for phase in graph.cascade.phases if phase.name == one.id), None)
        of = (graph.cascade, lowered) if lowered is not None else None
        yield f"node {one.id}", node.NodeCard(graph.graph, one, None, "Hint.", definition=of)
    run = walked()
    for visit in run.state.visits:
        one_ = run.definition.graph.node(visit.phase)
        assert one_ is not None
        yield (
            f"visit {visit.phase}#{visit.visit}",
            node.NodeCard(run.definition.graph, one_, visit, "Hint.", visit.status),
        )
    points = [
        Breakpoint("triage"),
        Breakpoint("triage", turn=3),
        Breakpoint("", tool="read_log"),
        Breakpoint("triage", tool="read_log"),
        Breakpoint("", condition="tokens > 6000"),
        Breakpoint("triage", condition="tokens > 6000", disabled=True),
    ]
    yield "breakpoints", BreakpointRows(points)
    yield "no breakpoints", BreakpointRows([])


def test_cards_of_phases_and_nodes_are_the_stored_panes() -> None:
    check_panes(STORED, "cards", cards())


# -- lists and texts ---------------------------------------------------------------------------------------------------


def plain_texts() -> Iterator[tuple[str, Rows | list[str]]]:
    state = contested().state
    for contest in state.contests:
        rows = CandidateRows(state, contest)
        yield "candidates", rows
        for of, ranked in rows.rounds:
            for one in ranked:
                yield f"candidate {one.number}", candidate_docs.candidate_doc(contest, one)
            yield "evaluation", candidate_docs.evaluation_doc(state, contest, of, ranked)
            for what in ("outputs", "prompts"):
                yield what, candidate_docs.beside(ranked[0], ranked[1], what)
            for shown in (
                {"limit": 9, "render": "text"},
                {"hidden": ["metadata"]},
                {"hidden": ["mutations"], "render": "code"},
            ):
                yield f"shown {shown}", candidate_docs.candidate_doc(contest, ranked[0], shown=shown)
                yield (
                    f"beside, {shown}",
                    candidate_docs.beside(ranked[0], ranked[1], "outputs", shown=shown, whole=False),
                )
    old, new = "one\ntwo words here\nthree\n\nfour\n" * 2, "one\ntwo other words here\nthree\nfour\nfive\n" * 2
    yield "two texts", DiffRows((old, new), ("the old one of these two", "new"), copy="c")
    yield "a text and none", DiffRows((old, ""), ("old", "new"))
    value = {"a": [1, 2, {"b": None, "c": "x" * 70}], "d": {"e": {}, "f": []}, "long": list(range(60))}
    tree = JsonRows(value, (("Value", "title"),))
    yield "a value", tree
    tree.fold_below(0)
    yield "a folded value", tree
    tree.reveal("a", 2)
    yield (
        "a value with a part in view",
        [*pane(tree), f"focus {tree.focus}", str([tree.item_at(row, "a") for row in range(14)])],
    )
    folds = [
        tree.fold(3),
        tree.fold(1, closed=True),
        tree.fold(0, closed=True),
        tree.fold(0),
        tree.fold(0, closed=False),
    ]
    tree.reveal("none", 1)
    yield "folded by hand", [str(folds), *pane(tree)]
    yield "a small value", JsonRows([{"a": "日本", "b": True}, 1.5, "t"])
    large = LargeTextRows("first line\n" + "wide 日本 " * 40 + "\n\ttab\r\n" + "ascii " * 40, facts="12 bytes")
    yield "a large text", large
    yield "a filter", Filtered(Lines([], ("nothing",)), "x[b]")
    steps = JsonRows(value)
    steps.lay_out(60)
    kept = Filtered(steps, "3")
    yield "a filter of rows", [*pane(kept), str(kept.indices)]


def test_lists_and_texts_are_the_stored_panes() -> None:
    check_panes(STORED, "texts", plain_texts())


def test_the_lines_above_all_panes_are_the_stored_ones() -> None:
    story, done = RunState.of(triage_story().events), RunState.of(triage_story(finished=True).events)
    failed, whole = (
        RunState.of(failed_story().events),
        HeaderState("log_triage", "log_triage.yaml", model="openai/gpt-4.1-mini"),
    )
    states: dict[str, tuple[RunState | None, HeaderState]] = {
        "no run": (None, replace(whole, saved="14:02")),
        "starting": (None, replace(whole, starting=True, errors=2)),
        "running": (story, replace(whole, at="triage:4", base_url="http://127.0.0.1:8080")),
        "waits for a provider": (story, replace(whole, waiting="provider 34 s, retry 2", changed=True)),
        "paused": (story, replace(whole, held="before triage:4", errors=1, good=False)),
        "a client waits": (story, replace(whole, held="before triage:4", waits="12 s of 600 s")),
        "asks": (story, replace(whole, question=True, saved="14:02", changed=True)),
        "asks elsewhere": (story, replace(whole, question=True, elsewhere=True, unsaved=True)),
        "done": (done, replace(whole, model="offline as openai/gpt-4.1-mini", file="x.yaml", cascade="")),
        "failed": (failed, replace(whole, saved="14:02", changed=True)),
        "stopped": (replaced(done, "stopped", "stopped by the user"), whole),
        "blocked": (replaced(done, "blocked", "the check 'plain' rejected it: there are no words in it at all"), whole),
    }
    lines = []
    for name, (run, facts) in states.items():
        lines.append(f"== {name}")
        lines += [f"{width:>3}|{text_of(header(run, facts, width))}|" for width in (150, 100, 80, 60, 44, 30, 20)]
    labels = [
        TabLabel("debug_agent", "c0f7", doing, news=bool(at % 2))
        for at, doing in enumerate(("held", "asked", "running", "success", "failed", ""))
    ]
    for at in (0, 3, 5):
        shown = [
            replace(label, current=number == at) for number, label in enumerate([*labels, TabLabel("x" * 30, "y" * 20)])
        ]
        lines += [f"{width:>3}|{text_of(tab_line(shown, width))}|" for width in (200, 90, 50, 20)]
    lines += [f"{text_of(tab_line([], 50))}|", f"{text_of(tab_line(labels, 0))}|"]
    times = [(0.5, 1, 0.0), (0.5, 2, 0.0), (1.0, 1, 0.0), (34.4, 3, 0.0), (3.0, 2, 0.49), (3.0, 2, 0.5), (3.0, 3, 4.0)]
    lines += [f"{time}: {waiting(*time)}" for time in times]
    check_stored(STORED / "headers.txt", "\n".join(lines) + "\n")


def replaced(run: RunState, status: str, reason: str) -> RunState:
    run = RunState.of(triage_story(finished=True).events[:-1])
    run.apply(Story().emit("run_finished", status=status, output="", state={}, reason=reason))
    return run
