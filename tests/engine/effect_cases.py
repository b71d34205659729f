"""The cascades of ``effects``: between them they set every field of the language that a run reads."""

from __future__ import annotations

from tests.engine import effect_contests, effect_steps
from tests.engine.effects import Case, tool
from tests.engine.support import call

ENFORCED = {"name": "b", "instructions": "x", "output_schema": {"type": "object"}}
SAYS_TWO = ("first words of a phase", "second words")

CASES = (
    *effect_contests.CASES,
    *effect_steps.CASES,
    Case(
        """
cascade_id: c
phases:
  - {name: a, instructions: do it, tackle: [look], rules: {max_turns: 3}}
  - {name: b, instructions: "next {{ outputs.a }}"}
  - {name: d, instructions: last}
""",
        [
            ("cascade_id", "other", '"cascade_id": "other"'),
            ("inputs_schema", {"wanted": "w"}, "input 'wanted' was not given"),
            ("inputs_schema", {"topics": "t"}, "input 'topics' was not given (did you mean it by 'topic'?)"),
            ("phases/0/name", "alpha", "alpha/1"),
            ("phases/0/instructions", "Say {{ input.topic }}.", "user: Say lamps."),
            ("phases/0/tackle", ["rows"], "look is not available in this phase. Available: rows."),
            ("phases/0/tackle", "manifest", "manifest"),
            ("phases/0/model", "m/x::high(99)", "'budget_tokens': 99"),
            ("phases/0/use_native_tools", True, "'type': 'function'"),
            ("phases/0/rules/max_turns", 1, "No more tool calls are possible."),
            ("phases/0/rules/turn_prompt", "Turn {{ turn }}.", "user: Turn 2."),
            ("phases/0/handoffs", [{"target": "d"}], '"to": "d", "rule": "the only handoff"'),
            ("phases/0/handoffs", [{"target": "b", "description": "Go to B"}], "- b: Go to B"),
            ("phases/0/wards", {"pre": ["bad"]}, "'bad' blocked the input: too dull"),
            ("phases/0/wards", {"post": ["bad"]}, "'bad' blocked: too dull"),
            ("phases/0/wards", {"turn": ["bad"]}, '"check": "turn"'),
            ("phases/0/wards", {"post": [{"validator": "bad", "mode": "advisory"}]}, "'bad' advises: too dull"),
            ("phases/0/wards", {"post": [{"validator": "bad", "mode": "retry", "max_attempts": 2}]}, "attempt 2 of 2"),
            ("phases/0/output_schema", {"type": "object"}, "the answer holds no JSON"),
            ("phases/1/context", {"from": ["a"]}, "[Output from a]:"),
            ("phases/1/inject_from", ["a"], "[Output from a]:"),
            ("phases/1/sub_cascades", [{"ref": "child"}], "child_finished b/1"),
            ("phases/1/async_cascades", [{"ref": "child", "trigger": "on_end"}], "async_0"),
            ("phases/1/rag", {"directory": "kb"}, "rag_search"),
            ("phases/0/tackle", ["bank"], "tool 'bank' is not known"),
            ("context_default", "snowball", ""),
            ("default_fidelity", "compact", "## Pipeline State"),
            ("strategy", "clear(trigger=1)", "clear("),
            ("phases/1/fidelity", "truncate", "Current stage: b"),
            ("phases/1/strategy", "clear(trigger=1)", "clear("),
            (
                "phases/1",
                ENFORCED | {"enforce": "provider"},
                "'json_schema': {'name': 'b', 'schema': {'type': 'object'}}",
            ),
            ("phases/1", ENFORCED | {"enforce": "prompt"}, "Answer with JSON that matches this schema"),
            ("phases/1/temperature", 0.25, '"temperature": 0.25'),
            ("phases/1/top_p", 0.5, '"top_p": 0.5'),
            ("phases/1/max_tokens", 77, '"max_tokens": 77'),
            ("phases/1/seed", 11, '"seed": 11'),
            ("phases/1/stop", ["END"], '"stop": ["END"]'),
            ("phases/1/response_format", "json_object", '"response_format": {"type": "json_object"}'),
            (
                "phases/1/response_format",
                {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}}},
                '"json_schema": {"name": "n", "schema": {"type": "array"}}',
            ),
            ("phases/1/parameters", {"top_k": 3}, '"top_k": 3'),
            ("phases/1/cache_control", {"at": ["task"]}, '"at": ["task"]'),
            ("phases/1/cache_control", {"ttl": "1h"}, '"ttl": "1h"'),
            ("temperature", 0.25, '"temperature": 0.25'),
            ("top_p", 0.5, '"top_p": 0.5'),
            ("max_tokens", 77, '"max_tokens": 77'),
            ("seed", 11, '"seed": 11'),
            ("stop", "END", '"stop": "END"'),
            ("response_format", "json_object", '"response_format": {"type": "json_object"}'),
            ("parameters", {"top_k": 3}, '"top_k": 3'),
            ("cache_control", {"at": ["task"]}, '"at": ["task"]'),
        ],
        {"a": (tool("look", "one"), tool("look", "two"), "a is done")},
    ),
    Case(
        """
cascade_id: checks
validators: {plain: {instructions: "Is {{ input.content }} plain?"}}
phases:
  - {name: a, instructions: do it, rules: {loop_until: bad, max_attempts: 2}, wards: {post: [plain]}}
""",
        [
            ("phases/0/rules/loop_until", "good", "using 'good' which checks"),
            ("phases/0/rules/loop_until_prompt", "Be {{ input.topic }}.", "Be lamps."),
            ("phases/0/rules/loop_until_silent", True, "Your answer was not accepted: too dull"),
            ("phases/0/rules/max_attempts", 3, "You have 3 attempt(s)"),
            ("phases/0/rules/retry_instructions", "Once more: {{ validation_error }}", "Once more: too dull"),
            ("phases/0/intra_context", {"compress_loops": True}, "user: [Validation Failed]"),
            ("phases/0/decision_points", {"trigger": "error", "timeout_seconds": 9}, "The phase failed: too dull."),
        ],
        {"a": SAYS_TWO, "plain": ('{"valid": true}',)},
        answers=["continue"],
    ),
    Case(
        """
cascade_id: inline
validators: {plain: {instructions: "Is {{ input.content }} plain?", model: m/own}}
phases: [{name: a, instructions: do it, wards: {post: [plain]}}]
""",
        [
            ("validators/plain/instructions", "Judge {{ input.content }}!", "user: Judge first words of a phase!"),
            ("validators/plain/model", "m/other", ""),
            ("validators/plain/max_turns", 2, ""),
            ("phases/0/wards/post/0", {"validator": "good"}, '"name": "good"'),
        ],
        {"a": SAYS_TWO, "plain": ("no verdict",)},
    ),
    Case(
        """
cascade_id: between
phases:
  - {name: a, instructions: draw, tackle: [draw, set_state, look], rules: {max_turns: 4}}
  - {name: b, instructions: second}
  - {name: c, instructions: third, context: {from: [{phase: a, include: [messages, images, output, state]}, b]}}
""",
        [
            ("phases/2/context/from/0/phase", "b", "~[Conversation from a]"),
            ("phases/2/context/from/0/include", ["output"], "~[Conversation from a]:"),
            ("phases/2/context/from/0/images_filter", "last", ""),
            ("phases/2/context/from/0", {"phase": "a", "images_filter": "last_n", "images_count": 2}, ""),
            ("phases/2/context/from/0/messages_filter", "assistant_only", ""),
            ("phases/2/context/from/0/as_role", "system", "system: [Output from a]"),
            ("phases/2/context/from/0/condition", "{{ state.k > 3 }}", "~[Conversation from a]"),
            ("phases/2/context/from", ["b"], "~[Output from a]:"),
            ("phases/2/context/exclude", ["b"], "~[Output from b]:"),
            ("phases/2/context/include_input", False, "~[Original Input]:"),
            ("phases/2/context/mode", "auto", ""),
            ("phases/1/inject_from", [{"phase": "a", "include": ["state"]}], "inject_from[0]"),
            ("phases/2", {"name": "c", "instructions": "i", "thread_id": "t", "fidelity": "full"}, ""),
        ],
        {"a": (tool("draw", "1"), tool("draw", "2"), call("set_state", key="k", value=1), "a is done")},
    ),
    Case(
        """
cascade_id: snowball
context_default: snowball
phases:
  - {name: a, instructions: look, tackle: [look, draw], rules: {max_turns: 3}}
  - {name: b, instructions: second}
  - {name: c, instructions: third}
""",
        [
            ("phases/0/context_retention", "output_only", "context_retention"),
            ("phases/0/context_ttl", {"tool_results": 0}, "context_ttl"),
            ("phases/0/context_ttl", {"images": 0}, "context_ttl"),
            ("phases/0/context_ttl", {"messages": 0}, "context_ttl"),
        ],
        {"a": (tool("look", "one"), tool("draw", "two"), "a is done")},
    ),
    Case(
        """
cascade_id: threads
default_fidelity: full
phases:
  - {name: a, instructions: one, thread_id: x, handoffs: [{target: b}]}
  - {name: b, instructions: two}
""",
        [
            ("phases/0/handoffs/0/target", "a", "was visited"),
            ("phases/0/handoffs/0/fidelity", "summary:low", "Last outcome"),
            ("phases/0/handoffs/0/thread_id", "x", ""),
            ("phases/0/thread_id", "y", ""),
        ],
        {},
    ),
    Case(
        """
cascade_id: within
auto_context: {intra_phase: {window: 1, mask_observations_after: 1, min_masked_size: 5, preserve_reasoning: false}}
phases:
  - name: a
    instructions: look
    tackle: [look, fails]
    rules: {max_turns: 6, max_attempts: 5}
    wards: {post: [{validator: bad, mode: retry}]}
""",
        [
            ("auto_context/intra_phase/enabled", False, "~masked"),
            ("auto_context/intra_phase/window", 9, ""),
            ("auto_context/intra_phase/mask_observations_after", 9, ""),
            ("auto_context/intra_phase/compress_loops", False, "~[Validation Failed]"),
            ("auto_context/intra_phase/loop_history_limit", 1, ""),
            ("auto_context/intra_phase/preserve_reasoning", True, ""),
            ("auto_context/intra_phase/preserve_errors", False, ""),
            ("auto_context/intra_phase/min_masked_size", 9000, ""),
            ("auto_context/intra_phase/step", 3, ""),
            ("auto_context/intra_phase/clear_at_least", 9999, ""),
            ("phases/0/intra_context", {"enabled": False}, ""),
        ],
        {"a": (tool("look", "1"), "thinking " * 40, tool("fails"), tool("look", "2"), tool("look", "3"), "a is done")},
    ),
    Case(
        """
cascade_id: auto
auto_context: {inter_phase: {enabled: true, strategy: heuristic}}
phases:
  - name: a
    instructions: "alpha lamps"
    tackle: [look, fails]
    rules: {max_turns: 4}
    callouts: {output: "Result", messages: "Note"}
  - {name: b, instructions: "beta words"}
  - {name: c, instructions: "gamma", callouts: {messages: Third}}
  - name: d
    instructions: "lamps seen"
    context: {mode: auto, anchors: {include: [input], window: 0}, selection: {max_messages: 2, strategy: heuristic}}
  - {name: e, instructions: "words", context: {mode: auto}}
""",
        [
            ("auto_context/inter_phase/enabled", False, ""),
            ("auto_context/inter_phase/strategy", "llm", '"purpose": "selection"'),
            ("auto_context/inter_phase", {"strategy": "llm", "selector_model": "m/selects"}, "m/selects"),
            ("auto_context/inter_phase/anchors", {"include": ["errors"], "window": 3}, ""),
            ("auto_context/inter_phase/selection", {"max_messages": 0}, ""),
            ("phases/3/context/anchors/include", ["output", "callouts", "errors"], ""),
            ("phases/3/context/anchors/window", 3, ""),
            ("phases/3/context/anchors", {"include": ["output"], "from_phases": ["a"]}, ""),
            ("phases/3/context/selection/max_messages", 1, ""),
            ("phases/3/context/selection/max_tokens", 10, ""),
            ("phases/3/context/selection/strategy", "llm", '"purpose": "selection"'),
            ("phases/3/context/selection", {"strategy": "llm", "selector_model": "m/own"}, "m/own"),
            ("phases/3/context/selection/recency_weight", 50, ""),
            ("phases/3/context/selection/keyword_weight", 50, ""),
            ("phases/3/context/selection/callout_weight", 0, ""),
            ("phases/3/context/selection", {"strategy": "semantic", "similarity_threshold": 1}, ""),
            ("phases/0/callouts/output", "Named {{ turn }}", '"name": "Named 4"'),
            ("phases/0/callouts/messages", "Seen {{ turn }}", '"name": "Seen 2"'),
            ("phases/0/callouts/messages_filter", "last_turn", ""),
        ],
        {"a": (tool("look", "1"), tool("fails"), tool("look", "2"), "a is done"), "d!": ('{"selected": [1]}',)},
    ),
    Case(
        """
cascade_id: budget
token_budget: {max_total: 900, reserve_for_output: 0, strategy: sliding_window, summarizer: {model: m/sums}}
phases:
  - {name: a, instructions: look, tackle: [look], rules: {max_turns: 6}}
""",
        [
            ("token_budget/max_total", 300, ""),
            ("token_budget/reserve_for_output", 600, ""),
            ("token_budget/warning_threshold", 0.1, ""),
            ("token_budget/phase_overrides", {"a": 300}, ""),
            ("token_budget", {"max_total": 300, "reserve_for_output": 0, "strategy": "prune_oldest"}, ""),
            ("token_budget", {"max_total": 300, "reserve_for_output": 0, "strategy": "fail"}, "strategy fail"),
            (
                "token_budget",
                {"max_total": 400, "reserve_for_output": 0, "strategy": "summarize", "summarizer": {"model": "m/sums"}},
                "asks m/sums",
            ),
            (
                "token_budget",
                {"max_total": 400, "reserve_for_output": 0, "strategy": "summarize", "summarizer": {"target_size": 77}},
                "77 tokens",
            ),
        ],
        {"a": (tool("look", "1"), tool("look", "2"), tool("look", "3"), tool("look", "4"), tool("look", "5"), "done")},
    ),
    Case(
        """
cascade_id: caching
tool_caching: {enabled: true, tools: {look: {ttl: 3600}, find: {}}}
phases:
  - {name: a, instructions: look, tackle: [look, rows, find], rules: {max_turns: 7}}
  - {name: b, instructions: look again, tackle: [look], rules: {max_turns: 2}}
""",
        [
            ("tool_caching/enabled", False, '~"cached": true'),
            ("tool_caching", {"enabled": True, "tools": {"look": {}}, "global_ttl": 0}, '~"cached": true'),
            ("tool_caching/max_cache_size", 0, '~"cached": true'),
            ("tool_caching/tools/look/enabled", False, '~"cached": true'),
            ("tool_caching/tools/look/ttl", 0, '~"cached": true'),
            ("tool_caching/tools/look/hit_message", "(again)", "(again)"),
            ("tool_caching/tools/look/invalidate_on", ["tool:rows", "phase_start"], '~"cached": true'),
            ("tool_caching/tools/find/key", "query", "~found a  B"),
        ],
        {
            "a": (
                tool("look", "one"),
                tool("rows"),
                call("find", query="A b"),
                tool("look", "one"),
                call("find", query="a  B"),
                "done",
            ),
            "b": (tool("look", "one"), "done"),
        },
    ),
    Case(
        """
cascade_id: chooses
phases:
  - {name: a, instructions: first}
  - {name: b, instructions: second, tackle: manifest}
""",
        [("phases/1/manifest_context", "full", "")],
        {"b!": ('{"tools": ["rows"]}',), "a": ("first text",)},
    ),
)

_MCP = "tools/test_mcp_servers.py::"
_PAGE = "engine/test_pages.py::test_a_page_is_a_form_and_its_answer_is_state_output_and_route"
NAMED = {
    "Cascade.mcp": "cli/test_mcp.py::test_tools_of_a_server_run_once_and_are_replayed_without_it",
    "Phase.mcp": "cli/test_mcp.py::test_a_phase_may_have_a_server_of_its_own",
    "McpServer.command": f"{_MCP}test_a_server_lists_its_tools_and_what_they_give_is_kept",
    "McpServer.args": "cli/test_mcp.py::test_a_phase_may_have_a_server_of_its_own",
    "McpServer.env": f"{_MCP}test_a_server_lists_its_tools_and_what_they_give_is_kept",
    "McpServer.cwd": f"{_MCP}test_a_server_that_may_not_or_cannot_be_reached_says_so",
    "McpServer.url": f"{_MCP}test_a_server_is_reached_by_its_address_unless_it_refuses",
    "McpServer.headers": f"{_MCP}test_a_server_is_reached_by_its_address_unless_it_refuses",
    "McpServer.tools": f"{_MCP}"
    "test_one_connection_serves_all_that_ask_at_once_with_the_tools_that_the_definition_names",
    "McpServer.timeout": f"{_MCP}"
    "test_a_call_that_takes_too_long_is_an_error_and_a_cancelled_one_leaves_no_program_behind",
    "McpServer.start_timeout": f"{_MCP}test_a_server_that_is_none_is_a_fault_that_says_why",
    "Audibles.timeout_seconds": "engine/test_steering.py::"
    "test_who_begins_to_speak_and_does_not_end_is_waited_for_so_long_and_journaled",
    "Cascade.memory": "engine/test_retrieval.py::test_a_phase_with_rag_is_offered_its_tools_and_a_listed_bank",
    "Cascade.strategies": "context/test_strategy.py::test_named_strategies_are_known_by_name",
    "ForEachRow.table": "cli/test_data_phases.py::test_a_table_that_is_not_there_is_named",
    "ForEachRow.cascade": "cli/test_data_phases.py::test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out",
    "ForEachRow.inputs": "cli/test_data_phases.py::test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out",
    "ForEachRow.max_parallel": "cli/test_data_phases.py::test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out",
    "ForEachRow.result_table": "cli/test_data_phases.py::test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out",
    "ForEachRow.on_error": "cli/test_data_phases.py::test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out",
    "ForEachRow.instructions": "cli/test_data_phases.py::test_a_task_runs_for_each_row_as_text_that_is_rendered_once",
    "InlineValidator.python": "cli/test_data_phases.py::test_a_validator_written_in_place_judges",
    "InlineValidator.javascript": "cli/test_data_phases.py::test_a_validator_written_in_place_judges",
    "InlineValidator.sql": "cli/test_data_phases.py::test_a_validator_written_in_place_judges",
    "InlineValidator.bash": "cli/test_data_phases.py::test_a_validator_written_in_place_judges",
    "InlineValidator.clojure": "cli/test_data_phases.py::test_a_missing_interpreter_is_named",
    "InlineValidator.tool": "cli/test_data_phases.py::test_a_validator_in_place_can_stand_wherever_a_name_can",
    "InlineValidator.inputs": "cli/test_data_phases.py::test_a_validator_in_place_can_stand_wherever_a_name_can",
    "Phase.htmx": _PAGE,
    "Phase.hitl_title": _PAGE,
    "Phase.hitl_description": _PAGE,
    "Phase.await_input": "engine/test_pages.py::test_what_is_pressed_says_what_comes_next",
    "Phase.for_each_row": "cli/test_data_phases.py::test_a_cascade_runs_for_each_row_and_failed_rows_are_left_out",
    "Rag.directory": "tools/test_rag.py::test_a_folder_that_is_none_or_leaves_the_workspace_is_refused",
    "Rag.recursive": "tools/test_rag.py::test_the_rule_says_which_files",
    "Rag.include": "tools/test_rag.py::test_the_rule_says_which_files",
    "Rag.exclude": "tools/test_rag.py::test_the_rule_says_which_files",
    "Rag.chunk_chars": "tools/test_rag.py::test_the_rule_says_how_large_passages_are_and_what_they_share",
    "Rag.chunk_overlap": "tools/test_rag.py::test_the_rule_says_how_large_passages_are_and_what_they_share",
    "Rag.model": "tools/test_rag.py::test_embeddings_rank_where_a_model_is_named_and_are_made_once",
    "ToolCaching.storage": "language/lint/test_catalogue.py::test_a_code_is_found_once_at_the_offending_character",
}
"""Fields that need more than a run in memory, each with the test that shows what it does."""
