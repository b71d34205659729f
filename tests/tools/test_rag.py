"""Retrieval over a folder: passages with their lines, what is left out and why, and a folder that changes."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.engine.contracts import EmbeddedTexts, FolderSource, ModelFault
from workbench.language.model.context import Rag
from workbench.tools.calling import STOP, Stopped
from workbench.tools.paths import PathRefused, Workspace
from workbench.tools.rag.answers import RagTools
from workbench.tools.rag.folder import passages_of

FAQ = "# Refunds\nA refund takes five days.\n\n# Shipping\nParcels leave on Mondays.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "flows" / "docs" / "deep").mkdir(parents=True)
    docs = work / "flows" / "docs"
    (docs / "faq.md").write_text(FAQ)
    (docs / "deep" / "lamp.md").write_text("The lamp needs a bulb of nine watts.")
    (docs / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (docs / "old.txt").write_bytes(b"caf\xe9")
    (docs / ".env").write_text("SECRET=refund")
    return work


class Lengths:
    """Embeds a text by how often it says ``refund`` and ``lamp``; counts what it was asked."""

    def __init__(self, fault: ModelFault | None = None) -> None:
        self.asked: list[str] = []
        self._fault = fault

    async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
        if self._fault is not None:
            raise self._fault
        self.asked += texts
        return EmbeddedTexts(tuple((float(t.count("refund")), float(t.count("lamp")), 0.1) for t in texts), model)


def tools(root: Path, embedder: Any = None) -> RagTools:
    return RagTools(Workspace.of(root), root.parent / "cache", embedder)


def answer(box: RagTools, name: str, rule: dict[str, Any] | None = None, **arguments: Any) -> str:
    source = FolderSource(Rag(**{"directory": "docs", **(rule or {})}), "flows/answer.yaml")
    return asyncio.run(box.call(source, name, arguments)).text


def test_a_search_names_file_and_lines_and_what_is_left_out(root: Path) -> None:
    found = answer(tools(root), "rag_search", {"chunk_chars": 40, "chunk_overlap": 0}, query="refund days")
    assert found.startswith("1 of 2 passages in flows/docs, best first, by words:\n\n[faq.md#1] ")
    assert "flows/docs/faq.md lines 1-3\n# Refunds\nA refund takes five days." in found
    assert found.endswith("[left out: flows/docs/logo.png (binary), flows/docs/old.txt (not UTF-8 at byte 3)]")
    assert "SECRET" not in found


def test_nothing_that_suits_is_said(root: Path) -> None:
    assert answer(tools(root), "rag_search", query="zebra").startswith("None of 1 passages in flows/docs shares a word")
    empty = root / "flows" / "empty"
    empty.mkdir()
    assert (
        answer(tools(root), "rag_search", {"directory": "empty"}, query="x")
        == "There is nothing to search in flows/empty."
    )


@pytest.mark.parametrize(
    ("rule", "files"),
    [
        ({}, ["faq.md"]),
        ({"recursive": True}, ["deep/lamp.md", "faq.md"]),
        ({"recursive": True, "include": ["deep/*"]}, ["deep/lamp.md"]),
        ({"recursive": True, "include": ["*.md"], "exclude": ["faq.*"]}, ["deep/lamp.md"]),
        ({"directory": "flows/docs"}, ["faq.md"]),
    ],
)
def test_the_rule_says_which_files(root: Path, rule: dict[str, Any], files: list[str]) -> None:
    listed = answer(tools(root), "rag_list_sources", rule).splitlines()
    assert [line.split()[0] for line in listed[1:] if ".md" in line] == [f"flows/docs/{file}" for file in files]
    assert f"{len(files)} files, {len(files)} passages" in listed[0]


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("../../..", "lies outside the workspace"),
        ("/etc", "lies outside the workspace"),
        ("away", "lies outside the workspace"),
        ("nowhere", "the folder 'nowhere' does not exist"),
        ("docs/faq.md", "is a file, not a folder"),
        ("", "is empty"),
    ],
)
def test_a_folder_that_is_none_or_leaves_the_workspace_is_refused(root: Path, directory: str, words: str) -> None:
    (root / "flows" / "away").symlink_to(root.parent)
    with pytest.raises(PathRefused, match=words):
        answer(tools(root), "rag_list_sources", {"directory": directory})


def test_a_link_inside_the_folder_is_named_and_not_followed(root: Path) -> None:
    (root / "flows" / "docs" / "passwd").symlink_to("/etc/passwd")
    listed = answer(tools(root), "rag_list_sources")
    assert "flows/docs/passwd (a link)" in listed
    assert "root:" not in answer(tools(root), "rag_search", query="root")


def test_a_passage_can_be_read_with_its_neighbours(root: Path) -> None:
    rule = {"chunk_chars": 40, "chunk_overlap": 0}
    read = answer(tools(root), "rag_read_chunk", rule, id="faq.md#2")
    assert read.startswith("[faq.md#2] flows/docs/faq.md lines 4-5\n# Shipping")
    assert read.endswith("[before: faq.md#1]")
    with pytest.raises(ValueError, match="there is no passage 'faq#9'"):
        answer(tools(root), "rag_read_chunk", rule, id="faq#9")
    with pytest.raises(ValueError, match="'id' must be"):
        answer(tools(root), "rag_read_chunk", rule)


def test_a_file_that_changes_is_read_again_and_the_others_are_not(root: Path) -> None:
    box, faq = tools(root), root / "flows" / "docs" / "faq.md"
    assert "zebra" not in answer(box, "rag_search", query="refund zebra")
    faq.write_text(FAQ + "A zebra is not refunded.\n")
    assert "A zebra is not refunded." in answer(box, "rag_search", query="zebra")
    faq.unlink()
    assert "0 files" in answer(box, "rag_list_sources")


def test_a_huge_file_is_left_out_with_its_size(root: Path) -> None:
    huge = root / "flows" / "docs" / "huge.log"
    huge.touch()
    os.truncate(huge, 5_000_000)
    assert "flows/docs/huge.log (5.0 MB; the limit is 4)" in answer(tools(root), "rag_list_sources")


def test_a_folder_of_too_many_passages_is_searched_as_far_as_they_go(root: Path) -> None:
    """The rest is named and not read: passages of gigabytes of text were kept before they were counted."""
    docs = root / "flows" / "docs"
    for name in ("a.md", "b.md", "c.md"):
        (docs / name).write_text("x " * 40_000)
    rule = {"chunk_chars": 2, "chunk_overlap": 0}
    listed = answer(tools(root), "rag_list_sources", rule)
    assert "1 files, 40,000 passages" in listed
    for name in ("b.md", "c.md", "faq.md"):
        assert f"flows/docs/{name} (more than 50,000 passages or 100 MB of text in all)" in listed
    (docs / "a.md").write_text("x " * 60_000)
    assert "flows/docs/a.md (more than 50,000 passages of 2 characters)" in answer(
        tools(root), "rag_list_sources", rule
    )


def test_reading_a_folder_ends_when_its_call_is_over() -> None:
    """A thread that goes on holds up the end of the program."""
    over, context = threading.Event(), contextvars.copy_context()
    over.set()
    context.run(STOP.set, over)
    with pytest.raises(Stopped):
        context.run(passages_of, "f", "f", "text", 2, 0)


def test_embeddings_rank_where_a_model_is_named_and_are_made_once(root: Path) -> None:
    rule = {"recursive": True, "model": "tiny"}
    first = Lengths()
    found = answer(tools(root, first), "rag_search", rule, query="my lamp is broken", k=1)
    assert found.startswith("1 of 2 passages in flows/docs, best first, by likeness (tiny):")
    assert "[deep/lamp.md#1]" in found
    assert len(first.asked) == 3
    assert "[2 passages were embedded: an unknown number of tokens at an unknown price]" in found
    second = Lengths()
    again = answer(tools(root, second), "rag_search", rule, query="lamp", k=1)
    assert second.asked == ["lamp"], "the passages are in the cache"
    assert "lamp.md#1" in again
    assert "were embedded" not in again


def test_what_a_search_embeds_is_counted_the_query_too(root: Path) -> None:
    class Priced(Lengths):
        async def embed(self, texts: Sequence[str], model: str) -> EmbeddedTexts:
            return replace(await super().embed(texts, model), tokens=10 * len(texts), cost=0.5)

    source = FolderSource(Rag(directory="docs", model="tiny"), "flows/answer.yaml")
    told = asyncio.run(tools(root, Priced()).call(source, "rag_search", {"query": "refund"}))
    assert told.embedded == {"texts": 2, "by": "tiny", "tokens": 20, "cost": 1.0}


def test_secrets_are_taken_out_of_what_is_sent_to_be_embedded(root: Path) -> None:
    (root / "flows" / "docs" / "faq.md").write_text("The key is k-123, for the refund.")
    embedder = Lengths()
    box = RagTools(Workspace.of(root), root.parent / "cache", embedder, lambda text: text.replace("k-123", "[gone]"))
    answer(box, "rag_search", {"model": "tiny"}, query="refund")
    assert embedder.asked[0] == "The key is [gone], for the refund."


@pytest.mark.parametrize("embedder", [None, Lengths(ModelFault("timeout", "no answer within 3 s"))])
def test_without_embeddings_words_decide_and_the_result_says_so(root: Path, embedder: Lengths | None) -> None:
    found = answer(tools(root, embedder), "rag_search", {"model": "tiny"}, query="refund")
    assert "best first, by words:" in found
    assert "[tiny gave no embeddings, so words decide: " in found


@given(st.text(alphabet="ab \n", max_size=300), st.integers(1, 60), st.integers(0, 80))
def test_passages_cover_the_text_within_their_size_and_know_their_lines(text: str, size: int, overlap: int) -> None:
    found = passages_of("f", "f", text, size, overlap)
    lines = text.split("\n")
    assert [passage.number for passage in found] == list(range(1, len(found) + 1))
    for passage in found:
        assert 0 < len(passage.text) <= size
        whole = "\n".join(lines[passage.first - 1 : passage.last]) + "\n"
        assert passage.text in whole
    if not overlap:
        assert "".join("".join(passage.text for passage in found).split()) == "".join(text.split())
    assert {c for passage in found for c in passage.text if c in "ab"} == {c for c in text if c in "ab"}


def test_neighbours_share_what_the_overlap_allows_and_end_with_lines() -> None:
    text = "".join(f"line {number}\n" for number in range(10))
    first, second, *_ = passages_of("f", "f", text, 30, 14)
    assert (first.text, first.lines) == ("line 0\nline 1\nline 2\nline 3\n", "lines 1-4")
    assert (second.text, second.lines) == ("line 2\nline 3\nline 4\nline 5\n", "lines 3-6")


def test_a_long_line_is_cut_between_words_and_shared_from_a_word_on() -> None:
    first, second = passages_of("f", "f", "one two three four five six seven", 20, 8)
    assert (first.text, second.text) == ("one two three four ", "four five six seven")
    assert (first.lines, second.lines) == ("line 1", "line 1")


def test_the_rule_says_how_large_passages_are_and_what_they_share(root: Path) -> None:
    (root / "flows" / "docs" / "long.md").write_text(
        "\n".join(f"Line number {number} of the text." for number in range(20))
    )

    def passages(chars: int, overlap: int) -> int:
        rule = {"include": ["long.md"], "chunk_chars": chars, "chunk_overlap": overlap}
        listed = answer(tools(root), "rag_list_sources", rule)
        return int(listed.split(" passages")[0].rpartition(" ")[2])

    assert passages(60, 0) > passages(200, 0)
    assert passages(200, 100) > passages(200, 0)
