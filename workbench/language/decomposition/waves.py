"""The order of tasks: first those without dependencies, then, wave by wave, those whose dependencies are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.language.graph import Graph


def waves(dependencies: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Kahn's order in waves. ``dependencies``: of each id, in the order of the file, the ids that it waits for; ids
    that are no key do not count. What is on a cycle, or waits for one, is in no wave. Takes time proportional to the
    number of dependencies."""
    waiting = {id: {other for other in needs if other in dependencies} for id, needs in dependencies.items()}
    freed: dict[str, list[str]] = {}
    for id, needs in waiting.items():
        for other in needs:
            freed.setdefault(other, []).append(id)
    order = {id: index for index, id in enumerate(dependencies)}
    found: list[tuple[str, ...]] = []
    ready = [id for id, needs in waiting.items() if not needs]
    while ready:
        found.append(tuple(ready))
        fresh: list[str] = []
        for id in ready:
            for other in freed.get(id, ()):
                waiting[other].discard(id)
                if not waiting[other]:
                    fresh.append(other)
        ready = sorted(fresh, key=order.__getitem__)
    return tuple(found)


def waves_of(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """The ids of a graph's nodes, wave by wave."""
    return waves(graph.needs)


def cycles(dependencies: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The groups of ids that wait for each other, each in the order of the file: what keeps ``waves`` from its end."""
    done = {id for wave in waves(dependencies) for id in wave}
    left = {id: [other for other in needs if other in dependencies] for id, needs in dependencies.items()}
    left = {id: [other for other in needs if other not in done] for id, needs in left.items() if id not in done}
    order = {id: index for index, id in enumerate(dependencies)}
    groups = [sorted(group, key=order.__getitem__) for group in _connected(left)]
    real = [group for group in groups if len(group) > 1 or group[0] in left[group[0]]]
    return tuple(tuple(group) for group in sorted(real, key=lambda group: order[group[0]]))


def _connected(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan), without recursion: a file may hold thousands of tasks in a row."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            following = edges[node]
            if at > 0:
                low[node] = min(low[node], low[following[at - 1]])
            while at < len(following):
                other = following[at]
                at += 1
                if other not in index:
                    work += [(node, at), (other, 0)]
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                if low[node] == index[node]:
                    group: list[str] = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    found.append(group)
    return found
