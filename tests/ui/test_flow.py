"""The flow: the graph of the phases, with the walk, the counts and the costs of a run on it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from tests.engine.support import play
from tests.ui.bench import bench
from tests.ui.snapshot import SIZES
from tests.ui.support import TRIAGE, triage_story
from tests.ui.test_candidates import contested
from tests.ui.test_graphs import REVIEW, graph_session
from tests.ui.test_hostile import ALL, TOGETHER, assert_harmless, hostile_story
from workbench.engine.debugger.stepper import Breakpoint
from workbench.engine.definition import Definition
from workbench.engine.journal.state import RunState
from workbench.language.clean import clean
from workbench.tui.screens.flow import FlowSheet
from workbench.views.cells import flat
from workbench.views.flow import MOST_NODES, FlowDrawing
from workbench.views.flow_layout import HIGH, Layout, laid_out
from workbench.views.graph import FlowRows
from workbench.views.model import Rows
from workbench.views.numbers import spent_words

GRAPH = Definition.of(TRIAGE, "log_triage.yaml").graph


def lines(rows: Rows, width: int = 120) -> list[str]:
    return [rows.row(i, width).text.rstrip() for i in range(len(rows))]


def test_the_ways_that_were_taken_stand_out_and_phases_have_their_numbers() -> None:
    run = RunState.of(triage_story(finished=True).events)
    rows = FlowRows(GRAPH, run)
    found = lines(rows)
    assert [line.split()[:2] for line in found if "▶" not in line] == [
        ["✓", "intake"],
        ["✓", "triage"],
        *([run_sign, name] for run_sign, name in (("✓" if "crash" in run.outputs else "○", "crash"), ("○", "noise"))),
    ]
    (way,) = (line for line in found if line.split()[:2] == ["└━▶", "triage"])
    assert "taken" in way
    assert any("╌▶ noise" in line and "taken" not in line for line in found)
    spent = spent_words(run.figures_of(run.visits[1:2]).spent)
    assert spent in found[2]
    assert f"{run.figures_of(run.visits[1:2]).tokens_in:,}" in found[2]


def test_what_is_said_of_the_ways_stands_in_one_column() -> None:
    rows = lines(FlowRows(PIPELINE, played()))
    found = [re.search(r"▶ (?:↑ )?\S+ +(?=\S)", line) for line in rows if "▶" in line]
    begins = {said.end() for said in found if said is not None}
    assert len(begins) == 1, rows


def test_numbers_stand_near_the_names_on_a_wide_screen() -> None:
    rows = FlowRows(GRAPH, RunState.of(triage_story(finished=True).events))
    assert max(map(len, lines(rows, 200))) <= 110
    assert len(rows.heads(200)[0].text.rstrip()) == max(map(len, lines(rows, 200)))


def test_what_candidates_took_belongs_to_their_phase() -> None:
    run = contested().state
    took = run.figures_of(run.visits)
    graph = Definition.of('{"cascade_id": "c", "phases": [{"name": "generate", "instructions": "x"}]}', "c.json").graph
    outline, drawing = FlowRows(graph, run), FlowDrawing(graph, run, room=120)
    for shown in ("\n".join(lines(outline)), "\n".join(lines(drawing))):
        assert f"{took.tokens_in:,}" in shown


def test_before_a_run_there_is_the_graph_alone() -> None:
    found = lines(FlowRows(GRAPH, None))
    assert found[0].split() == ["○", "intake"]
    assert not any("taken" in line for line in found)


PIPELINE = Definition.of(REVIEW, "review.dot").graph


def played() -> RunState:
    told = {"plan": ["a"] * 2, "code": ["b"] * 2, "docs": ["c"] * 2, "check": ["no\noutcome=fail", "outcome=success"]}
    return play(REVIEW, told, answers=["a"]).state


def test_the_drawing_has_every_node_once_with_its_kind_its_visits_and_its_edges_with_their_conditions() -> None:
    drawing = FlowDrawing(PIPELINE, played())
    text = "\n".join(lines(drawing))
    for node in PIPELINE.nodes:
        assert text.count(f" {node.id} ") == 1, (node.id, text)
    for words in ("fan parallel", "meet join", "route conditional", "ask gate", "×2", "[A] Approve", "[R] Revise"):
        assert words in text, (words, text)
    assert "if outcome=success, weight 2" in text
    assert text.count("▼") == len(PIPELINE.edges)
    assert "━" in text
    assert "╌" in text
    wide = "\n".join(lines(FlowDrawing(PIPELINE, played(), room=200), 200))
    assert "again, if outcome=fail" in wide
    assert wide.count(" tok ~$") + wide.count(" tok unpriced") == wide.count(" tok") > 1, (
        "a cost is left out beside room"
    )
    assert text.count(" tok") == wide.count(" tok"), "a figure has no unit"


def test_no_box_and_no_line_of_a_drawing_covers_another_box() -> None:
    """Random graphs: boxes lie apart, and lines pass beside boxes and end above the one they lead to."""
    for seed in range(60):
        chance = Random(seed)
        names = [f"n{number}" for number in range(chance.randint(1, 14))]
        widths = {name: chance.randint(9, 30) for name in names}
        edges = [(chance.choice(names), chance.choice(names)) for _ in range(chance.randint(0, 24))]
        layout = laid_out(widths, edges, names[0], [chance.choice((0, 0, 12, 40)) for _ in edges])
        cells: dict[tuple[int, int], str] = {}
        for name, box in layout.boxes.items():
            for x in range(box.x, box.x + box.width):
                for y in range(box.y, box.y + HIGH):
                    assert (x, y) not in cells, f"seed {seed}: {name} covers {cells[x, y]}"
                    cells[x, y] = name
        assert len(layout.edges) == len(edges)
        for edge in layout.edges:
            for (ax, ay), (bx, by) in pairwise(edge.points):
                assert ax == bx or ay == by, f"seed {seed}: a line is not straight"
                for x in range(min(ax, bx), max(ax, bx) + 1):
                    for y in range(min(ay, by), max(ay, by) + 1):
                        assert (x, y) not in cells, f"seed {seed}: {edges[edge.number]} runs into {cells[x, y]}"
            x, y = edge.points[-1]
            assert cells[x, y + 1] == edges[edge.number][1], f"seed {seed}: a line ends elsewhere"
            x, y = edge.points[0]
            assert cells[x, y - 1] == edges[edge.number][0], f"seed {seed}: a line begins elsewhere"


DRAWINGS: list[tuple[dict[str, int], str, dict[int, int], int, str]] = [
    ({"a": 9}, "", {}, 0, """
#########
####a####
#########"""),
    ({"a": 9, "b": 12, "c": 7, "d": 9}, "ab ac bd cd", {}, 0, """
        #########
        ####a####
        #########
      00000   111111
      0            1
############    #######
######b#####    ###c###
############    #######
      22222   333333
          2   3
        #########
        ####d####
        #########"""),
    # Ways back are lanes at the right, a label pushes the next box away, a way past a layer has a column of its own.
    ({"a": 9, "b": 12, "c": 7, "d": 9}, "ab ac6 bd cd da4 ad cc", {1: 2}, 80, """
                  4444444444444444
                  4              4
              #########          4
              ####a####          4
              #########          4
      00000000000 1 555555555    4
      0           1 666666666666 4
      0           1 6       5  6 4
      0           1 6       5  6 4
############    #######     5  6 4
######b#####    ###c###     5  6 4
############    #######     5  6 4
      22222222222 3 666666666666 4
                2 3 555555555    4
                2 3 5            4
              #########          4
              ####d####          4
              #########          4
                  4444444444444444"""),
    # Boxes stand in the order in which their ways cross least, near the middle of what they belong to.
    ({"a": 5, "b": 9, "d": 5, "c": 7, "e": 5}, "ab ac cd be", {}, 0, """
        #####
        ##a##
        #####
    000000 111111
    0           1
#########    #######
####b####    ###c###
#########    #######
    3           2
  #####       #####
  ##e##       ##d##
  #####       #####"""),
    ({"a": 5, "d": 5, "c": 7, "b": 9, "e": 5, "f": 15}, "ab ac cd be ae fe fd", {}, 0, """
           #####    ###############
           ##a##    #######f#######
           #####    ###############
            104000000   6     55555
   1111111111 4444444444644444    5
   1       66666666666666    4    5
   1       6        0        4    5
#######    6    #########    4    5
###c###    6    ####b####    4    5
#######    6    #########    4    5
   2222 6666        3       44    5
      2 6           333333334555555
      2 6                  345
     #####                #####
     ##d##                ##e##
     #####                #####"""),
    # What is written on a way down takes room at the right where no box does.
    ({"a": 9, "b": 5}, "ab30 ba bb", {}, 20, """
    111111111111111111111111111
    1                         1
#########                     1
####a####                     1
#########                     1
   0 222222222222222222222222 1
   0 2                      2 1
  #####                     2 1
  ##b##                     2 1
  #####                     2 1
   1 222222222222222222222222 1
   1111111111111111111111111111"""),
]  # fmt: skip


def drawn_layout(layout: Layout) -> list[str]:
    """Boxes are ``#`` with the name in the middle, lines have the numbers of their edges; later ones lie above."""
    cells = [[" "] * layout.width for _ in range(layout.height)]
    for name, box in layout.boxes.items():
        for y in range(box.y, box.y + HIGH):
            cells[y][box.x : box.x + box.width] = "#" * box.width
        cells[box.y + 1][box.middle] = name
    for edge in layout.edges:
        for (ax, ay), (bx, by) in pairwise(edge.points):
            for x in range(min(ax, bx), max(ax, bx) + 1):
                for y in range(min(ay, by), max(ay, by) + 1):
                    cells[y][x] = f"{edge.number:x}"
    return ["".join(row).rstrip() for row in cells]


@pytest.mark.parametrize(("widths", "edges", "rows", "room", "expected"), DRAWINGS)
def test_small_graphs_are_laid_out_like_this(
    widths: dict[str, int], edges: str, rows: dict[int, int], room: int, expected: str
) -> None:
    given = edges.split()
    layout = laid_out(
        widths, [(one[0], one[1]) for one in given], "a", [int(one[2:] or 0) for one in given], room, rows
    )
    shown = drawn_layout(layout)
    assert [row for row in shown if row] == expected.splitlines()[1:]
    assert layout.width == max(map(len, [*shown, ""]))
    assert layout.layers[0][0] == "a"


def test_two_ways_from_a_node_leave_it_alike_and_a_drawing_uses_the_room_for_its_labels() -> None:
    edges, widths = [("a", "b"), ("a", "c")], dict.fromkeys("abc", 15)
    layout = laid_out(widths, edges, "a", [7, 7])
    bends = [len({x for x, _ in edge.points}) - 1 for edge in layout.edges]
    assert bends == [1, 1], "one of two ways alike goes straight down at the side of its box"
    ends = [edge.points[-1][0] - layout.boxes[edges[edge.number][1]].middle for edge in layout.edges]
    assert ends == [0, 0]
    narrow, wide = laid_out(widths, edges, "a", [50, 50], 60), laid_out(widths, edges, "a", [50, 50], 200)
    gaps = [one.boxes["c"].middle - one.boxes["b"].middle for one in (narrow, wide)]
    assert gaps[0] < 50 < gaps[1], "labels are cut beside empty cells"


ROUTER = """\
cascade_id: router
phases:
  - name: read
    instructions: Read.
    handoffs:
      - {target: repair, description: something does not work and may be repaired by the customer}
      - {target: refund, description: 'the customer wants money back, or was charged wrongly'}
  - {name: repair, instructions: Mend it.}
  - {name: refund, instructions: Pay.}
"""


@pytest.mark.parametrize("room", [78, 118])
def test_what_is_written_on_edges_wraps_above_their_arrows(room: int) -> None:
    graph = Definition.of(ROUTER, "router.yaml").graph
    found = lines(FlowDrawing(graph, None, room=room), room)
    words = set(" ".join(found).split())
    for edge in graph.edges:
        assert set(edge.label.split()) <= words, "a label is cut beside free cells"
    assert "…" not in "".join(found)
    for line in found:
        assert line.count("▼") in (0, 2), "arrows to one layer end in several rows"


def test_what_is_written_on_a_loop_wraps_beside_the_line_that_leads_up() -> None:
    beside = [line for line in lines(FlowDrawing(PIPELINE, played(), room=78)) if line.endswith(" ┃ ╎")]
    words = " ".join(" ".join(line.removesuffix(" ┃ ╎").split("  ")[-1] for line in beside).split())
    assert "again, if outcome=fail && context.rounds!=3" in words


async def test_keys_and_the_mouse_go_from_node_to_node_of_the_drawing(tmp_path: Path) -> None:
    async with bench(tmp_path, session=graph_session(tmp_path), given={}) as it:
        it.session.stepper.breakpoints = [Breakpoint("fan")]
        await it.press("r")
        await it.until(lambda: it.presenter.state.held is not None)
        await it.press("v")
        sheet = it.app.screen
        assert isinstance(sheet, FlowSheet)
        drawing = sheet.flow_pane.drawing
        assert drawing is not None
        assert drawing.selected == "fan", "the node where the run is paused is not the first that is looked at"
        lines = [line for part in it.text().splitlines()[2:-1] if (line := part.rstrip("┃ "))]
        free = min(len(line) - len(line.lstrip()) for line in lines), sheet.size.width - max(map(len, lines))
        assert abs(free[0] - free[1]) <= 3, "a drawing that is narrower than the screen is not in its middle"
        await it.pilot.resize_terminal(60, 40)
        await it.until(lambda: sheet.flow_pane.drawing is not None and sheet.flow_pane.drawing.layout.width <= 58)
        drawing = sheet.flow_pane.drawing
        assert drawing is not None
        assert drawing.selected == "fan"
        await it.press("down")
        first = drawing.selected
        await it.press("right" if first == "code" else "left")
        assert {first, drawing.selected} == {"code", "docs"}
        box, pane = drawing.layout.boxes["plan"], sheet.flow_pane
        row = box.y + 1 - round(pane.scroll_y) + pane.head_count
        await it.pilot.click(pane, offset=(box.middle - drawing.shift, row))
        assert drawing.selected == "plan"
        await it.press("v")
        assert "└" in it.text()
        assert sheet.flow_pane.drawing is None
        await it.press("v", "enter")
        await it.until(lambda: len(it.app.screen_stack) == 1)
        assert it.presenter.state.selected is not None
        assert it.presenter.state.selected.phase == "plan"


async def test_a_graph_of_more_nodes_than_fit_is_an_outline(tmp_path: Path) -> None:
    line = " -> ".join(["start", *(f"n{number}" for number in range(MOST_NODES)), "done"])
    nodes = "".join(f'n{number} [prompt="x"] ' for number in range(MOST_NODES))
    text = f"digraph p {{ start [shape=Mdiamond] done [shape=Msquare] {nodes} {line} }}"
    async with bench(tmp_path, session=graph_session(tmp_path, text, "replies: {}", "p.dot"), given={}) as it:
        await it.press("v")
        assert isinstance(it.app.screen, FlowSheet)
        assert it.app.screen.flow_pane.drawing is None
        assert "▶ n3" in it.text()
        await it.press("v")
        await it.until(lambda: "shown as an outline" in it.text())


async def test_v_opens_the_flow_and_enter_goes_to_the_last_call_of_a_phase(tmp_path: Path) -> None:
    async with bench(tmp_path, size=(40, 12), events=triage_story().events) as it:
        for size in ((40, 12), (80, 24), (120, 40), (200, 50)):
            await it.pilot.resize_terminal(*size)
            await it.press("v")
            assert isinstance(it.app.screen, FlowSheet)
            assert "intake" in it.text()
            await it.press("g", "enter")
            await it.until(lambda: len(it.app.screen_stack) == 1)
            assert it.presenter.state.selected is not None
            assert it.presenter.state.selected.phase == "intake"


@pytest.mark.fault("F28", "F29")
async def test_hostile_names_in_the_flow_are_shown_as_they_are(tmp_path: Path) -> None:
    for payload in TOGETHER:
        await show_flow(tmp_path, payload, (80, 24))


@pytest.mark.proof
@pytest.mark.parametrize("size", SIZES.values())
async def test_each_hostile_name_alone_is_shown_as_it_is_in_the_flow(tmp_path: Path, size: tuple[int, int]) -> None:
    for payload in ALL:
        await show_flow(tmp_path, payload, size)


async def show_flow(folder: Path, payload: str, size: tuple[int, int]) -> None:
    """Look at the drawing and the outline of a graph whose phases are called so."""
    payload = payload.replace("\ud800", "")  # No file holds half a character.
    first = {"name": payload, "instructions": "x", "handoffs": [f"{payload}."]}
    text = json.dumps({"cascade_id": "c", "phases": [first, {"name": f"{payload}.", "instructions": "x"}]})
    async with bench(folder, size=size, events=hostile_story(payload, text).events) as it:
        await it.press("v")
        assert isinstance(it.app.screen, FlowSheet)
        name = flat(clean(payload))[:12].strip()
        for form in ("drawing", "outline"):
            assert name in it.text(), form
            assert_harmless(it, payload, form)
            await it.press("v")
