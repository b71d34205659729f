"""Tags, notes, scores and thumbs: kept beside the run, whoever writes it, and whoever else says something."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.conftest import ROOT, Observed
from tests.store.examples import RUN, extend, plain_run, save
from tests.support.waiting import PATIENCE
from workbench.context.place import Place
from workbench.engine.journal.annotations import Annotation, AnnotationError, Annotations, Change, Labels
from workbench.store.catalog import Catalog
from workbench.store.faults import StoreError, UnknownRun
from workbench.store.index.health import examine
from workbench.store.journal import annotation_file
from workbench.store.store import Store

CALL = Place("", "sort", 1, 1, 2, 1)
TAGS = ("a", "b", "c")
CHANGES = st.builds(
    Change,
    st.sampled_from((Place(), CALL)),
    tags=st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
    untag=st.lists(st.sampled_from(TAGS), max_size=1).map(tuple),
    notes=st.lists(st.sampled_from(("one", "two\nlines")), max_size=1).map(tuple),
    score=st.none() | st.sampled_from((0, 1.5)),
    thumb=st.sampled_from(("", "up", "down")),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    save(store, plain_run())
    return store


def said_by(name: str, known: Annotations, changes: list[Change]) -> list[Annotation]:
    """What a window adds that knows what it read and what it said itself."""
    made: list[Annotation] = []
    for number, change in enumerate(changes):
        ids = (f"{name}{number}.{step}" for step in count())
        made += change.records(Annotations((*known.records, *made)), f"2026-01-01T00:00:{number:02d}Z", ids)
    return made


@given(st.lists(CHANGES, max_size=4), st.lists(CHANGES, max_size=4), st.lists(CHANGES, max_size=4), st.randoms())
def test_what_two_windows_say_at_once_is_all_kept_in_any_order(
    before: list[Change], one: list[Change], other: list[Change], chance: object
) -> None:
    base = Annotations(said_by("base", Annotations(), before))
    first, second = said_by("one", base, one), said_by("other", base, other)
    together = [*base.records, *first, *second]
    merged = Annotations(together)
    chance.shuffle(together)  # type: ignore[attr-defined]
    assert Annotations(together) == merged
    assert Annotations([*together, *together]) == merged
    for place in (Place(), CALL):
        alone = [Annotations((*base.records, *made)).at(place) for made in (first, second)]
        new = [
            {one.value for one in made if one.place == place and one.kind in ("tag", "note")}
            for made in (first, second)
        ]
        for labels, added in zip(alone, new, strict=True):
            kept = {*merged.at(place).tags, *merged.at(place).notes}
            assert added & {*labels.tags, *labels.notes} <= kept


def test_two_processes_that_tag_a_run_at_the_same_time_lose_nothing(store: Store) -> None:
    program = (
        "import sys; from pathlib import Path; from workbench.store.store import Store\n"
        "from workbench.engine.journal.annotations import Change\n"
        "store = Store(Path(sys.argv[1]))\n"
        f"for n in range(30): store.annotate('{RUN}', Change(tags=(sys.argv[2] + str(n),)))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(store.root), name], cwd=ROOT) for name in ("left", "right")
    ]
    assert [process.wait(timeout=PATIENCE) for process in started] == [0, 0]
    wanted = {f"{name}{number}" for name in ("left", "right") for number in range(30)}
    assert set(store.annotations(RUN).run.tags) == wanted


def test_a_run_that_is_being_written_is_annotated_and_its_journal_stays_as_it_is(tmp_path: Path) -> None:
    store, events = Store(tmp_path / "store"), plain_run()
    with store.create(RUN) as journal:
        extend(journal, events[:4])
        segment = store.folder(RUN) / "000001.jsonl"
        before = segment.read_bytes()
        store.annotate(RUN, Change(tags=("live",)))
        assert segment.read_bytes() == before
        extend(journal, events[4:])
    assert store.summary(RUN).labels == Labels(("live",))
    assert store.state(RUN).annotations.run.tags == ("live",)
    assert store.health(RUN).whole


def test_what_was_said_can_be_taken_back_and_said_once_is_said_once(store: Store) -> None:
    store.annotate(RUN, Change(tags=("good", "#good", "slow"), notes=("A note.",), score=3, thumb="up"))
    store.annotate(RUN, Change(tags=("good",), notes=(" A note. ",), score=3, thumb="up"))
    assert len(store.annotations(RUN).records) == 5
    said = store.annotate(RUN, Change(untag=("good", "never"), score=4, thumb="down"))
    assert said.run == Labels(("slow",), ("A note.",), 4.0, "down")
    gone = store.annotate(RUN, Change(untag=("slow",), drop_notes=("A note.",), drop_score=True, drop_thumb=True))
    assert not gone
    assert store.annotations(RUN) == gone


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(tags=("two words",)), "'two words' is not a tag: one word"),
        (Change(tags=("",)), "'' is not a tag"),
        (Change(tags=("x" * 65,)), "at most 64 characters"),
        (Change(tags=("a,b",)), "without commas"),
        (Change(notes=("  ",)), "a note needs a text"),
        (Change(notes=("x" * 10_001,)), "a note has at most 10,000 characters; this one has 10,001"),
        (Change(score=float("nan")), "'nan' is not a score: a number"),
        (Change(score=float("inf")), "'inf' is not a score"),
        (Change(thumb="sideways"), "'sideways' is not a thumb: up or down"),
    ],
)
def test_what_is_no_annotation_is_refused_and_nothing_is_written(store: Store, change: Change, words: str) -> None:
    with pytest.raises(AnnotationError, match=words):
        store.annotate(RUN, change)
    assert not store.annotations(RUN)


def test_hostile_text_is_plain_before_it_is_kept(store: Store) -> None:
    said = store.annotate(RUN, Change(tags=("\x1b[31mred\u202e",), notes=("a\x1b]0;title\x07b",)))
    kept = (store.folder(RUN) / "annotations.jsonl").read_bytes()
    assert b"\\u001b" not in kept
    assert b"\\u202e" not in kept
    assert not {"\x1b", "\x07", "\u202e"} & set("".join((*said.run.tags, *said.run.notes)))


def test_a_write_that_was_cut_off_costs_its_own_line_alone(store: Store) -> None:
    file = store.folder(RUN) / "annotations.jsonl"
    store.annotate(RUN, Change(tags=("first",)))
    store.annotate(RUN, Change(tags=("second",)))
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    assert store.annotate(RUN, Change(tags=("third",))).run.tags == ("first", "third")
    assert store.annotations(RUN).run.tags == ("first", "third")
    (problem,) = examine(store).problems
    assert problem == f"run {RUN}: 1 line of annotations.jsonl is damaged"


def test_every_flipped_bit_is_noticed(store: Store) -> None:
    file = store.folder(RUN) / "annotations.jsonl"
    store.annotate(RUN, Change(tags=("first",)))
    whole = file.read_bytes()
    for at in range(len(whole) - 1):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        found = annotation_file.read(store.folder(RUN))
        assert found.damaged or not found.annotations, at


def test_lists_of_runs_see_what_another_process_said(store: Store) -> None:
    catalog, other = Catalog(store), Store(store.root)
    catalog.look()
    assert not catalog.look()
    other.annotate(RUN, Change(CALL, tags=("odd",)))
    assert catalog.look()
    assert catalog.runs[0].call_labels == ((str(CALL), Labels(("odd",))),)


def test_runs_that_can_only_be_read_are_not_annotated(tmp_path: Path, store: Store) -> None:
    other = Store(tmp_path / "other", fixed=store.root)
    with pytest.raises(StoreError, match="can only be read"):
        other.annotate(RUN, Change(tags=("x",)))
    with pytest.raises(UnknownRun):
        store.annotate("nowhere", Change(tags=("x",)))


# -- in the tables ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def seen(observe: Callable[[str], Observed]) -> Observed:
    return observe("annotations")


SAID: Observed = {
    "runs": [[["good", "slow"], "", 4, "", '{"log":"x"}']],
    "rows": [
        ["cascade_start", ["good", "slow"], "", 4, ""],
        ["agent", ["odd"], "read the\nwrong log", None, "down"],
    ],
}
LESS: Observed = {
    "runs": [[["slow"], "", None, "", '{"log":"x"}']],
    "rows": [["cascade_start", ["slow"], "", None, ""], SAID["rows"][1]],
}


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        ("said", SAID),
        ("after the run went on", SAID),
        ("taken back", LESS),
        ("opened again", LESS),
        ("rebuilt", LESS),
        ("file gone", {"runs": [[[], "", None, "", '{"log":"x"}']], "rows": []}),
    ],
)
def test_columns_say_what_holds(seen: Observed, when: str, wanted: Observed) -> None:
    assert seen[when] == wanted


def test_the_table_of_records_keeps_what_no_longer_holds(seen: Observed) -> None:
    records = {(kind, tag, note, score, thumb): holds for kind, tag, note, score, thumb, holds, _, _ in seen["records"]}
    assert records == {
        ("tag", "good", "", None, ""): False,
        ("tag", "slow", "", None, ""): True,
        ("score", "", "", 4, ""): False,
        ("tag", "odd", "", None, ""): True,
        ("note", "", "read the\nwrong log", None, ""): True,
        ("thumb", "", "", None, "down"): True,
        ("removed", "", "", None, ""): False,
    }
