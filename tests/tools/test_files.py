"""read_file, list_files, search_files: bounded answers, and nothing from outside the workspace."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.waiting import PATIENCE
from tests.tools.test_images import png
from workbench.context.place import Place
from workbench.language.model.context import Rag
from workbench.tools.builtin import search
from workbench.tools.builtin.files import MAX_CHARS, MAX_ENTRIES, MAX_LINE_CHARS, FileTools
from workbench.tools.builtin.search import SearchTool
from workbench.tools.calling import call_function
from workbench.tools.globs import Glob
from workbench.tools.hidden import is_hidden
from workbench.tools.paths import PathRefused, Workspace
from workbench.tools.rag.folder import Folder
from workbench.tools.sandbox import Sandbox
from workbench.tools.toolbox import Toolbox


@pytest.fixture
def files(workspace: Workspace) -> FileTools:
    return FileTools(workspace)


def test_a_short_file_comes_whole_and_as_it_is(files: FileTools) -> None:
    assert files.read_file("notes.txt") == "one\ntwo\nthree"


def test_a_part_says_which_lines_it_is_and_how_to_go_on(files: FileTools) -> None:
    assert files.read_file("notes.txt", 2, 1) == "two\n[lines 2-2 of 3; ask for start=3 to go on]"
    assert files.read_file("notes.txt", 9) == "(the file has 3 lines; there is no line 9)"


def test_a_long_file_is_cut_at_the_limit_and_can_be_read_to_its_end(files: FileTools, root: Path) -> None:
    lines = [f"{number} {'x' * 90}" for number in range(1, 1001)]
    (root / "long.txt").write_text("\n".join(lines))
    read: list[str] = []
    while len(read) < 1000:
        answer = files.read_file("long.txt", len(read) + 1, 2000)
        assert isinstance(answer, str)
        assert len(answer) <= MAX_CHARS + 200
        read += [line for line in answer.splitlines() if not line.startswith("[lines")]
    assert read == lines


def test_a_long_line_is_cut_and_says_how_much_is_missing(files: FileTools, root: Path) -> None:
    (root / "wide.txt").write_text("a" * 1_000_000 + "\nend")
    first, last = str(files.read_file("wide.txt")).splitlines()
    assert first == "a" * MAX_LINE_CHARS + f" […{1_000_000 - MAX_LINE_CHARS:,} characters left out]"
    assert last == "end"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"%PDF-1.7\0\0", "is not text: a PDF, 10 bytes"),
        (b"\x7fELF\0", "a program"),
        (b"PAR1\0\0", "smart_sql_run reads it"),
        (b"a\0b", "binary data, 3 bytes"),
    ],
)
def test_a_binary_file_is_refused_with_its_kind_and_size(files: FileTools, root: Path, data: bytes, words: str) -> None:
    (root / "blob.txt").write_bytes(data)
    with pytest.raises(PathRefused) as caught:
        files.read_file("blob.txt")
    assert words in str(caught.value)


def test_an_image_is_shown_instead_of_read(files: FileTools, root: Path) -> None:
    (root / "plot.png").write_bytes(png(2, 2))
    size = (root / "plot.png").stat().st_size
    assert files.read_file("plot.png") == {"content": f"plot.png: image/png, {size} bytes", "images": ["plot.png"]}


def test_other_encodings_and_an_empty_file_are_read(files: FileTools, root: Path) -> None:
    (root / "utf16.txt").write_text("Grüße", "utf-16")
    (root / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    (root / "bom.txt").write_text("Grüße", "utf-8-sig")
    (root / "empty.txt").touch()
    assert files.read_file("utf16.txt") == files.read_file("bom.txt") == "Grüße"
    assert files.read_file("latin.txt") == "Gr\ufffd\ufffde"
    assert files.read_file("empty.txt") == "(the file is empty)"


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "out/secret.txt", "link.txt", "a\0b", "", "loop", "data", "pipe"]
)
def test_what_is_outside_or_no_file_is_refused(files: FileTools, root: Path, path: str) -> None:
    (root.parent / "secret.txt").write_text("secret")
    (root / "out").symlink_to(root.parent)
    (root / "link.txt").symlink_to("/etc/passwd")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    with pytest.raises(PathRefused):
        files.read_file(path)


@pytest.mark.parametrize(
    "path", [".env", "./.env", "data/../.env", ".workbench/owner.lock", "alias", "data/.env.local"]
)
def test_secrets_and_the_store_are_closed_by_every_way(files: FileTools, root: Path, path: str) -> None:
    (root / "alias").symlink_to(".env")
    (root / "data" / ".env.local").write_text("TOKEN=x")
    with pytest.raises(PathRefused, match="is not open to tools"):
        files.read_file(path)


def test_hidden_names_are_known_in_any_letter_case() -> None:
    assert [name for name in (".env", ".ENV", ".Env.local", ".WorkBench") if not is_hidden(name)] == []
    assert [name for name in (".env.example", ".envrc", "env", ".git", "x.env") if is_hidden(name)] == []


def test_a_store_that_lies_in_the_workspace_under_another_name_is_hidden(root: Path) -> None:
    (root / "runs").mkdir()
    (root / "runs" / "journal.jsonl").write_text("{}")
    files = FileTools(Workspace.of(root, store=root / "runs"))
    with pytest.raises(PathRefused):
        files.read_file("runs/journal.jsonl")
    assert "runs" not in files.list_files()


def test_a_listing_has_sizes_folders_and_links_but_nothing_hidden(files: FileTools, root: Path) -> None:
    (root / "link").symlink_to("/etc/passwd")
    assert files.list_files().splitlines() == ["data/", "link -> /etc/passwd", "notes.txt  14"]


def test_a_pattern_looks_into_folders_when_it_says_so(files: FileTools, root: Path) -> None:
    (root / "data" / "deep").mkdir()
    (root / "data" / "deep" / "a.py").touch()
    (root / "b.py").touch()
    (root / "node_modules").mkdir()
    (root / "node_modules" / "c.py").touch()
    assert files.list_files(".", "*.py").splitlines() == ["b.py  0"]
    assert files.list_files(".", "**/*.py").splitlines() == ["b.py  0", "data/deep/a.py  0"]
    assert files.list_files("data", "*/*.py").splitlines() == ["deep/a.py  0"]
    assert files.list_files(".", "*.rs") == "nothing in '.' matches '*.rs'"
    with pytest.raises(ValueError, match="leads out"):
        files.list_files(".", "../*")


def test_a_long_listing_is_cut_and_says_how_many_are_left(files: FileTools, root: Path) -> None:
    for number in range(MAX_ENTRIES + 7):
        (root / "data" / f"{number}.log").touch()
    assert files.list_files("data", "*.log").splitlines()[-1] == "[7 more; narrow the pattern]"


@given(st.text(alphabet="ab/*?[]!-^\\.", max_size=12), st.text(alphabet="ab/.", max_size=12))
def test_every_pattern_can_be_used_and_a_plain_name_matches_itself(pattern: str, name: str) -> None:
    try:
        Glob(pattern).fullmatch(name)
    except ValueError:
        assert pattern.startswith("/") or ".." in pattern.split("/") or "[" in pattern
    if "[" not in name and not name.startswith("/") and ".." not in name.split("/"):
        assert Glob(name).fullmatch(name)


def matched(pattern: str, name: str) -> bool:
    """What a pattern means, one rule for each of its signs."""
    if not pattern:
        return not name
    if pattern.startswith("**/"):
        folder, slash, rest = name.partition("/")
        return matched(pattern[3:], name) or (bool(folder and slash) and matched(pattern, rest))
    if pattern.startswith("**"):
        return any(matched(pattern[2:], name[n:]) for n in range(len(name) + 1))
    if pattern[0] == "*":
        until = name.find("/") if "/" in name else len(name)
        return any(matched(pattern[1:], name[n:]) for n in range(until + 1))
    same = bool(name) and (name[0] == pattern[0] or (pattern[0] == "?" and name[0] != "/"))
    return same and matched(pattern[1:], name[1:])


@given(st.text(alphabet="ab/**?", max_size=9), st.text(alphabet="ab/", max_size=9))
def test_a_pattern_matches_what_its_signs_mean(pattern: str, name: str) -> None:
    if not pattern.startswith("/"):
        assert Glob(pattern).fullmatch(name) == matched(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        *(
            ("[a||b]", "|", True),
            ("[a&&b]", "&", True),
            ("[a~~b]", "~", True),
            ("[[a]", "[", True),
            ("[]a]", "]", True),
        ),
        *(
            ("[]a]", "]", True),
            ("[--0]", ".", True),
            ("[!a-c]", "b", False),
            ("[!a-c]", "d", True),
            (r"[\\]", "\\", True),
        ),
    ],
)
def test_a_set_of_characters_is_one_without_a_warning(pattern: str, name: str, fits: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Glob(pattern).fullmatch(name) is fits


HOSTILE = ("*a" * 30 + "b", "**/" + "*a" * 30 + "b", "**" + "*a" * 30 + "b", "*?" * 60 + "[b]", "**/" * 60 + "b")
"""Each takes a matcher that goes back and tries again longer than anybody waits."""


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_takes_long(files: FileTools, workspace: Workspace, root: Path, pattern: str) -> None:
    (root / ("a" * 250)).touch()
    assert "matches" in files.list_files(".", pattern)
    box = Toolbox.of(workspace, Sandbox(root))
    answer = asyncio.run(box.call("smart_sql_run", {"query": f"SELECT * FROM file('{pattern}')"}, Place(), 1))
    assert "matches 0 files" in answer.text
    assert Folder(workspace, root, Rag(directory=".", include=(pattern,), exclude=(pattern,))).indexed().files == ()


def test_work_that_nobody_waits_for_ends(workspace: Workspace) -> None:
    ended = threading.Event()

    def walks_on() -> None:
        try:
            while True:
                list(workspace.walk(workspace.root))
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        asyncio.run(call_function(walks_on, {}, 0.05))
    assert ended.wait(PATIENCE)


def find(workspace: Workspace, pattern: str, path: str = ".", ignore_case: bool = False) -> str:
    return asyncio.run(SearchTool(workspace).search_files(pattern, path, ignore_case))


def test_a_search_gives_file_line_and_text(workspace: Workspace) -> None:
    assert find(workspace, r"^t").splitlines() == ["notes.txt:2: two", "notes.txt:3: three"]
    assert find(workspace, "TWO", ignore_case=True) == "notes.txt:2: two"
    assert find(workspace, "1,1", "data/orders.csv") == "data/orders.csv:2: 1,10"
    assert find(workspace, "absent") == "no line matches 'absent'"


def test_a_search_never_looks_at_secrets_binary_files_or_through_links(workspace: Workspace) -> None:
    root = workspace.root
    (root / "link.txt").symlink_to(root.parent / "outside.txt")
    (root.parent / "outside.txt").write_text("sk-secret")
    (root / "blob").write_bytes(b"sk-secret\0")
    assert find(workspace, "sk-secret") == (
        "no line matches 'sk-secret'\n[1 files skipped: binary, larger than 8 MB, or unreadable]"
    )


def test_matches_are_bounded_in_number_and_width(workspace: Workspace) -> None:
    (workspace.root / "many.txt").write_text("hit\n" * 1000 + "x" * 5000 + "needle" + "y" * 5000)
    lines = find(workspace, "hit").splitlines()
    assert len(lines) == search.MAX_MATCHES + 1
    assert lines[-1] == "[800 more matches; narrow the expression or the path]"
    (line,) = find(workspace, "needle").splitlines()
    assert "needle" in line
    assert len(line) < search.MAX_LINE_CHARS + 50


def test_an_expression_that_never_ends_is_ended(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TIMEOUT_S", 0.3)
    (workspace.root / "evil.txt").write_text("a" * 40 + "b")
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="longer than"):
        find(workspace, r"(a+)+$")
    assert time.monotonic() - started < 30


def test_a_wrong_expression_is_named(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="is not a regular expression: missing"):
        find(workspace, "(")
