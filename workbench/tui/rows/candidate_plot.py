"""The plot of the candidates of a round: quality against cost."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.engine.standings import Standing
from workbench.tui.rows.plot import Drawn, Point, scatter


def plot_lines(rows: Sequence[Standing], width: int, height: int) -> list[Drawn]:
    """Quality against cost, with a line that names those that no other one beats."""
    points = []
    for row in rows:
        cost = row.cost if row.assumed_cost is None else row.assumed_cost
        if row.quality is not None and cost is not None:
            mark, token = "★" if row.won else "●" if row.on_front else "○", "ok" if row.on_front else "dim"
            points.append(Point(cost, row.quality, mark, row.number, token))
    if len(points) < 2:
        return []
    points.sort(key=lambda point: (point.mark != "★", point.token != "ok"))
    drawn = scatter(points, "US dollars", "quality", width, max(4, min(20, height - 8)))
    listed = ", ".join(row.number for row in rows if row.on_front)
    return [*drawn, (("★ won  ● on the frontier", "ok"), (f" (none is as good for less): {listed}", "dim"))]
