"""The read-only links of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from workbench.views.numbers import day_and_time
from workbench.views.value import Block, Cell, Column, Table, View
from workbench.workspace.links import SharedLink


class LinksView(View):
    """The links that work: what each shows, and until when. Tokens are not kept, so they are not shown."""

    def __init__(self, links: Sequence[SharedLink]) -> None:
        self.links = links

    def blocks(self) -> Iterator[Block]:
        columns = (Column("id"), Column("run", flexible=True), Column("made"), Column("until"))
        rows = [
            (Cell(link.id, "name"), link.session_id or link.run_id, day_and_time(link.made), day_and_time(link.until))
            for link in self.links
        ]
        yield Table(columns, rows)
        if not rows:
            yield (Cell("No links. 'workbench link RUN' makes one.", "dim"),)

    def json(self) -> list[dict[str, Any]]:
        return [
            {
                "id": link.id,
                "run_id": link.run_id,
                "session_id": link.session_id,
                "made": link.made,
                "until": link.until,
            }
            for link in self.links
        ]
