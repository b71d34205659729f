"""Embeddings of passages, kept on disk by the text they stand for: what was embedded once costs nothing again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from workbench.engine.embedding import Embedder, packed, unpacked

BATCH = 64
"""Texts of one request."""

Vector = Sequence[float]


def key_of(text: str) -> str:
    """The name of a text among vectors."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Vectors:
    """The vectors of one embedding model, in a file that only grows. A line that cannot be read is passed over."""

    def __init__(self, folder: Path, model: str) -> None:
        digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._path = folder / f"{digest}.jsonl"
        self._model = model
        self._known: dict[str, Vector] | None = None

    async def of(self, texts: Sequence[str], embedder: Embedder) -> list[Vector]:
        """One vector for each text; those that are not known are made, in batches. Raises ModelFault."""
        known = self._loaded()
        missing = list(dict.fromkeys(text for text in texts if key_of(text) not in known))
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            made = await embedder.embed(batch, self._model)
            fresh = {key_of(text): vector for text, vector in zip(batch, made.vectors, strict=True)}
            known |= fresh
            self._append(fresh)
        return [known[key_of(text)] for text in texts]

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
        """Keep them for later runs. Where that cannot be done they are made again: the answer is the same."""
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
    except (ValueError, KeyError, TypeError):
        return None
