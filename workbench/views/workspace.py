"""Views of a workspace and its machine: the health of the store, MCP servers, permissions,
memory banks and read-only links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from workbench.views.numbers import day_and_time
from workbench.views.run import local_time
from workbench.views.value import BLANK, Block, Cell, Column, Table, TextBlock, View

if TYPE_CHECKING:
    from workbench.engine.contracts import Listing, Memory
    from workbench.language.model.mcp import McpServer
    from workbench.store.banks import Bank
    from workbench.store.index.health import Report
    from workbench.tools.capabilities import Capability, Manifest
    from workbench.workspace.links import SharedLink


class HealthView(View):
    """Whether the store is intact, and what the machine offers to tools and models."""

    def __init__(self, report: Report, machine: Mapping[str, str], not_honoured: Mapping[str, str]) -> None:
        """``machine`` in words; ``not_honoured``: variables without effect, and what to set instead."""
        self.report, self.machine, self.not_honoured = report, machine, not_honoured

    def blocks(self) -> Iterator[Block]:
        report, database = self.report, self.report.database
        index = f"{database.engine}, schema {database.schema}" if database else report.closed or "none yet"
        facts = {
            "store": str(report.root),
            "runs": str(len(report.runs)),
            "index": index,
            "index owner": str(report.owner) if report.owner else "none",
            "free space": f"{report.free / 1e9:,.1f} GB",
            **self.machine,
        }
        for name, value in facts.items():
            yield (Cell(f"{name:<12} ", "head"), value)
        for problem in report.problems:
            yield (Cell(problem, "error"),)
        for notice in report.notices:
            yield (Cell(notice, "warning"),)

    def json(self) -> dict[str, Any]:
        report = self.report
        return {
            "ok": report.ok,
            "problems": list(report.problems),
            "notices": list(report.notices),
            "store": str(report.root),
            "free_bytes": report.free,
            "owner": report.owner.pid if report.owner else None,
            "index": to_builtins(report.database) if report.database else None,
            "index_closed": report.closed or None,
            "runs": [
                {"run_id": run.run_id, "ingested": run.ingested, "rows": run.rows, "problems": list(run.problems)}
                for run in report.runs
            ],
            "machine": dict(self.machine),
            "not_honoured": dict(self.not_honoured),
        }


class ServersView(View):
    """MCP servers, each with the tools that it offers, or why it cannot be used."""

    def __init__(self, asked: Sequence[tuple[str, McpServer, Listing]]) -> None:
        self.asked = asked

    def blocks(self) -> Iterator[Block]:
        for name, server, listing in self.asked:
            yield (Cell(f"{name}  ", "head"), Cell(server.url or " ".join(server.argv), "dim"))
            if listing.fault:
                yield (Cell(f"  {listing.fault}", "error"),)
            widest = max((len(tool.spec.name) for tool in listing.tools), default=0)
            for tool in listing.tools:
                first = tool.spec.description.split("\n")[0]
                reads = "" if tool.spec.side_effects else "  (reads only)"
                yield (Cell(f"  {tool.spec.name:{widest}}  "), Cell(f"{first}{reads}", "dim"))
            for reason in listing.refused:
                yield (Cell(f"  {reason}", "warning"),)

    def json(self) -> list[dict[str, Any]]:
        return [_server_json(*each) for each in self.asked]


def _server_json(name: str, server: McpServer, listing: Listing) -> dict[str, Any]:
    tools = [
        {
            "name": tool.spec.name,
            "description": tool.spec.description,
            "side_effects": tool.spec.side_effects,
            "schema": dict(tool.spec.schema),
        }
        for tool in listing.tools
    ]
    where = {"url": server.url} if server.url else {"command": list(server.argv)}
    about = {"fault": listing.fault, "refused": list(listing.refused), "needs_trust": listing.needs_trust}
    return {"server": name, **where, "tools": tools, **about}


class PermissionsView(View):
    """The capabilities of a folder outside the sandbox, and whether they are allowed."""

    def __init__(self, folder: str, manifest: Manifest, missing: Sequence[Capability], word: str) -> None:
        """``word`` is said of what was not allowed before: ``now allowed``, ``asks for`` or ``not allowed``."""
        self.folder, self.manifest, self.missing, self.word = folder, manifest, missing, word
        self.allowed = word == "now allowed"

    def blocks(self) -> Iterator[Block]:
        """A line for each capability."""
        for capability in self.manifest.capabilities:
            said = self.word if capability in self.missing else "allowed"
            token = "ok" if self.allowed or capability not in self.missing else "warning"
            yield (Cell(f"{said:13}", token), str(capability))

    def json(self) -> dict[str, Any]:
        listed = [
            {"kind": str(one.kind), "name": one.name, "allowed": self.allowed or one not in self.missing}
            for one in self.manifest.capabilities
        ]
        return {"folder": self.folder, "trusted": self.allowed or not self.missing, "capabilities": listed}


class BanksView(View):
    """The memory banks of a workspace."""

    def __init__(self, banks: Sequence[tuple[Bank, Sequence[Memory]]]) -> None:
        self.banks = banks

    def blocks(self) -> Iterator[Block]:
        columns = (Column("bank", flexible=True), Column("messages", right=True), Column("newest", leaves=1))
        yield Table(
            columns,
            [(Cell(bank.name, "head"), f"{len(held):,}", local_time(_newest(held))) for bank, held in self.banks],
        )

    def json(self) -> list[dict[str, Any]]:
        return [
            {"bank": bank.name, "messages": len(held), "newest": _newest(held), "file": str(bank.path)}
            for bank, held in self.banks
        ]


def _newest(memories: Sequence[Memory]) -> str:
    return max((memory.at for memory in memories), default="")


class MemoriesView(View):
    """Messages of a memory bank, each with where it comes from."""

    def __init__(self, memories: Sequence[tuple[str, Memory]]) -> None:
        """Each with its heading."""
        self.memories = memories

    def blocks(self) -> Iterator[Block]:
        for heading, memory in self.memories:
            yield (Cell(heading, "head"),)
            yield TextBlock(memory.text.strip(), "  ")
            yield BLANK

    def json(self) -> list[Any]:
        return [to_builtins(memory) for _, memory in self.memories]


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
