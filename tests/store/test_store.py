"""The folder of runs: who may write, what is listed, what a name means."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.examples import RUN, FailingDisk, Writer, extend, flipped, plain_run, save
from workbench.context.place import Place
from workbench.engine.journal.event import Event
from workbench.store.catalog import Catalog
from workbench.store.faults import StoreBusy, StoreError, UnknownRun
from workbench.store.index.health import fix
from workbench.store.store import Store
from workbench.store.summary import Summarizer

OTHER = "0190a000-0000-7000-8000-000000000002"


def test_the_folder_is_made_with_the_first_run_and_is_private(tmp_path: Path) -> None:
    store = Store(tmp_path / ".workbench")
    assert store.runs() == []
    assert not store.root.exists()
    save(store, plain_run())
    assert store.root.stat().st_mode & 0o777 == 0o700
    assert (store.root / ".gitignore").read_text() == "*\n"


def test_a_stored_run_folds_to_its_state(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    state = store.state(RUN)
    assert (state.status, state.session_id, len(state.calls), state.own.cost) == ("success", "demo", 2, 0.5)
    assert state.calls[0].answer is not None
    assert state.calls[0].answer.text.startswith("Turn 1")


def test_a_run_without_an_end_is_running_while_its_writer_lives_and_interrupted_after(tmp_path: Path) -> None:
    store = Store(tmp_path)
    journal = store.create(RUN)
    extend(journal, plain_run(status=""))
    assert store.state(RUN).status == "running"
    assert [(run.status, run.pid) for run in store.runs()] == [("running", os.getpid())]
    journal.close()
    assert store.state(RUN).status == "interrupted"
    assert [(run.status, run.pid) for run in store.runs()] == [("interrupted", None)]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, ""),
        ("a line", "a line"),
        ({"log": "x", "size": 2, "deep": {"a": [None]}}, 'log: x\nsize: 2\ndeep: {"a": [null]}'),
        ([1, "b"], '[1, "b"]'),
    ],
)
def test_a_summary_shows_the_input_in_lines(given: object, text: str) -> None:
    fold = Summarizer(RUN)
    fold.apply(Writer().event("run_started", input=given))
    assert fold.summary().input == text


def test_a_summary_says_what_the_fold_says(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run(turns=5))
    state, run = store.state(RUN), store.summary(RUN)
    assert (run.status, run.session_id, run.cascade_id, run.started, run.finished, run.seq) == (
        state.status,
        state.session_id,
        state.cascade_id,
        state.started,
        state.finished,
        state.seq,
    )
    assert (run.tokens_in, run.grade_in, run.tokens_out, run.cost, run.unknown_costs, run.calls) == (
        state.own.tokens_in,
        state.own.grade_in,
        state.own.tokens_out,
        state.own.cost,
        state.own.spent.unbilled,
        len(state.calls),
    )
    assert run.phases == ("sort",)


@pytest.mark.parametrize("kept", ["missing", "stale", "damaged", "newer"])
def test_a_summary_that_cannot_be_trusted_is_made_again(tmp_path: Path, kept: str) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    expected = store.summary(RUN)
    file = store.folder(RUN) / "summary.json"
    match kept:
        case "missing":
            file.unlink()
        case "stale":
            body = json.loads(file.read_text())
            body["segments"] = {"000001.jsonl": 7}
            body["summary"]["status"] = "failed"
            file.write_text(json.dumps(body))
        case "damaged":
            file.write_bytes(flipped(file.read_bytes(), 0))
        case "newer":
            file.write_text('{"format": 99}')
    assert store.summary(RUN) == expected
    assert store.summary(RUN) == expected


def test_a_kept_summary_is_not_trusted_over_a_journal_that_was_damaged_since(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    assert store.summary(RUN).fault == ""
    segment = store.folder(RUN) / "000001.jsonl"
    stat, data = segment.stat(), segment.read_bytes()
    segment.write_bytes(flipped(data, len(data) * 4))
    os.utime(segment, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    damaged = store.summary(RUN)
    assert damaged.fault.startswith("000001.jsonl damaged at byte ")
    assert store.summary(RUN) == damaged, "the summary of a damaged run is kept too"


def test_a_damaged_run_whose_journal_was_put_back_is_whole_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    folder = store.folder(RUN)
    segment, kept = folder / "000001.jsonl", folder / "summary.json"
    whole = segment.read_bytes()
    segment.write_bytes(flipped(whole, 20))
    kept.unlink()
    assert store.summary(RUN).damaged
    segment.write_bytes(whole)
    os.utime(segment, ns=(kept.stat().st_mtime_ns + 1,) * 2)
    assert not store.summary(RUN).damaged


def test_a_resumed_run_goes_on_in_a_new_segment(tmp_path: Path) -> None:
    store = Store(tmp_path)
    events = plain_run()
    save(store, events)
    w = Writer(seq=len(events))
    later = [w.event("run_resumed"), w.event("run_finished", status="failed", reason="limit")]
    with store.append_to(RUN) as journal:
        assert journal.seq == len(events)
        assert store.summary(RUN).status == "success"
        journal.append(later[0])
        assert store.summary(RUN).status == "running"
        journal.append(later[1])
    assert list(store.events(RUN)) == events + later
    assert sorted(path.name for path in store.folder(RUN).glob("*.jsonl")) == ["000001.jsonl", "000002.jsonl"]
    assert (store.summary(RUN).status, store.summary(RUN).calls) == ("failed", 2)


def test_a_torn_run_resumes_after_its_last_whole_record(tmp_path: Path) -> None:
    store = Store(tmp_path)
    events = plain_run()
    save(store, events)
    segment = store.folder(RUN) / "000001.jsonl"
    segment.write_bytes(segment.read_bytes()[:-5])
    torn = segment.read_bytes()
    with store.append_to(RUN) as journal:
        journal.append(events[-1])
    assert segment.read_bytes() == torn
    assert list(store.events(RUN)) == events
    assert store.health(RUN).whole


def test_a_damaged_run_can_be_read_but_not_continued(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    segment = store.folder(RUN) / "000001.jsonl"
    segment.write_bytes(flipped(segment.read_bytes(), 900))
    assert store.state(RUN).status == "success"
    with pytest.raises(StoreError, match=r"000001.jsonl damaged at byte 0"):
        store.append_to(RUN)
    assert store.writer(RUN) is None
    (store.folder(RUN) / "summary.json").unlink()
    assert store.summary(RUN).damaged


def test_another_process_cannot_write_the_same_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    code = "import sys; from pathlib import Path; from workbench.store.store import Store\n"
    code += "j = Store(Path(sys.argv[1])).create(sys.argv[2]); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path), RUN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(StoreBusy, match=f"pid {process.pid} since 20"):
            store.append_to(RUN)
        with pytest.raises(StoreBusy, match=f"pid {process.pid}"):
            store.remove(RUN)
        assert store.summary(RUN).pid == process.pid
        process.kill()
    assert store.summary(RUN).status == "interrupted"
    store.append_to(RUN).close()


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", ".hidden", "a\n", "x" * 129, "é"])
def test_names_that_are_no_ids_never_become_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="not a valid id"):
        Store(tmp_path).create(name)


def test_a_link_among_the_runs_is_not_followed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    save(store, plain_run())
    (store.journals / "sly").symlink_to(tmp_path)
    assert store.run_ids() == [RUN]
    with pytest.raises(StoreError, match="link"):
        store.state("sly")


def test_an_id_is_used_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    with pytest.raises(StoreError, match="exists already"):
        store.create(RUN)


def test_a_store_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write to"):
        Store(tmp_path / "file" / "store").create(RUN)


def test_names_mean_the_newest_session_then_ids_then_beginnings(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run(RUN, session="demo_7"))
    save(store, [*plain_run(OTHER, turns=3, session="demo_8")])
    assert store.find("demo_7") == RUN
    assert store.find(OTHER) == OTHER
    with pytest.raises(UnknownRun, match="several") as caught:
        store.find("demo")
    assert set(caught.value.candidates) == {RUN, OTHER}
    assert str(caught.value).endswith("several runs: demo_8, demo_7")
    for number in range(9, 18):
        save(store, plain_run(f"{RUN[:-2]}{number:02}", session=f"demo_{number}"))
    with pytest.raises(UnknownRun, match=r"several runs: (demo_\d+, ){7}demo_\d+ and 3 more$"):
        store.find("demo")
    with pytest.raises(UnknownRun, match="no run is named 'nope'"):
        store.find("nope")
    with pytest.raises(UnknownRun, match=r"'dmo_7' \(did you mean 'demo_7'\?\)"):
        store.find("dmo_7")
    with pytest.raises(UnknownRun, match=r"'größe␛'$"):
        store.find("größe\x1b")
    with pytest.raises(UnknownRun):
        store.find("")


def test_a_session_given_twice_means_its_newest_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run(RUN))
    later = Writer(OTHER)
    later.seq = 0
    event = later.event("run_started", session_id="demo")
    save(store, [Event(1, "2027-01-01T00:00:00.000000Z", OTHER, "run_started", event.place, event.data)])
    assert store.find("demo") == OTHER
    assert [run.run_id for run in store.matches("demo")] == [OTHER, RUN]


def test_a_name_means_the_run_and_not_those_inside_it(tmp_path: Path) -> None:
    """Ids of nested runs begin as that of the run that they are in: each is found by its whole id."""
    store = Store(tmp_path)
    inside = {"run_id": RUN, "session_id": "demo-7f3a", "kind": "sub", "depth": 1}
    for run_id, session, parent in ((RUN, "demo-7f3a", None), (OTHER, "demo-7f3a_sub_0", inside)):
        event = Writer(run_id).event("run_started", session_id=session, parent=parent)
        save(store, [Event(1, "2027-01-01T00:00:00.000000Z", run_id, "run_started", event.place, event.data)])
    assert (store.find("demo"), store.find("demo-7f3a_sub_0"), store.find("demo-7f3a_s")) == (RUN, OTHER, OTHER)


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        ("demo_reforge1_0", "r1.0"),
        ("demo_v2_reforge1_1", "r1.1"),
        ("demo_sounding_1", "s1"),
        ("demo_sounding_1_reforge2_0", "s1/r2.0"),
        ("demo", ""),
        ("demo_reforge7_0", None),
        ("demo_sounding_3", None),
        ("other_reforge1_0", None),
    ],
)
def test_a_session_of_a_branch_means_its_run(tmp_path: Path, name: str, branch: str | None) -> None:
    """Rows of the tables carry such sessions: of candidates of ``reforge``, and of walks of a whole cascade."""
    store, w = Store(tmp_path), Writer(RUN)
    places = (Place("r1.0", "write", 1), Place("r1.1", "write", 2), Place("s1", "tell", 1), Place("s1/r2.0", "tell", 1))
    events = [w.event("run_started", session_id="demo")]
    events += [w.event("phase_started", place, kind="llm") for place in places[:2]]
    events += [w.event("candidates_started", Place("", "tell"), kind="cascade", factor=2)]
    save(store, [*events, *(w.event("phase_started", place, kind="llm") for place in places[2:])])
    if branch is None:
        with pytest.raises(UnknownRun, match="no run is named"):
            store.find(name)
    else:
        assert store.find(name) == RUN
        assert store.branch_of_session(RUN, name) == branch


def test_a_run_is_found_by_the_end_of_its_session_as_the_header_shows_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for run_id, session in ((RUN, "log-triage-7f3a"), (OTHER, "router-91c0")):
        event = Writer(run_id).event("run_started", session_id=session)
        save(store, [Event(1, "2027-01-01T00:00:00.000000Z", run_id, "run_started", event.place, event.data)])
    assert (store.find("7f3a"), store.find("triage-7f3a"), store.find("91c0")) == (RUN, RUN, OTHER)
    with pytest.raises(UnknownRun):
        store.find("f3a")


def test_images_are_kept_by_digest_and_checked(tmp_path: Path) -> None:
    store = Store(tmp_path)
    data = b"\x89PNG..."
    digest = hashlib.sha256(data).hexdigest()
    with store.create(RUN) as journal:
        journal.blob(digest, data)
    assert store.image(RUN, digest) == data == store.image_path(RUN, digest).read_bytes()
    (store.folder(RUN) / "blobs" / digest).write_bytes(b"other")
    with pytest.raises(StoreError, match="altered"):
        store.image(RUN, digest)
    with pytest.raises(StoreError, match="missing"):
        store.image(RUN, "../../secret")


def test_removing_a_run_leaves_a_note_for_the_database(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    store.remove(RUN)
    assert store.runs() == []
    assert [path.name for path in store.removed.iterdir()] == [RUN]
    with pytest.raises(UnknownRun):
        store.remove(RUN)


def test_a_run_that_could_not_be_saved_keeps_no_summary_of_what_is_not_there(tmp_path: Path) -> None:
    disk = FailingDisk()
    store = Store(tmp_path, disk)
    events = plain_run()
    journal = store.create(RUN)
    journal.append(events[0])
    disk.always = "full"
    extend(journal, events[1:])
    journal.close()
    assert journal.unsaved >= len(events) - 1
    assert Store(tmp_path).summary(RUN).status == "interrupted"


def test_a_run_of_nonsense_does_not_hide_the_others(tmp_path: Path) -> None:
    store = Store(tmp_path)
    save(store, plain_run())
    nonsense = [Event(1, "?", OTHER, "run_started", data={"session_id": 7, "parent": "x", "ports": []})]
    save(store, [*nonsense, Event(2, "?", OTHER, "call_finished", data={"usage": "many"})])
    assert {run.run_id for run in store.runs()} == {RUN, OTHER}
    (store.folder(OTHER) / "summary.json").unlink()
    assert store.summary(OTHER).damaged
    assert store.find("demo") == RUN


def test_importing_the_store_loads_neither_the_database_nor_the_screen() -> None:
    index = (f"index.{module}" for module in ("index", "table", "health", "rebuild", "queries"))
    modules = (*index, "store", "journal.journal")
    code = f"import sys, {', '.join(f'workbench.store.{module}' for module in modules)}\n"
    code += "print(sorted({'chdb', 'textual', 'litellm', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_runs_of_a_store_that_cannot_be_written_are_read_beside_new_ones_and_stay_as_they_are(tmp_path: Path) -> None:
    save(Store(tmp_path / "old"), plain_run())
    store = Store(tmp_path / "new", fixed=tmp_path / "old")
    save(store, plain_run(OTHER))
    before = {path: path.read_bytes() for path in (tmp_path / "old").rglob("*") if path.is_file()}
    assert {run.run_id for run in store.runs()} == {RUN, OTHER}
    assert store.state(store.find(RUN)).status == "success"
    catalog = Catalog(store)
    catalog.look()
    assert {run.run_id for run in catalog.runs} == {RUN, OTHER}
    assert store.own_run_ids() == [OTHER]
    for change in (store.append_to, store.remove):
        with pytest.raises(StoreError, match=f"run {RUN} can only be read: .*old cannot be written"):
            change(RUN)
    assert fix(store) == []
    assert {path: path.read_bytes() for path in (tmp_path / "old").rglob("*") if path.is_file()} == before
