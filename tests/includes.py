"""Circles of includes: prints one line for each that is not allowed, for tests/tidy.sh.

A module is a .c with its .h. A header without a .c has no code of its own, so what includes it
depends on whatever it includes. Headers alone may never form a circle; modules only these:
"""
import os
import re
import sys

ALLOWED = [set(circle.split()) for circle in (
    # the loop hands events to connections and exchanges; both report their end to the loop
    "server/http/loop server/http/connection server/http/exchange",
    # an edit evaluates its brush; the parameters of a brush are members of an edit
    "server/terrain/field/edit server/terrain/field/brush",
    # a ray runs the kernel that was chosen; the tables of kernels name the scalar ray
    "server/terrain/field_ray/ray server/terrain/kernels/simd",
    # a locale holds earlier values of it, which are locales
    "server/world/values/locale server/world/values/pins",
    # a mesh and the index of its floors, which reads the mesh's polygons
    "server/terrain/mesh/mesh server/terrain/mesh/floor_grid server/terrain/mesh/floor_grid_lut "
    "server/terrain/mesh/floor_grid_cells "
    "server/terrain/mesh/mesh_stack server/terrain/mesh/convex_parts",
)]


def sources():
    for top in ("server", "client", "deploy", "tests/bench/sandscene"):
        for folder, _, names in os.walk(top):
            yield from (os.path.join(folder, name) for name in names if name.endswith((".c", ".h")))


def includes(files):
    """{file: the project's files that it includes}"""
    graph = {}
    for file in files:
        with open(file, encoding="utf-8") as text:
            named = re.findall(r'^\s*#\s*include\s+"([^"]+)"', text.read(), re.M)
        tops = ("server", "", os.path.dirname(file), "deploy", "tests/bench")
        found = (next((path for top in tops if (path := os.path.normpath(os.path.join(top, name)))
                       in files), None) for name in named)
        graph[file] = {path for path in found if path}
    return graph


def circles(graph):
    """Strongly connected sets of more than one node (Tarjan, 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def modules(graph):
    """The same of modules that have code; headers without are passed through."""
    merged = {}
    for file, others in graph.items():
        merged.setdefault(file[:-2], set()).update(other[:-2] for other in others)
    with_code = {file[:-2] for file in graph if file.endswith(".c")}

    def reach(name, seen):
        for other in merged[name] - seen:
            seen.add(other)
            if other in with_code:
                yield other
            else:
                yield from reach(other, seen)

    return {name: set(reach(name, {name})) for name in with_code}


everything = includes(set(sources()))
sys.setrecursionlimit(10000)
for circle in circles({file: {other for other in others if other.endswith(".h")}
                       for file, others in everything.items() if file.endswith(".h")}):
    print("headers in a circle:", *sorted(circle))
for circle in circles(modules(everything)):
    if not any(circle <= allowed for allowed in ALLOWED):
        print("modules in a circle:", *sorted(circle))
