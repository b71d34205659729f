"""L3xx: where a run goes."""

from __future__ import annotations

from tests.language.lint.examples.example import BUILTIN_TOOLS, Example, reading
from workbench.language.lint.environment import LintEnvironment, ToolFacts

CHILD = "cascade_id: child\nphases: [{name: c1, instructions: x}]"
PARENT = """
cascade_id: parent
phases:
- name: p
  instructions: x
  sub_cascades: [{ref: sub/child.yaml}]
"""
BACK = """
cascade_id: child
phases:
- name: c1
  instructions: x
  async_cascades: [{ref: ../parent.yaml}]
"""
AS_TOOL = "cascade_id: again\ninputs_schema: {q: question}\nphases: [{name: a, instructions: x, tackle: [again]}]\n"

FLOW = (
    Example(
        "L301",
        """
        - {name: a, instructions: x, handoffs: [c]}
        - {name: «b, instructions: x}
        - {name: c, instructions: x}
        """,
        """
        - {name: a, instructions: x, handoffs: [c, b]}
        - {name: b, instructions: x}
        - {name: c, instructions: x}
        """,
    ),
    Example(
        "L301",
        """
        - {name: a, instructions: x, handoffs: [d]}
        - {name: d, instructions: x, handoffs: []}
        - {name: «c, instructions: x, routing: {ok: c}}
        """,
        """
        - {name: a, instructions: x, handoffs: [d]}
        - {name: d, tool: create_chart, routing: {ok: c}}
        - {name: c, instructions: x}
        """,
        id="routing only counts where a tool runs",
    ),
    Example(
        "L302",
        """
        - {name: a, instructions: x, handoffs: [«finsh]}
        - {name: finish, instructions: x}
        """,
        """
        - {name: a, instructions: x, handoffs: [finish]}
        - {name: finish, instructions: x}
        """,
        fix="finish",
    ),
    Example(
        "L302",
        """
        {"cascade_id": "c", "phases": [
          {"name": "a", "instructions": "x", "handoffs": [{"target": «"finsh", "description": "d"}]},
          {"name": "finish", "instructions": "x"}]}
        """,
        """
        {"cascade_id": "c", "phases": [
          {"name": "a", "instructions": "x", "handoffs": [{"target": "finish", "description": "finsh"}]},
          {"name": "finish", "instructions": "x"}]}
        """,
        file="c.json",
        fix='"finish"',
        id="in JSON, with its quotes",
    ),
    Example(
        "L303",
        "- {name: a, tool: create_chart, routing: {ok: «b}}",
        """
        - {name: a, tool: create_chart, routing: {ok: b}}
        - {name: b, instructions: x}
        """,
        id="routing",
    ),
    Example("L303", "- {name: a, tool: create_chart, on_error: «b}", "- {name: a, tool: create_chart}", id="on_error"),
    Example(
        "L303",
        "- {name: a, instructions: x, decision_points: {routing: {yes: «done, no: self}}}",
        "- {name: a, instructions: x, decision_points: {routing: {yes: next, no: {to: self, inject: again}}}}",
        id="decision",
    ),
    Example(
        "L304",
        """
        - {name: a, instructions: x, handoffs: [{target: b, description: d}, c]}
        - {name: «b, instructions: x}
        - {name: c, instructions: x}
        """,
        """
        - {name: a, instructions: x, handoffs: [{target: b, description: d}, c]}
        - {name: b, instructions: x, handoffs: []}
        - {name: c, instructions: x}
        """,
    ),
    Example(
        "L304",
        """
        - {name: «a, instructions: x, decision_points: {routing: {yes: b}}}
        - {name: b, instructions: x}
        """,
        """
        - {name: a, instructions: x, decision_points: {routing: {yes: b}}, handoffs: [b]}
        - {name: b, instructions: x}
        """,
        id="decision",
    ),
    Example(
        "L305",
        """
        - {name: a, instructions: x, handoffs: [b]}
        - {name: «b, instructions: x, handoffs: [c]}
        - {name: c, instructions: x, handoffs: [b]}
        """,
        """
        - {name: a, instructions: x, handoffs: [b]}
        - {name: b, instructions: x, handoffs: [c]}
        - {name: c, instructions: x, handoffs: [b, d]}
        - {name: d, instructions: x}
        """,
    ),
    Example(
        "L305",
        "- {name: «a, instructions: x, handoffs: [a]}",
        "- {name: a, instructions: x, handoffs: [a], human_input: true}",
        id="a person may end it",
    ),
    Example(
        "L306",
        "- {name: a, instructions: x, sub_cascades: [{ref: «sub/chidl.yaml}]}",
        "- {name: a, instructions: x, sub_cascades: [{ref: sub/child.yaml}]}",
        LintEnvironment(read=reading({"sub/child.yaml": CHILD})),
    ),
    Example(
        "L306",
        "- {name: a, tool: «'sql:top.sql'}",
        "- {name: a, tool: 'sql:all.sql'}",
        LintEnvironment(read=reading({"all.sql": "SELECT 1"})),
        id="SQL file",
    ),
    Example(
        "L306",
        "- {name: a, tool: «'shell:al.sh'}",
        "- {name: a, tool: 'shell:all.sh'}",
        LintEnvironment(read=reading({"all.sh": "ls"})),
        id="script",
    ),
    Example(
        "L306",
        "- {name: a, instructions: x, sub_cascades: [{ref: «old/place/sub/child.yaml}]}",
        "- {name: a, instructions: x, sub_cascades: [{ref: sub/child.yaml}]}",
        LintEnvironment(read=reading({"sub/child.yaml": CHILD, "child.yaml": CHILD})),
        fix='"sub/child.yaml"',
        id="moved",
    ),
    Example(
        "L306",
        "- {name: a, instructions: x, sub_cascades: [{ref: «sub/child.json}]}",
        "- {name: a, instructions: x, sub_cascades: [{ref: sub/child.yaml}]}",
        LintEnvironment(read=reading({"sub/child.yaml": CHILD})),
        fix='"sub/child.yaml"',
        id="another ending",
    ),
    Example(
        "L307",
        PARENT.replace("sub/child", "«sub/child"),
        PARENT.replace("sub/child", "sub/leaf"),
        LintEnvironment(read=reading({"parent.yaml": PARENT, "sub/child.yaml": BACK, "sub/leaf.yaml": CHILD})),
    ),
    Example(
        "L307",
        AS_TOOL.replace("[again]", "[«again]"),
        "cascade_id: other\nphases: [{name: a, instructions: x, tackle: [leaf]}]",
        LintEnvironment(
            {**BUILTIN_TOOLS, "again": ToolFacts("cascade", text=AS_TOOL), "leaf": ToolFacts("cascade", text=CHILD)}
        ),
        id="as a tool of itself",
    ),
    Example(
        "L308",
        """
        - {name: a, instructions: x, handoffs: [b, «b]}
        - {name: b, instructions: x}
        """,
        """
        - {name: a, instructions: x, handoffs: [b, a]}
        - {name: b, instructions: x}
        """,
    ),
)
