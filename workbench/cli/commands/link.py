"""``workbench link``: read-only links to runs for others, and what takes them back."""

from __future__ import annotations

import click

from workbench.cli.errors import Exit, Failure
from workbench.cli.options import as_json, read_run, session_argument, stored_here
from workbench.cli.printer import talk, write_json, write_view
from workbench.cli.shell_completion import PlaceOfRun
from workbench.engine.past.places import NoSuchPlace, find_call
from workbench.views.workspace import LinksView
from workbench.workspace.links import DAYS, PORT, SharedLinks, address_of, answers


@click.command(short_help="Print a read-only link to a run, for somebody else.")
@session_argument
@click.option(
    "--call",
    "place",
    type=PlaceOfRun(),
    metavar="PLACE",
    help="Point at this call: PHASE:TURN, or PHASE/VISIT/ATTEMPT/TURN/CALL.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help=f"Port of 'serve'. Default: its last one here, else {PORT}."
)
@click.option("--days", type=click.FloatRange(0.01, 365), default=DAYS, show_default=True, help="How long it works.")
@click.option("--list", "listed", is_flag=True, help="List the links that work.")
@click.option("--revoke", multiple=True, metavar="ID", help="Revoke a link, or all links of a run by its session.")
@as_json
def command(
    session: str | None,
    place: str | None,
    port: int | None,
    days: float,
    listed: bool,
    revoke: tuple[str, ...],
    json: bool,
) -> None:
    """Print a link that shows one run, and nothing else, in a browser, while 'workbench serve' runs. The link cannot
    open the app, start anything or read another run. It works until it is revoked, or for --days.

    The server answers on this machine only; somebody elsewhere opens the link through a tunnel:
    ssh -L 8321:127.0.0.1:8321 MACHINE

    \b
    Examples:
      workbench link log_triage-1f3a
      workbench link log_triage-1f3a --call triage:2 --days 1
      workbench link --list
      workbench link --revoke 3fa9c1
    """
    project = stored_here()
    links = SharedLinks(project)
    try:
        if revoke:
            gone = links.revoke(revoke)
            if not gone:
                raise Failure(Exit.USAGE, f"there is no link {', '.join(revoke)}", hint="workbench link --list")
            talk(f"revoked {', '.join(link.id for link in gone)}")
            return
        if listed:
            view = LinksView(links.all())
            write_view(view, json=json)
            return
        state = read_run(project, session)
        try:
            wanted = str(find_call(state, place)) if place is not None else ""
        except NoSuchPlace as fault:
            raise Failure(Exit.USAGE, str(fault), hint="workbench show lists the calls") from None
        link, token = links.make(state.run_id, state.session_id, days)
    except OSError as fault:
        raise Failure(Exit.FAILED, f"links cannot be kept: {fault.strerror}") from fault
    at = port or links.port
    address = address_of(link, token, at, wanted)
    if json:
        write_json(
            {"id": link.id, "url": address, "run_id": link.run_id, "session_id": link.session_id, "until": link.until}
        )
        return
    print(address)
    talk(
        f"link {link.id} shows {link.session_id or link.run_id} until {link.until}; "
        f"'workbench link --revoke {link.id}' ends it",
        "dim",
    )
    if not answers(at):
        talk(f"nothing answers at port {at} now: the link works while 'workbench serve' runs", "warning")
