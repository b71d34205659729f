"""Where the sections of a form stand: columns, by its layout and the room there is."""

from __future__ import annotations

from workbench.engine.forms.spec import AnySection, Code, Form, Image, Layout, Markdown, Text

WIDE = 100
"""Cells; with fewer, everything stands in one column."""


def columns_of(form: Form, width: int) -> tuple[tuple[int, ...], ...]:
    """The sections of each column, by position. Below ``WIDE`` cells everything stands in one."""
    positions = range(len(form.sections))
    layout = form.layout if width >= WIDE else "vertical"
    count = {"two-column": 2, "three-column": 3, "grid": 2, "sidebar-left": 2, "sidebar-right": 2}.get(layout, 1)
    if layout == "horizontal":
        count = min(4, len(form.sections))
    columns: list[list[int]] = [[] for _ in range(max(1, count))]
    for position in positions:
        columns[_column(form.sections[position], position, layout, count)].append(position)
    return tuple(tuple(column) for column in columns)


def _column(section: AnySection, position: int, layout: Layout, count: int) -> int:
    if count <= 1:
        return 0
    if section.column is not None:
        return min(section.column, count) - 1
    if layout.startswith("sidebar"):
        # What is looked at goes into the sidebar, what is answered beside it.
        aside = 0 if layout == "sidebar-left" else 1
        return aside if isinstance(section, Image | Code | Markdown | Text) else 1 - aside
    return position % count


def widths_of(layout: Layout, columns: int) -> tuple[int, ...]:
    """How wide the columns are to each other."""
    if columns == 2 and layout == "sidebar-left":
        return 1, 2
    if columns == 2 and layout == "sidebar-right":
        return 2, 1
    return (1,) * columns
