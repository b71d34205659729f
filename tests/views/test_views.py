"""Every view says the same on a screen, in print, on a page and as JSON."""

from __future__ import annotations

import asyncio
import html
import importlib
import inspect
import io
import json
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

import workbench.cli
import workbench.views
from tests.cli.test_output import Terminal
from tests.engine.support import play
from tests.support.command import run_cli
from tests.support.stored import check_stored
from tests.support.workspaces import CASCADE, REPLIES, alone
from workbench.analysis.batch.matrix import BatchPlan, CellResult, Matrix, PlannedVariant
from workbench.analysis.batch.rows import InputRow
from workbench.analysis.batch.scoring import Score, Scorer
from workbench.analysis.changed import AssembledRequest, ChangedCall, ChangedPart
from workbench.analysis.soundings import analysed
from workbench.analysis.sweep import candidates, sweep
from workbench.cli.comparison_options import own_prices, pricings_of
from workbench.cli.printer import Printer
from workbench.context.assembly import Grade, Rule
from workbench.engine.contracts import Listing as Offered
from workbench.engine.contracts import ServerTool, ToolSpec
from workbench.engine.definition import Definition
from workbench.engine.journal.annotations import Change
from workbench.engine.journal.costs import CostSum
from workbench.language.model.mcp import McpServer
from workbench.models.encodings import encodings
from workbench.store.banks import Bank, Banks
from workbench.store.catalog import Member
from workbench.store.index.health import examine
from workbench.store.index.table import Column as Field
from workbench.store.index.table import ResultTable as Answer
from workbench.store.run_filter import find_runs, parse_filter
from workbench.store.text_search import TextSearch
from workbench.views.analysis import AnalysisView
from workbench.views.annotations import AnnotationsView
from workbench.views.batch import BatchesView, BatchView, CellView
from workbench.views.call import CallView
from workbench.views.candidates import CandidateRows, CandidatesView
from workbench.views.cells import Span
from workbench.views.compare import CompareRows, CompareView
from workbench.views.context import ContextRows
from workbench.views.context import View as Looking
from workbench.views.graph import GraphView
from workbench.views.live_runs import LiveRunRows, LiveRunsView
from workbench.views.model import Rows
from workbench.views.numbers import seconds
from workbench.views.page import page
from workbench.views.playground import PlaygroundView, SampleRows
from workbench.views.requests import ChangedView
from workbench.views.result import AnswerView, ResultRows
from workbench.views.run import RunView, stop_words
from workbench.views.runs import RunRows, RunsView
from workbench.views.settings import SettingRows, SettingsView
from workbench.views.snapshots import SnapshotBoard, SnapshotsView
from workbench.views.sweep import SweepRows, SweepView
from workbench.views.timeline import TimelineRows, TimelineView
from workbench.views.tree import TreeRows, TreeView
from workbench.views.value import Block, Cell, FoldedMessages, Heading, Piece, SideBySide, Table, TextBlock, View
from workbench.views.ways import WaysView, ways_doc, ways_of
from workbench.views.workspace import BanksView, HealthView, LinksView, MemoriesView, PermissionsView, ServersView
from workbench.workspace.comparing import compare_strategies, subjects_of
from workbench.workspace.links import SharedLinks
from workbench.workspace.live_runs import LiveResult, next_to_run, plan_live, ran_under
from workbench.workspace.mermaid import RunPath
from workbench.workspace.permissions import manifest_of
from workbench.workspace.playground import Playground, subject_of
from workbench.workspace.project import Project
from workbench.workspace.retrieval import heading
from workbench.workspace.runs_poller import Listing, RunsRequest
from workbench.workspace.settings import TABLE
from workbench.workspace.testing import Snapshots

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


class Example(NamedTuple):
    """A view, the screen that shows the same, and the columns whose fields that screen words otherwise or not."""

    view: View
    rows: Rows | None = None
    elsewhere: Sequence[str] = ()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A workspace with a run of two phases and one with candidates."""
    folder = tmp_path_factory.mktemp("views")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder, folder / "work")
        files = {
            "greet.yaml": CASCADE,
            "greet.replies.yaml": REPLIES,
            "tries.yaml": TRIES,
            "tries.replies.yaml": JUDGED,
        }
        for name, text in files.items():
            Path(name).write_text(text)
        Path("notes.txt").write_text("Ada likes short greetings & <b>no</b> markup.\n" * 9)
        assert run_cli("run", "greet.yaml", "--session", "s").code == 0
        assert run_cli("run", "tries.yaml", "--session", "c").code == 0
        made = Project.at(Path.cwd())
        run_id = made.store.find("s")
        call = made.store.state(run_id).calls[0].place
        made.store.annotate(run_id, Change(tags=("good", "<b>no</b>"), score=4, thumb="up"))
        made.store.annotate(run_id, Change(call, notes=("read the\nwrong log",)))
        yield made


def run(project: Project) -> Example:
    state = state_of(project, "s")
    return Example(RunView(state), TreeRows(state, TreeView(unfolded=True)), ("step", "status", ""))


def timeline(project: Project) -> Example:
    view = TimelineView(state_of(project, "s"))
    return Example(view, TimelineRows(view.timeline), ("kind", "status", ""))


def annotated(project: Project) -> Example:
    return Example(AnnotationsView("s", project.store.annotations(project.store.find("s"))))


def links(project: Project) -> Example:
    shared = SharedLinks(project)
    shared.make(project.store.find("s"), "s")
    return Example(LinksView(shared.all()))


def runs(project: Project) -> Example:
    wanted = parse_filter("", datetime.now().astimezone())
    found = list(find_runs(project.store.runs(), wanted, TextSearch(project.store)))
    listing = Listing(RunsRequest(), [Member(one.run) for one in found])
    return Example(RunsView(found), RunRows(listing), ("status", "started", "in", "out", "cascade", "model"))


def call(project: Project) -> Example:
    state = state_of(project, "s")
    found = state.calls[-1]
    return Example(CallView(found, {}), ContextRows(found, Looking(unfold=True)), ("", "why", "cached"))


def contests(project: Project) -> Example:
    state = state_of(project, "c")
    rows = CandidateRows(state, next(iter(state.contests)))
    return Example(
        CandidatesView(state, list(state.contests), texts=True), rows, ("status", "", "checks", "#", "mutation")
    )  # Cut to 44 cells.


def comparison(project: Project) -> Example:
    state = state_of(project, "s")
    prices = pricings_of(own_prices(project, None), ("openai/gpt-4.1-mini",), None)[0].prices
    found = compare_strategies(state, ("snowball", "mask(after=1,min_masked_size=10)"), prices)
    view = CompareView(found, "s", is_what_if=True, at=found.differing[0], texts=True)
    return Example(view, CompareRows(found, "s"))


def swept(project: Project) -> Example:
    subjects, _ = subjects_of(
        project.store, [summary.run_id for summary in project.store.runs() if summary.name == "s"]
    )
    tried = candidates(("mask(after=1..2,min_masked_size=10)",), [subject.definition for subject in subjects])
    found = sweep(subjects, tried, encodings(), pricings_of(own_prices(project, None), ("openai/gpt-4.1-mini",), None))
    return Example(SweepView(found), SweepRows(found, "s", len(found.rows), is_over=True), ("★",))


def graph(project: Project) -> Example:
    opened = project.open(Path("greet.yaml")).graph
    assert opened is not None
    return Example(GraphView(opened, RunPath(state_of(project, "s"))))


def ways(project: Project) -> Example:
    """The edges of a pipeline whose labels and conditions hold markup."""
    text = """digraph p { start [shape=Mdiamond] done [shape=Msquare] a [shape=diamond]
      start -> a; a -> done [label="<b>no</b> markup", weight=2]; a -> start [condition="x=a & b"] }"""
    definition = Definition.of(text, "p.dot")
    return Example(WaysView(ways_of(definition.graph, play(text, {}).state), "p.dot"))


def answer(project: Project) -> Example:
    fields = (Field("session", "String"), Field("tokens", "Int64"), Field("cost", "Nullable(Float64)"))
    table = Answer(fields, (("a & <b>", 1812, 0.25), ("日本", 7, None)))
    return Example(AnswerView(table), ResultRows(table))


def settings(project: Project) -> Example:
    found = project.settings
    rows = SettingRows(TABLE, found, (project.folders.config / "config.yaml", project.root / "workbench.yaml"), {})
    return Example(SettingsView(TABLE, found, {"model": "m"}), rows, ("from",))  # "user file" for a long path.


def snapshots(project: Project) -> Example:
    assert run_cli("test", "freeze", "s", "--name", "greets", "--description", "How Ada is greeted").code == 0
    (project.root / "snapshots" / "torn.json").write_text("{")
    listed = Snapshots(project).listed()
    board = SnapshotBoard("snapshots")
    board.listed(listed)
    return Example(SnapshotsView(listed), board.list(), ("tests", "cascade", "about"))  # Told in the pane beside it.


def health(project: Project) -> Example:
    report = examine(project.store, project.unsaved)
    return Example(HealthView(report, {"model": "m", "tmux": "installed"}, {"OLD_NAME": "set NEW_NAME"}))


def servers(project: Project) -> Example:
    spec = ToolSpec("clock__now", "The time.\nOf the day.", (), {"type": "object"}, side_effects=False)
    tool, gone = ServerTool("clock", "now", spec), McpServer(command="/no/such/program")
    return Example(
        ServersView(
            [
                ("clock", McpServer(command=("clock", "--utc")), Offered((tool,), refused=("'b d' is not a name",))),
                ("gone", gone, Offered(fault="there is no program '/no/such/program'")),
            ]
        )
    )


def permissions(project: Project) -> Example:
    Path("net.yaml").write_text(
        "cascade_id: net\nmcp: {clock: {command: [clock]}}\nphases: [{name: p, instructions: x}]\n"
    )
    manifest = manifest_of(project, (Path("net.yaml"),))
    assert manifest.capabilities
    return Example(PermissionsView("/work", manifest, manifest.capabilities, "asks for"))


def banks(project: Project) -> Example:
    return Example(BanksView([(bank, bank.memories()) for bank in _banks(project)]))


def memories(project: Project) -> Example:
    (bank,) = _banks(project)
    return Example(MemoriesView([(heading(memory), memory) for memory in bank.memories()]))


def _banks(project: Project) -> list[Bank]:
    Path("mem.yaml").write_text(CASCADE.replace("cascade_id: greet", "cascade_id: mem\nmemory: answered"))
    Path("mem.replies.yaml").write_text(REPLIES)
    assert run_cli("run", "mem.yaml").code == 0
    banks = Banks(project.store.root)
    return [banks.bank(name) for name in banks.names()]


def analysis(project: Project) -> Example:
    return Example(AnalysisView("tries.yaml", 1, analysed([state_of(project, "c")])))


def changed(project: Project) -> Example:
    state = state_of(project, "s")
    old, new = (AssembledRequest.of_call(call, state) for call in state.calls[:2])
    rule = Rule("phases.0.rules", 7)
    part = ChangedPart("reworded", "message 2 was reworded", "Hello, Ada", "Hello, <b>Bob</b>", rule)
    return Example(ChangedView(ChangedCall(state.calls[0].place, old, new, (part,)), "greet.yaml"))


def samples(project: Project) -> Example:
    state = state_of(project, "s")
    playground = Playground(project, subject_of(project, state, state.calls[0].place))
    plan = playground.plan(["offline"], 2)
    found = asyncio.run(playground.send(plan))
    return Example(PlaygroundView(playground.subject, plan, found), SampleRows(found), ("status", "#", "in", "out"))


def batch_matrix() -> Matrix:
    rows = (
        InputRow(1, "rows.jsonl:1", {"name": "Ada <b>no</b>"}, {"name": "Ada <b>no</b>", "expected": "Hello"}),
        InputRow(2, "rows.jsonl:2", {"name": "Bob"}, {"name": "Bob", "expected": "Hi"}),
        InputRow(3, "rows.jsonl:3", fault="'name' missing"),
    )
    variants = (PlannedVariant("model=a", "greet.yaml"), PlannedVariant("model=b", "greet.yaml"))
    cells = {f"{row}{variant}": (row, variant, 0) for row in range(2) for variant in range(2)}
    right, wrong = {"exact": Score(1.0)}, {"exact": Score(0.0, "too long")}
    results = {
        "00": CellResult("success", "", "Hello", "r1", "s1", 0.0125, 0.0125, 90, 7, 1.25, 1, right),
        "01": CellResult(
            "success", "", "Hello, you", "r2", "s2", 0.0025, 0.0025, 95, 3, 0.5, 1, wrong, grade=Grade.ESTIMATE
        ),
        "10": CellResult("failed", "no answer", "", "r3", "s3", None, 0.0, 12, 0, 0.25, 2),
    }
    plan = BatchPlan("greet-1", "rows.jsonl", rows, variants, cells, 1, (Scorer.parse("exact"),))
    return Matrix(plan, results)


def batch(project: Project) -> Example:
    return Example(BatchView(batch_matrix()))


def batch_cell(project: Project) -> Example:
    return Example(CellView(batch_matrix(), 0, 1))


def batches(project: Project) -> Example:
    return Example(BatchesView([batch_matrix()]))


def ran_live(project: Project) -> Example:
    wanted = [summary.run_id for summary in project.store.runs() if summary.name == "s"]
    subjects, _ = subjects_of(project.store, wanted)
    tried = candidates(("mask(after=1,min_masked_size=10)",), [subject.definition for subject in subjects])
    found = sweep(subjects, tried, encodings(), pricings_of(own_prices(project, None), ("openai/gpt-4.1-mini",), None))
    found = replace(found, ran=ran_under(project.store, subjects, tried))
    plan = plan_live(project, subjects, found, next_to_run(found, 1))
    results = (
        LiveResult(plan.runs[0], "success", "", "l-1", "An [b]answer\x1b[31m\u202e", CostSum(0.0012), 1.2),
        LiveResult(plan.runs[0], "failed", "a\x1b]0;reason\x07"),
    )
    return Example(LiveRunsView(plan, results), LiveRunRows(plan, results, is_over=True), ("status",))


EXAMPLES: dict[type[View], Callable[[Project], Example]] = {
    RunView: run,
    TimelineView: timeline,
    AnnotationsView: annotated,
    LinksView: links,
    RunsView: runs,
    CallView: call,
    CandidatesView: contests,
    CompareView: comparison,
    SweepView: swept,
    GraphView: graph,
    WaysView: ways,
    AnswerView: answer,
    SettingsView: settings,
    SnapshotsView: snapshots,
    HealthView: health,
    ServersView: servers,
    PermissionsView: permissions,
    BanksView: banks,
    MemoriesView: memories,
    AnalysisView: analysis,
    ChangedView: changed,
    PlaygroundView: samples,
    BatchView: batch,
    CellView: batch_cell,
    BatchesView: batches,
    LiveRunsView: ran_live,
}


MOVING = (HealthView, LinksView, MemoriesView, PlaygroundView, RunsView, TimelineView)
"""Views of disks, random keys and days, and those whose columns follow from how long a call took."""
TIMED = (CallView, CandidatesView, RunView)
"""Views whose screens have columns as wide as the times in them."""
STORED = Path(__file__).parent / "stored"
CHANGING = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"\b[0-9a-f]{32,64}\b", "<hash>"),
    (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?)?", "<time>"),
    (r"(<1|\b\d+) ms\b|\b\d+(\.\d+)?s\b", "<a moment>"),
    (r"(duration_s|overhead_s|inside_s|seconds|\w+_at|took)\": [\d.e-]+", r'\1": <seconds>'),
    (r" {2,}", "  "),
    (r"\noverhead  <a moment>[^\n]*", ""),
    (r"─+", "─"),
)


def state_of(project: Project, session: str) -> Any:
    return project.store.state(next(one.run_id for one in project.store.runs() if one.name == session))


def test_no_view_is_forgotten_here() -> None:
    for module in pkgutil.iter_modules(workbench.views.__path__):
        importlib.import_module(f"workbench.views.{module.name}")
    assert set(View.__subclasses__()) == set(EXAMPLES)


def test_no_command_lays_out_a_table_of_its_own() -> None:
    for module in pkgutil.walk_packages(workbench.cli.__path__, "workbench.cli."):
        if module.name != "workbench.cli.printer":
            source = inspect.getsource(importlib.import_module(module.name))
            assert not re.search(r"\b(Column|Table)\(", source), module.name


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_print_and_page_say_every_word_of_a_view(kind: type[View], project: Project) -> None:
    view = EXAMPLES[kind](project).view
    stream = io.StringIO()
    Printer(plain=True, stream=stream).show(view.blocks())
    printed = squeezed(stream.getvalue())
    shown = page("A <title>", "all of it", view.blocks())
    assert "<script" not in shown
    assert "<b>no</b>" not in shown
    read = squeezed(html.unescape(re.sub(r"<[^>]*>", " ", shown.partition("<body>")[2])))
    said = list(words_of(view.blocks()))
    assert said
    for text, plain in said:
        assert squeezed(plain) in printed
        assert squeezed(text) in read


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_a_screen_says_every_field_of_its_view(kind: type[View], project: Project) -> None:
    view, rows, elsewhere = EXAMPLES[kind](project)
    if rows is None:
        return
    rows.lay_out(400)
    drawn = [*(row.text for row in rows.heads(400)), *(rows.row(index, 400).text for index in range(len(rows)))]
    # A sum that fills its column is written without the 0 before the point.
    screen = "\n".join(drawn).replace("$0.", "$.")
    for table in (block for block in view.blocks() if isinstance(block, Table)):
        for row in table.rows:
            for column, piece in zip(table.columns, row, strict=True):
                text = (piece if isinstance(piece, str) else piece.text).replace("$0.", "$.")
                assert column.title in elsewhere or text.removeprefix("↪ ") in screen, (column.title, text)


@pytest.mark.parametrize("kind", [kind for kind in EXAMPLES if kind not in MOVING], ids=lambda kind: kind.__name__)
def test_a_view_is_the_stored_one(kind: type[View], project: Project) -> None:
    view, rows, _ = EXAMPLES[kind](project)
    stream = io.StringIO()
    Printer(plain=True, stream=stream).show(view.blocks())
    parts = [stream.getvalue(), json.dumps(view.json(), indent=1, ensure_ascii=False)]
    cells = [piece for piece in pieces_of(view.blocks()) if isinstance(piece, Cell) and piece.token]
    parts.append("\n".join(coloured([cell]) for cell in cells if cell.text.strip()))
    for width, drawn in ((60, lambda row: row.text.rstrip()), (120, lambda row: coloured(row.spans, row.tone))):
        if rows is not None and kind not in TIMED:
            rows.lay_out(width)
            parts.append("\n".join(drawn(rows.row(index, width)) for index in range(len(rows))))
    check_stored(STORED / f"{kind.__name__}.txt", still("\n\n".join(parts), project) + "\n")


def coloured(spans: Iterable[Cell | Span], tone: str = "") -> str:
    """Texts on one line, those that are not plain each with its token, and the tone of the line."""
    told = [(span.text, span.token) if isinstance(span, Cell) else span for span in spans]
    line = "".join(text if token == "plain" or not text.strip() else f"⟨{token}:{text}⟩" for text, token in told)
    return line.rstrip() + (f" ⟨{tone}⟩" if tone else "")


def still(text: str, project: Project) -> str:
    """Without what another run of the tests has otherwise: folders, ids, times."""
    text = text.replace(str(project.root), "<folder>").replace(str(project.root.parent), "<home>")
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text)
    return text


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_json_holds_every_whole_number_of_a_view(kind: type[View], project: Project) -> None:
    view = EXAMPLES[kind](project).view
    known = set(numbers_of(json.loads(json.dumps(view.json(), allow_nan=False))))
    for table in (block for block in view.blocks() if isinstance(block, Table)):
        for row in table.rows:
            for column, piece in zip(table.columns, row, strict=True):
                text = (piece if isinstance(piece, str) else piece.text).lstrip("~≈")
                if column.title != "#" and re.fullmatch(r"\d[\d,]*", text):
                    assert int(text.replace(",", "")) in known, (column.title, text)


def squeezed(text: str) -> str:
    return re.sub(r"[\s⟦⟧]+", "", text)


def words_of(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    """All that blocks say: with signs, and in words alone."""
    return map(said, pieces_of(blocks))


def pieces_of(blocks: Iterable[Block]) -> Iterator[Piece]:
    """All that blocks say."""
    for block in blocks:
        if isinstance(block, Table):
            yield from (piece for row in block.rows for piece in row)
            yield from block.below
        elif isinstance(block, TextBlock | Heading):
            yield block.text
        elif isinstance(block, SideBySide):
            for note in block.notes:
                yield from note
            for row in block.rows:
                if isinstance(row, FoldedMessages):
                    yield row.words
        elif isinstance(block, tuple):
            yield from block


def said(piece: Piece) -> tuple[str, str]:
    cell = Cell(piece) if isinstance(piece, str) else piece
    return cell.text, cell.text if cell.words is None else cell.words


def numbers_of(value: Any) -> Iterator[int]:
    """All whole numbers of a JSON document, and the sums of those under one name in a list of objects."""
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers_of(each)
    elif isinstance(value, list):
        yield len(value)
        for each in value:
            yield from numbers_of(each)
        found = [one["usage"]["output"] or 0 for one in value if isinstance(one, dict) and "usage" in one]
        yield sum(found)
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == int(value):
        yield int(value)


def test_the_longest_bar_of_a_sweep_takes_all_its_room(project: Project) -> None:
    whole = swept(project).rows
    assert isinstance(whole, SweepRows)
    smaller = SweepRows(replace(whole.sweep, rows=whole.sweep.rows[1:]), "s", 3, is_over=True)
    longest = [max(rows.row(i, 200).text.count("━") for i in range(len(rows))) for rows in (whole, smaller)]
    assert longest == [56, 56], "of tokens and of cost, also where nothing is as large as the strategy of the file"


def test_a_long_input_and_output_of_a_run_are_cut_before_they_leave(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = EXAMPLES[RunsView](project).view
    assert isinstance(view, RunsView)
    found = [replace(one, run=replace(one.run, input="x" * 60, output="y" * 60)) for one in view.found]
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    Printer(stream=stream).show(RunsView(found).blocks())
    head, first, *_ = stream.bare()
    assert "input" in head
    assert "xxx…  yyy" in first
    assert first.endswith("yyy…"), "cascade and model leave before"


def test_at_the_last_node_nothing_follows() -> None:
    text = "digraph p { start [shape=Mdiamond] done [shape=Msquare] start -> done }"
    graph, visits = Definition.of(text, "p.dot").graph, play(text, {}).state.visits
    said = [ways_doc(graph, visit, "", "p.dot").lines[0].text.split("   ")[0] for visit in visits]
    assert said == ["→ done", "nothing follows"]


def test_a_phase_without_a_model_has_a_time_and_no_tokens(project: Project) -> None:
    """The phase took as long in print as on the screen, though no call tells how long."""
    Path("wait.yaml").write_text("cascade_id: wait\nphases: [{name: p, tool: linux_shell, inputs: {command: date}}]\n")
    assert run_cli("run", "wait.yaml", "--session", "w").code == 0
    state = state_of(project, "w")
    (table,) = (block for block in RunView(state).blocks() if isinstance(block, Table))
    fields = dict(zip((column.title for column in table.columns), table.rows[0], strict=True))
    assert fields["in"] == fields["out"] == fields["cost"] == ""
    assert state.visits[0].seconds is not None
    assert fields["time"] == seconds(state.visits[0].seconds)
    assert TreeRows(state, TreeView()).row(0, 120).text.rstrip().endswith(fields["time"])


def test_what_is_counted_from_an_estimate_has_its_sign_everywhere(project: Project) -> None:
    """The offline model counts nothing: whatever is told of its tokens is an estimate, and 0 alone has no sign."""
    call = state_of(project, "s").calls[-1]
    told = ContextRows(call, Looking()).heads(200)
    words = "\n".join(row.text for row in told)
    assert re.search(r"sends ~\d", words), words
    assert re.search(r"cached 0\b", words), words
    for kind in (RunView, CallView, CandidatesView):
        for table in (block for block in EXAMPLES[kind](project).view.blocks() if isinstance(block, Table)):
            for row in table.rows:
                for column, piece in zip(table.columns, row, strict=True):
                    text = piece if isinstance(piece, str) else piece.text
                    if column.title in ("in", "full", "sent", "tokens"):
                        assert not re.fullmatch(r"[1-9][\d,]*", text), (column.title, text)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("look/1/1/2/1 (before_call)", "look:2"),
        ("look/1/1/0/0 (before_phase)", "look"),
        ("look/1/1/2/1 (after_tool)", "look:2 (after tool)"),
        ("look/2/3/1/1 (after_call)", "look#2:1 attempt 3 (after call)"),
        ("somewhere", "somewhere"),
    ],
)
def test_a_stop_is_named_as_people_read_it(at: str, words: str) -> None:
    assert stop_words(at) == words
