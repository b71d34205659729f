"""L4xx: what enters a phase."""

from __future__ import annotations

from tests.language.lint.examples.example import FALLBACK, Example

TWO = "- {name: a, instructions: x}\n- {name: b, instructions: x, "
THREE = """
- {name: a, instructions: x, handoffs: [b, c]}
- {name: b, instructions: x, handoffs: [c]}
- {name: c, instructions: x, """
NATIVE = """
- {name: a, instructions: x, tackle: [read_file], use_native_tools: true}
- {name: b, instructions: x, """

SOURCES = (
    Example(
        "L401",
        """
        - {name: a, instructions: x, context: {from: [«b]}}
        - {name: b, instructions: x}
        """,
        """
        - {name: a, instructions: x, context: {from: [b]}}
        - {name: b, instructions: x, handoffs: [a]}
        """,
        id="forward",
    ),
    Example(
        "L401",
        """
        - {name: a, tool: create_chart, on_error: c, handoffs: [b]}
        - {name: b, instructions: x, handoffs: []}
        - {name: c, instructions: x, inject_from: [a, {phase: «b}]}
        """,
        """
        - {name: a, tool: create_chart, on_error: c, handoffs: [b]}
        - {name: b, instructions: x, handoffs: [c]}
        - {name: c, instructions: x, inject_from: [a, {phase: b}]}
        """,
        id="on another branch",
    ),
    Example("L401", TWO + "context: {from: [«'a#2']}}", TWO + "context: {from: ['a#1']}}", id="second visit"),
    Example(
        "L401",
        TWO + "context: {mode: auto, anchors: {from_phases: [«c]}}}\n- {name: c, instructions: x}",
        TWO + "context: {mode: auto, anchors: {from_phases: [a]}}}\n- {name: c, instructions: x}",
        id="anchors",
    ),
    Example("L402", TWO + "context: {from: [«aa]}}", TWO + "context: {from: [a]}}", fix="a"),
    Example("L402", TWO + "context: {from: [«prevous]}}", TWO + "context: {from: [PREVIOUS]}}", fix="previous"),
    Example(
        "L402",
        FALLBACK + "- {name: b, instructions: x, context: {from: [«rescu]}}",
        FALLBACK + "- {name: b, instructions: x, context: {from: [rescue, all], exclude: [rescue]}}",
        fix="rescue",
        id="a phase under on_error",
    ),
    Example(
        "L402",
        TWO + "strategy: inject, context: {from: [bb]}, inject_from: [«aa]}",
        TWO + "strategy: inject, context: {from: [bb]}, inject_from: [a]}",
        id="where the strategy reads inject_from",
    ),
    Example("L403", TWO + "context: {from: [a]}, «inject_from: [a]}", TWO + "inject_from: [a]}"),
    Example("L403", TWO + "context: {}, «fidelity: full}", TWO + "fidelity: full}", id="fidelity"),
    Example(
        "L403",
        """
        - {name: a, instructions: x, handoffs: [{target: b, «fidelity: full}]}
        - {name: b, instructions: x, context: {from: [a]}}
        """,
        """
        - {name: a, instructions: x, handoffs: [{target: b, fidelity: full}]}
        - {name: b, instructions: x}
        """,
        id="of an edge",
    ),
    Example(
        "L403",
        TWO + "strategy: snowball, «context: {from: [a]}}",
        TWO + "strategy: 'selective+budget(max=10000)', context: {from: [a]}}",
        id="a strategy says what enters",
    ),
    Example(
        "L403",
        TWO + "strategy: auto(max_tokens=900), «inject_from: [a]}",
        TWO + "strategy: auto(max_tokens=900), context: {from: [a]}}",
        id="auto keeps to the sources of context",
    ),
    Example(
        "L403",
        TWO + "strategy: inject, «context: {from: [a]}}",
        TWO + "strategy: inject, inject_from: [a]}",
        id="inject takes its own sources",
    ),
    Example(
        "L403",
        TWO + "strategy: inject, «context: {from: [a]}, inject_from: [a]}",
        TWO + "strategy: inject, inject_from: [a]}",
        id="inject_from wins over context where the strategy reads it",
    ),
    Example(
        "L403",
        "cascade_id: c\nstrategy: short\nstrategies: {short: mask(after=2)}\n"
        "phases: [{name: a, instructions: x, rules: {max_turns: 2}, «intra_context: {}}]",
        "cascade_id: c\nstrategy: short\nstrategies: {short: budget(max=20000)}\n"
        "phases: [{name: a, instructions: x, rules: {max_turns: 2}, intra_context: {}}]",
        id="a named strategy of the cascade",
    ),
    Example(
        "L403",
        "cascade_id: c\nstrategy: budget(max=20000)\n«token_budget: {}\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\nstrategy: mask(after=2)\ntoken_budget: {}\nphases: [{name: a, instructions: x}]",
        id="a strategy's budget",
    ),
    Example("L404", THREE + "context: {from: [a, «b]}}", THREE + "context: {from: [a]}}"),
    Example(
        "L404",
        THREE + "context: {from: [{phase: «b}]}}",
        THREE + "context: {from: [{phase: b, condition: 'outputs.b is defined'}]}}",
        id="a condition knows",
    ),
    Example(
        "L405",
        "- {name: a, instructions: x, context: {from: [«previous]}}",
        "- {name: a, instructions: x, handoffs: [a, b], context: {from: [previous]}}\n- {name: b, instructions: x}",
    ),
    Example(
        "L406",
        TWO + "context: {from: [all], exclude: [«c]}}",
        TWO + "context: {from: [all], exclude: [a]}}",
        id="no phase",
    ),
    Example(
        "L406",
        THREE + "context: {from: [a], exclude: [«b]}}",
        THREE + "context: {from: [previous], exclude: [b, first]}}",
        id="not brought in",
    ),
    Example(
        "L407",
        TWO + "context: {from: [{phase: a, «images_count: 2}]}}",
        TWO + "context: {from: [{phase: a, images_filter: last_n, images_count: 2}]}}",
    ),
    Example(
        "L407",
        TWO + "inject_from: [{phase: a, «filter: last_turn}]}",
        TWO + "inject_from: [{phase: a, filter: last_turn, include: [messages]}]}",
        id="by its other name",
    ),
    Example(
        "L408",
        TWO + "context: {from: [a], «selection: {max_tokens: 10}}}",
        TWO + "context: {from: [a], selection: {max_tokens: 10}, mode: auto}}",
    ),
    Example(
        "L409",
        NATIVE + "context: {from: [«{phase: all, include: [messages]}]}}",
        NATIVE + "context: {from: [{phase: all, include: [output]}]}}",
    ),
    Example(
        "L410",
        "- {name: a, instructions: x, «intra_context: {window: 2}}",
        "- {name: a, instructions: x, intra_context: {window: 2}, rules: {max_turns: 2}}",
    ),
    Example(
        "L410",
        "- {name: a, instructions: x, «intra_context: {}, rules: {max_attempts: 3}}",
        "- {name: a, instructions: x, intra_context: {}, decision_points: {}}",
        id="a person may ask for another attempt",
    ),
    Example(
        "L410",
        "cascade_id: c\nauto_context: {«intra_phase: {}}\nphases: [{name: a, instructions: x}]",
        "cascade_id: c\nauto_context: {intra_phase: {}}\n"
        "phases: [{name: a, instructions: x, output_schema: {}, rules: {max_attempts: 2}}]",
        id="of the cascade",
    ),
    Example(
        "L411",
        "- {name: a, instructions: x, context_ttl: {«tool_result: 1}}",
        "- {name: a, instructions: x, context_ttl: {tool_results: 1}}",
        fix="tool_results",
    ),
    Example("L412", TWO + "context: {from: [a, «a]}}", TWO + "context: {from: [a, {phase: a, include: [messages]}]}}"),
    Example("L412", TWO + "context: {from: [all, «first]}}", TWO + "context: {from: [first]}}", id="by a keyword"),
    Example(
        "L412",
        THREE + "context: {from: [previous, a, «previous]}}",
        THREE + "context: {from: [previous, a]}}",
        id="previous may be another",
    ),
    Example(
        "L413",
        """
        - {name: a, tool: sql_data, inputs: {query: "SELECT x AS _c FROM _«b"}}
        - {name: b, tool: sql_data, inputs: {query: "SELECT 1 AS x"}}
        """,
        """
        - {name: b, tool: sql_data, inputs: {query: "SELECT 1 AS x"}}
        - {name: a, tool: sql_data, inputs: {query: "SELECT x AS _c FROM _b"}}
        """,
        id="of a query",
    ),
    Example(
        "L413",
        """
        - {name: a, tool: python_data, inputs: {code: "result = data.«b  # data.c"}}
        - {name: b, tool: sql_data, inputs: {query: "WITH _c AS (SELECT 1), x AS (SELECT '_c') SELECT * FROM _c"}}
        - {name: c, instructions: x}
        """,
        """
        - {name: a, tool: python_data, inputs: {code: "result = other.data.b, my_data.b, data.rows"}}
        - {name: b, tool: bash_data, inputs: {script: cat, input_table: _a}}
        - {name: c, instructions: x}
        """,
        id="of code",
    ),
    Example(
        "L413",
        """
        - {name: a, instructions: x}
        - {name: b, for_each_row: {table: «_aa, instructions: x}}
        """,
        """
        - {name: a, instructions: x}
        - {name: b, for_each_row: {table: _a_items, instructions: x, result_table: _mine}}
        - {name: c, for_each_row: {table: _mine, instructions: x}}
        """,
        fix="_a",
        id="no phase",
    ),
)
