"""The answers of the three tools of ``rag``: passages with file and lines, and always a note of what was left out."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from workbench.context.scoring import cosine
from workbench.engine.contracts import EmbeddedTexts, Embedder, FolderSource, ModelFault
from workbench.engine.engine_tools import RAG_LIST, RAG_READ, RAG_SEARCH, BadArguments, asked
from workbench.engine.journal.event import packed, unpacked
from workbench.language.model.context import Rag
from workbench.tools.calling import call_function
from workbench.tools.paths import Workspace
from workbench.tools.rag.folder import Folder, IndexedFolder, Passage, folder_of

# Embeddings of passages, kept on disk by the text they stand for: what was embedded once costs nothing again.

BATCH = 64
"""Texts of one request."""

Vector = Sequence[float]


def key_of(text: str) -> str:
    """The name of a text among vectors."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class EmbeddingCost(Struct, frozen=True):
    """Tokens and cost of new embeddings."""

    texts: int = 0
    tokens: int | None = 0
    """None if a provider did not state them."""
    cost: float | None = 0.0
    """US dollars; None if a price is unknown."""

    def with_batch(self, texts: int, made: EmbeddedTexts) -> EmbeddingCost:
        tokens = None if self.tokens is None or made.tokens is None else self.tokens + made.tokens
        cost = None if self.cost is None or made.cost is None else self.cost + made.cost
        return EmbeddingCost(self.texts + texts, tokens, cost)

    def __str__(self) -> str:
        if not self.cost and self.cost is not None:
            return f"{self.texts:,} passages were embedded, free of charge"
        tokens = "an unknown number of tokens" if self.tokens is None else f"{self.tokens:,} tokens"
        cost = "at an unknown price" if self.cost is None else f"for ${self.cost:.6f}"
        return f"{self.texts:,} passages were embedded: {tokens} {cost}"


class Vectors:
    """The vectors of one embedding model, in a file that only grows. A line that cannot be read is passed over."""

    def __init__(self, folder: Path, model: str) -> None:
        digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._path = folder / f"{digest}.jsonl"
        self._model = model
        self._known: dict[str, Vector] | None = None

    async def of(self, texts: Sequence[str], embedder: Embedder) -> tuple[list[Vector], EmbeddingCost]:
        """One vector for each text, and what was spent on those that were not known. Raises ModelFault."""
        known, spent = self._loaded(), EmbeddingCost()
        missing = list(dict.fromkeys(text for text in texts if key_of(text) not in known))
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            made = await embedder.embed(batch, self._model)
            spent = spent.with_batch(len(batch), made)
            fresh = {key_of(text): vector for text, vector in zip(batch, made.vectors, strict=True)}
            known |= fresh
            self._append(fresh)
        return [known[key_of(text)] for text in texts], spent

    def _loaded(self) -> dict[str, Vector]:
        if self._known is None:
            self._known = {}
            try:
                lines = self._path.read_bytes().splitlines()
            except OSError:
                lines = []
            for line in lines:
                if (read := _read(line)) is not None:
                    self._known[read[0]] = read[1]
        return self._known

    def _append(self, fresh: Mapping[str, Vector]) -> None:
        """Keep them for later runs. If that fails, they are computed again: the answer is the same."""
        data = b"".join(_line(key, vector) for key, vector in fresh.items())
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
        except OSError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.write(descriptor, data)
        except OSError:
            return
        finally:
            os.close(descriptor)


def _line(key: str, vector: Vector) -> bytes:
    return json.dumps({"key": key, "vector": packed(vector)}).encode() + b"\n"


def _read(line: bytes) -> tuple[str, Vector] | None:
    try:
        body = json.loads(line)
        return str(body["key"]), unpacked(body["vector"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


TIMEOUT_S = 300.0
"""Seconds of one search; the first one of a large folder may have to embed all of it."""
_NAMED = 5
"""Files left out that a notice names."""
_LISTED = 500
"""Files that a list holds."""


class RagAnswer(Struct, frozen=True):
    """An answer, and what was embedded for it."""

    text: str
    made: EmbeddingCost = EmbeddingCost()
    by: str = ""
    """The model that embedded."""

    @property
    def embedded(self) -> dict[str, Any]:
        """In the form of a ``ToolResult``; empty if nothing was embedded."""
        made = self.made
        about = {"texts": made.texts, "by": self.by, "tokens": made.tokens, "cost": made.cost}
        return about if made.texts else {}


class RagTools:
    """The tools over the folders of one workspace. Folders stay read while it lives."""

    def __init__(
        self, workspace: Workspace, cache: Path, embedder: Embedder | None, redact: Callable[[str], str] = str
    ) -> None:
        """``cache`` is the folder for embeddings. ``redact`` takes secrets out of what is sent to be embedded."""
        self._workspace = workspace
        self._cache = cache
        self._embedder = embedder
        self._redact = redact
        self._folders: dict[tuple[Path, str], Folder] = {}
        self._vectors: dict[str, Vectors] = {}

    async def call(self, source: FolderSource, name: str, arguments: Mapping[str, Any]) -> RagAnswer:
        """The answer, and what was embedded for it. Raises ValueError (of a path, a pattern or an argument) with words
        for the model."""
        rule = source.rule
        path = folder_of(self._workspace, rule.directory, source.file)
        key = (path, rule.model_dump_json())
        folder = self._folders.setdefault(key, Folder(self._workspace, path, rule))
        indexed = await call_function(folder.indexed, {}, TIMEOUT_S)
        if name == RAG_SEARCH:
            return await self._search(indexed, rule, *asked(arguments, "k"))
        if name == RAG_READ:
            return RagAnswer(_passage(indexed, arguments))
        if name == RAG_LIST and not arguments:
            return RagAnswer(_list(indexed, rule))
        raise BadArguments(f"{name} takes no arguments")

    async def _search(self, indexed: IndexedFolder, rule: Rag, query: str, most: int) -> RagAnswer:
        if not indexed.passages:
            return RagAnswer(_noted(f"There is nothing to search in {indexed.folder}.", indexed))
        notice, best, spent = "", list[int](), EmbeddingCost()
        if rule.model is not None:
            try:
                best, made, spent = await self._nearest(indexed, rule.model, query, most)
                notice = f"[{made}]" if made.texts else ""
            except ModelFault as fault:
                notice = f"[{rule.model} gave no embeddings, so words decide: {fault.kind}: {fault.message}]"
        by = f"by likeness ({rule.model})" if best else "by words"
        if not best:  # Of many passages a ranking takes seconds to make.
            ranked = await call_function(lambda: indexed.ranking.best(query, most), {}, TIMEOUT_S)
            best = [index for index, _ in ranked]
        if not best:
            text = f"None of {len(indexed.passages):,} passages in {indexed.folder} shares a word with '{query}'."
        else:
            head = f"{len(best):,} of {len(indexed.passages):,} passages in {indexed.folder}, best first, {by}:"
            text = "\n\n".join([head, *(_shown(indexed.passages[index]) for index in best)])
        return RagAnswer(_noted("\n\n".join(filter(None, (text, notice))), indexed), spent, rule.model or "")

    async def _nearest(
        self, indexed: IndexedFolder, model: str, query: str, most: int
    ) -> tuple[list[int], EmbeddingCost, EmbeddingCost]:
        """Indices by cosine, best first; what was spent on passages, and with the query. Raises ModelFault."""
        if self._embedder is None:
            raise ModelFault("no_model", "no embedding model can be reached here")
        vectors = self._vectors.setdefault(model, Vectors(self._cache, model))
        own, made = await vectors.of([self._redact(passage.text) for passage in indexed.passages], self._embedder)
        asked_for = await self._embedder.embed([query], model)
        best = await call_function(lambda: _ranked(asked_for.vectors[0], own, most), {}, TIMEOUT_S)
        return best, made, made.with_batch(1, asked_for)


def _ranked(query: Sequence[float], vectors: Sequence[Sequence[float]], most: int) -> list[int]:
    likeness = [(-cosine(query, vector), index) for index, vector in enumerate(vectors)]
    return [index for _, index in sorted(likeness)[:most]]


def _shown(passage: Passage) -> str:
    return f"[{passage.id}] {passage.file} {passage.lines}\n{passage.text.strip()}"


def _passage(indexed: IndexedFolder, arguments: Mapping[str, Any]) -> str:
    wanted = arguments.get("id")
    if set(arguments) != {"id"} or not isinstance(wanted, str):
        raise BadArguments("'id' must be the id of a passage, as rag_search gives it")
    index = indexed.by_id.get(wanted.strip().strip("[]"))
    if index is None:
        raise BadArguments(f"there is no passage '{wanted}'; rag_search names them, rag_list_sources the files")
    passage = indexed.passages[index]
    near = [
        f"{word}: {other.id}"
        for word, at in (("before", index - 1), ("after", index + 1))
        if 0 <= at < len(indexed.passages) and (other := indexed.passages[at]).file == passage.file
    ]
    return "\n".join([_shown(passage), *([f"[{', '.join(near)}]"] if near else [])])


def _list(indexed: IndexedFolder, rule: Rag) -> str:
    by = f"embeddings of {rule.model}" if rule.model else "words (BM25)"
    counts: dict[str, int] = {}
    for passage in indexed.passages:
        counts[passage.file] = counts.get(passage.file, 0) + 1
    lines = [f"{len(indexed.files):,} files, {len(indexed.passages):,} passages in {indexed.folder}, ranked by {by}:"]
    lines += [f"{file}  {counts[file]:,}" for file in indexed.files[:_LISTED]]
    if len(indexed.files) > _LISTED:
        lines.append(f"[{len(indexed.files) - _LISTED:,} more files]")
    return _noted("\n".join(lines), indexed, named=50)


def _noted(text: str, indexed: IndexedFolder, named: int = _NAMED) -> str:
    """The text, and what is not searched."""
    if not indexed.left_out:
        return text
    shown = ", ".join(f"{file} ({why})" for file, why in indexed.left_out[:named])
    more = f" and {len(indexed.left_out) - named:,} more" if len(indexed.left_out) > named else ""
    return f"{text}\n\n[left out: {shown}{more}]"
