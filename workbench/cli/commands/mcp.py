"""``workbench mcp``: the MCP servers of this workspace and of cascades, and the tools that they offer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.cli.errors import Exit
from workbench.cli.options import CascadeFile, as_json, plain, project_here
from workbench.cli.printer import Printer, talk, write_json
from workbench.context.place import Place
from workbench.views.workspace import ServersView

if TYPE_CHECKING:
    from workbench.engine.contracts import Listing
    from workbench.language.model.mcp import McpServer
    from workbench.workspace.project import Project

Asked = list[tuple[str, "McpServer", "Listing"]]


@click.command(short_help="List MCP servers and the tools that they offer.")
@click.argument("file", type=CascadeFile(), required=False)
@as_json
@plain
@click.pass_context
def command(ctx: click.Context, file: Path | None, json: bool, plain: bool) -> None:
    """Start the MCP servers of the settings (with FILE, of the cascade too), and list their tools by the names that
    `tackle` takes. A server that you have not allowed (`workbench trust FILE`) is not started.

    Exit code 1 when a server cannot be used, 3 when it is not trusted.

    \b
    Examples:
      workbench mcp
      workbench mcp cascades/report.yaml
      workbench mcp --json | jq '.[].tools[].name'
    """
    project = project_here()
    asked = asyncio.run(_asked(project, file))
    if json:
        write_json(ServersView(asked).json())
    elif asked:
        Printer(plain).show(ServersView(asked).blocks())
    else:
        talk("there is no MCP server: 'mcp' in workbench.yaml or in a cascade names one")
    if any(listing.needs_trust for _, _, listing in asked):
        command_line = f"workbench trust {project.shown(file)}" if file is not None else "workbench trust FILE"
        talk(f"not every server may start ({command_line} lists them and asks)", "warning")
        ctx.exit(Exit.TRUST)
    if any(listing.fault for _, _, listing in asked):
        ctx.exit(Exit.FAILED)


async def _asked(project: Project, file: Path | None) -> Asked:
    """Each server with what it lists, those of the settings first."""
    around = project.environment
    found: list[tuple[str, McpServer, McpServer | None]] = [(n, one, None) for n, one in around.servers.items()]
    cascade = project.open(file).cascade if file is not None else None
    if cascade is not None:
        defined = [*cascade.mcp.items(), *(item for phase in cascade.phases for item in phase.mcp.items())]
        found += [(name, server, server) for name, server in defined]
    servers = around.toolbox(file.resolve().parent if file is not None else project.root).servers
    try:
        listings = await asyncio.gather(*(servers.listing(name, own, Place()) for name, _, own in found))
    finally:
        await servers.aclose()
    return [(name, server, listing) for (name, server, _), listing in zip(found, listings, strict=True)]
