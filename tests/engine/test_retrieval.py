"""Folders and banks in a run: who is offered their tools, what is remembered, and replays that touch neither."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engine.support import Answers, ListSink, Played, ScriptedModel, call, play, ports
from tests.support.equal_runs import comparable
from workbench.context.place import Place
from workbench.engine.contracts import BankSource, FolderSource, Memory, RetrievalFault, Source, ToolResult
from workbench.engine.definition import Options
from workbench.engine.journal.costs import Embeddings
from workbench.engine.past.recording import Kind, Recording
from workbench.engine.past.replay import RESUMED, Replay
from workbench.engine.run.run import Run


@dataclass
class Shelf:
    """A folder and banks in memory."""

    fault: str = ""
    asked: list[tuple[Source, str, Mapping[str, Any]]] = field(default_factory=list)
    kept: dict[str, list[Memory]] = field(default_factory=dict)

    async def call(
        self, source: Source, name: str, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        self.asked.append((source, name, arguments))
        return ToolResult(f"{name} found harbour")

    async def remember(self, bank: str, memories: Sequence[Memory]) -> None:
        if self.fault:
            raise RetrievalFault(self.fault)
        self.kept.setdefault(bank, []).extend(memories)


CASCADE: dict[str, Any] = {
    "cascade_id": "notes",
    "memory": "lessons",
    "phases": [
        {
            "name": "read",
            "instructions": "Read.",
            "rag": {"directory": "docs"},
            "tackle": ["lessons", "t"],
            "rules": {"max_turns": 5},
            "callouts": "Key",
        },
        {"name": "tell", "instructions": "Tell."},
    ],
}
READ = [call("rag_search", query="harbour", k=2), call("lessons", query="x"), call("t"), "The crane stood still."]


def played(shelf: Shelf | None, cascade: Mapping[str, Any] = CASCADE, read: Sequence[str] = READ) -> Played:
    given: dict[str, Any] = {"retrieval": shelf} if shelf is not None else {}
    return play(cascade, {"read": list(read), "tell": ["told"]}, tools={"t": lambda: "tool says"}, **given)


def test_a_phase_with_rag_is_offered_its_tools_and_a_listed_bank() -> None:
    shelf = Shelf()
    run = played(shelf)
    assert run.outcome.status == "success", run.outcome.reason
    offered = run.of_kind("phase_started")[0].data["tools"]
    assert offered == ["lessons", "t", "rag_search", "rag_read_chunk", "rag_list_sources"]
    assert run.of_kind("phase_started")[1].data["tools"] == []
    folder, bank = shelf.asked[0][0], shelf.asked[1][0]
    assert isinstance(folder, FolderSource)
    assert (folder.rule.directory, folder.file) == ("docs", "test.yaml")
    assert (bank, shelf.asked[1][2]) == (BankSource("lessons"), {"query": "x"})
    assert run.of_kind("tool_finished")[0].data["text"] == "rag_search found harbour"
    assert "Find passages of the documents" in run.texts(0)[0][1]


def test_finished_visits_are_remembered_without_what_searches_found_and_without_calls() -> None:
    shelf = Shelf()
    run = played(shelf)
    texts = [(m.phase, m.text) for m in shelf.kept["lessons"]]
    assert texts == [
        ("read", "Read."),
        ("read", "[Tool result: t]\ntool says"),
        ("read", "The crane stood still."),
        ("tell", "Tell."),
        ("tell", "told"),
    ]
    marked = next(m for m in shelf.kept["lessons"] if m.callout)
    assert (marked.callout, marked.turn, marked.cascade_id) == ("Key", 4, "notes")
    assert run.of_kind("remembered")[0].data == {"bank": "lessons", "count": 5, "fault": ""}


def test_only_the_winner_is_remembered() -> None:
    shelf = Shelf()
    phase = {"name": "vote", "instructions": "Vote.", "soundings": {"factor": 2, "max_parallel": 1}}
    cascade = {"cascade_id": "c", "memory": "m", "phases": [phase]}
    play(cascade, ["red", "blue", '{"winner": 2}'], retrieval=shelf)
    assert [memory.text for memory in shelf.kept["m"]] == ["Vote.", "blue"]


def test_a_failed_run_keeps_its_finished_visits_and_a_stopped_one_nothing() -> None:
    shelf = Shelf()
    failing = CASCADE | {"phases": [CASCADE["phases"][0], {"name": "tell", "instructions": "{{ 1/0 }}"}]}
    assert played(shelf, failing).outcome.status == "failed"
    assert {memory.phase for memory in shelf.kept["lessons"]} == {"read"}
    stopping = {"cascade_id": "c", "memory": "m", "phases": [{"name": "a", "instructions": "x", "human_input": True}]}
    assert play(stopping, ["answer"], retrieval=shelf).outcome.status == "stopped"
    assert "m" not in shelf.kept


def test_a_bank_that_cannot_be_written_is_a_warning() -> None:
    run = played(Shelf("the disk is full"))
    assert run.outcome.status == "success"
    (warning,) = run.of_kind("warning")
    assert warning.data["message"] == "nothing is kept in 'lessons': the disk is full"
    assert run.of_kind("remembered")[0].data["fault"] == "the disk is full"


def test_a_replay_searches_nothing_and_keeps_nothing() -> None:
    run = played(Shelf())
    shelf, sink = Shelf(), ListSink()
    replay = Replay(Recording(run.events))
    base = ports(ScriptedModel([]), tools=run.tools, human=Answers(), sink=sink, retrieval=shelf)
    again = Run(run.definition, {}, run.options, replay.ports(base))
    assert asyncio.run(again.execute()).status == "success"
    assert (replay.asked[Kind.TOOL], shelf.asked, shelf.kept) == (0, [], {})
    assert comparable(sink.events) == comparable(run.events)


def test_a_rerun_searches_anew_behind_the_first_change_and_keeps_what_it_said() -> None:
    run = played(Shelf())
    shelf = Shelf()
    live = ports(ScriptedModel([*READ[1:], "told"]), tools=run.tools, human=Answers(), retrieval=shelf)
    recording = Recording([e for e in run.events if e.place.turn < 2 or e.place.phase != "read"])
    replay = Replay(recording, RESUMED, live)
    again = Run(run.definition, {}, run.options, replay.ports(live))
    assert asyncio.run(again.execute()).status == "success"
    assert [name for _, name, _ in shelf.asked] == ["lessons"]
    assert len(shelf.kept["lessons"]) == 5


@pytest.mark.parametrize("shelf", [None])
def test_without_a_folder_or_bank_the_model_is_told(shelf: None) -> None:
    run = played(shelf)
    assert run.outcome.status == "success"
    results = [event.data for event in run.of_kind("tool_finished")]
    assert [data["is_error"] for data in results] == [True, True, False]


def test_a_tool_of_the_workspace_keeps_its_name_where_there_is_no_rag() -> None:
    cascade = {"cascade_id": "c", "phases": [{"name": "read", "instructions": "x", "tackle": ["rag_search"]}]}
    own = {"rag_search": lambda: "mine"}
    run = play(cascade, {"read": [call("rag_search"), "done"]}, tools=own, retrieval=Shelf())
    assert run.of_kind("tool_finished")[0].data["text"] == "mine"


def test_what_a_search_had_embedded_counts_for_the_run_and_in_its_replay() -> None:
    class Embeds(Shelf):
        async def call(
            self, source: Source, name: str, arguments: Mapping[str, Any], place: Place, index: int
        ) -> ToolResult:
            found = await super().call(source, name, arguments, place, index)
            return replace(found, embedded={"texts": 3, "by": "tiny", "tokens": 30, "cost": 0.25})

    run = played(Embeds(), read=[call("rag_search", query="x"), "done"])
    assert Embeddings.of(run.state.embedded) == Embeddings(3, "tiny", 30, 0.25)
    limited = play(
        CASCADE,
        {"read": [call("rag_search", query="x"), "done"], "tell": ["told"]},
        retrieval=Embeds(),
        options=Options("test", "gpt-4o-mini", max_cost=0.2),
    )
    assert (limited.outcome.status, limited.outcome.reason.startswith("the limit of 0.2")) == ("stopped", True)
    found = Recording(run.events).result(run.of_kind("tool_finished")[0].place, 1)
    assert found is not None
    assert found[2].embedded["cost"] == 0.25
