"""Rows that hold a journal itself: its records, the files beside them, and the run's owner."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from workbench.store.index.row_values import json_text
from workbench.store.index.tables import FileRow, LineRow, OriginRow, TableRow
from workbench.store.index.values import whole_text
from workbench.store.journal import annotation_file
from workbench.store.journal.disk import is_digest
from workbench.store.journal.reading import JournalLine
from workbench.store.summary import Summarizer
from workbench.store.team_server import TeamServer

BLOBS = "blobs"


class JournalRows:
    """Makes those of one run as it is read; ``FurtherRows`` of an ingest."""

    def __init__(self, server: TeamServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._fold = Summarizer(folder.name)
        self._given: dict[str, int] = {}
        """Sizes of the files that were given, by name."""

    def take(self, line: JournalLine) -> list[TableRow]:
        """The row of a record."""
        if line.event is not None:
            self._fold.apply(line.event)
        self._fold.seq = line.seq
        text = line.raw.decode("utf-8", "replace").rstrip("\n")
        return [LineRow(run_id=self._folder.name, seq=line.seq, segment=line.segment, line=text, row_version=line.seq)]

    def beside(self, most: int) -> tuple[list[TableRow], bool]:
        """Files that were not given before, up to a number of bytes together; and whether there are more."""
        rows: list[TableRow] = []
        room = most
        for name, path in self._files():
            size = path.stat().st_size
            if self._given.get(name) == size:
                continue
            if rows and size > room:
                return rows, True
            data = path.read_bytes()
            room -= len(data)
            self._given[name] = size
            text = base64.b64encode(data).decode()
            rows.append(FileRow(run_id=self._folder.name, name=name, data=text, row_version=len(data)))
        return rows, False

    def last(self) -> TableRow:
        """The run's owner, and its line in a list, as far as it was read."""
        run = self._fold.summary()
        said = annotation_file.read(self._folder).annotations
        calls = tuple((str(place), labels) for place, labels in said.calls())
        run = replace(run, labels=said.run, call_labels=calls, user=self._server.who, machine=self._server.machine)
        now = datetime.now(UTC)
        return OriginRow(
            run_id=run.run_id,
            session_id=run.session_id,
            parent_run_id=run.parent_run,
            depth=min(run.depth, 65_535),
            user=self._server.who,
            machine=self._server.machine,
            workspace=whole_text(self._server.workspace),
            started=run.started,
            shipped_at=now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            summary=whole_text(json_text(msgspec.to_builtins(run))),
            row_version=int(now.timestamp() * 1e6),
        )

    def _files(self) -> list[tuple[str, Path]]:
        """Those of the run by their names below its folder."""
        found = []
        if (said := self._folder / annotation_file.FILE).is_file():
            found.append((annotation_file.FILE, said))
        try:
            with os.scandir(self._folder / BLOBS) as entries:
                found += sorted(
                    (f"{BLOBS}/{entry.name}", Path(entry.path)) for entry in entries if is_digest(entry.name)
                )
        except (FileNotFoundError, NotADirectoryError):
            pass
        return found
