"""How a file was looked at is kept for the next time, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from workbench.workspace.folders import Folders
from workbench.workspace.view_states import ViewState, keep_view, load_views, views_file

VIEW = ViewState(
    run_id="019a",
    call="triage/1/1/2/1",
    phase="triage",
    pane="context",
    tab="state",
    zoomed=True,
    row=3,
    top=1,
    node=("visit", "triage", "1"),
    folded=(("phase", "intake"),),
    unfolded=(("visit", "triage", "1"), ("call", "x")),
    tree_width=40,
    detail="why",
)


def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "config", tmp_path / "state")


def test_each_file_has_its_view_and_the_last_one_used_is_known(tmp_path: Path) -> None:
    where = folders(tmp_path)
    assert load_views(where, tmp_path).by_file == {}
    keep_view(where, tmp_path, "a.yaml", VIEW)
    keep_view(where, tmp_path, "b.yaml", ViewState(tab="log"))
    assert load_views(where, tmp_path).by_file == {"a.yaml": VIEW, "b.yaml": ViewState(tab="log")}
    keep_view(where, tmp_path, "a.yaml", ViewState(row=1))
    views = load_views(where, tmp_path)
    assert (views.last, views.by_file["a.yaml"], views.notice) == ("a.yaml", ViewState(row=1), "")
    assert load_views(where, tmp_path / "elsewhere").by_file == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 99, "files": {}}', '{"format": 1, "files": {"a": 3}}', "[" * 9999]
)
def test_a_file_that_is_damaged_is_forgotten_with_a_word_and_written_anew(tmp_path: Path, text: str) -> None:
    where = folders(tmp_path)
    keep_view(where, tmp_path, "a.yaml", VIEW)
    file = views_file(where, tmp_path).path
    file.write_text(text)
    views = load_views(where, tmp_path)
    assert views.by_file == {}
    assert views.notice.startswith(f"what was open last is forgotten: {file}")
    keep_view(where, tmp_path, "a.yaml", VIEW)
    assert load_views(where, tmp_path).by_file == {"a.yaml": VIEW}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(sorted(asdict(VIEW))), JSON))
def test_fields_of_another_kind_are_as_if_they_were_not_there(tmp_path: Path, kept: dict[str, object]) -> None:
    where = folders(tmp_path)
    file = views_file(where, tmp_path).path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"format": 1, "files": {"a.yaml": kept}}))
    view = load_views(where, tmp_path).by_file["a.yaml"]
    for name, usual in asdict(ViewState()).items():
        value = getattr(view, name)
        assert value is None or usual is None or type(value) is type(usual)
    assert all(isinstance(part, str) for node in (*view.folded, *view.unfolded, view.node) for part in node)


def test_a_state_folder_that_cannot_be_written_is_an_error_for_who_asked(tmp_path: Path) -> None:
    where = folders(tmp_path)
    where.state.write_text("a file")
    with pytest.raises(OSError, match=r"directory|exists"):
        keep_view(where, tmp_path, "a.yaml", VIEW)
