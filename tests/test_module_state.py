"""Modules keep nothing: what is computed belongs to an object, and goes with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "tpuprof_tui"
MEMOS = {"cache", "lru_cache"}
CONTAINERS = {
    "dict", "list", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter", "WeakKeyDictionary",
    "WeakValueDictionary", "WeakSet", "ContextVar", "local",
}  # fmt: skip
CHANGING = {"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
LITERALS = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
#: What stays, and why: all of it is bounded and knows no profile.
STAYS = {
    "model/profile.py numbers": "numbers of the events of one restricted profile, freed with it",
    "sources/torch/categories.py uses_tensor_cores": "a function of a kernel's name, asked by several views",
    "sources/torch/categories.py tensor_core_use": "a function of a kernel's name, asked by several views",
    "sources/torch/categories.py category_of": "a function of two names, asked for each kind of kernel",
    "analysis/compare/noise.py quantile": "a function of two numbers, asked for each row of a comparison",
    "app/drawing/colouring.py kernel_category": "a function of code and name, asked for each cell of a frame",
    "app/drawing/glyphs.py ascii_text": "a function of a text, asked for each piece of a frame",
    "app/drawing/colouring.py category_of": "a function of a name, asked for each cell of a frame",
    "app/settings/actions.py _REMAPPED": "keys as the preferences set them, for the one application of a process",
    "child_process.py _sharing": "a number that a pool sets once in each of its processes",
    "dataset/build.py _encodings": "a function of a schema, asked for each file of a build",
    "dataset/schema.py arrow_schema": "a function of a table's name, asked for each capture of a build",
    "dataset/schema.py arrow_types": "a constant that needs pyarrow",
    "dataset/tables.py _event_schema": "a function of a source's columns, asked for each capture of a build",
    "sources/column_cache.py _code": "the code of the package, which a process loads once",
    "formats/escape.py clean": "a function of a text, asked for each name of a frame",
    **dict.fromkeys(
        (
            "sources/ascend/read/trace_view.py _ARGUMENTS",
            "sources/torch/read/graph_captures.py _CALLS",
            "sources/torch/read/graph_captures.py _NODES",
            "sources/torch/read/dependencies.py _WAITS",
            "sources/torch/read/arguments.py ARGUMENTS",
            "sources/torch/read/arguments.py FLOWS",
            "sources/torch/read/arguments.py FRAMES",
            "sources/torch/read/arguments.py MEMORY",
            "sources/torch/read/arguments.py MESSAGES",
            "sources/torch/read/arguments.py OPERATORS",
            "sources/torch/read/arguments.py PHASES",
            "sources/torch/read/arguments.py WORK",
        ),
        "a constant: what is decoded of events",
    ),
    "sources/sophgo/chips/bit_layout.py CHIP_FILES": "files of the package: the same for every capture, few as chips",
}


def called(node: ast.AST) -> str:
    """The last name of what is called, or of a name."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def fills(node: ast.AST) -> bool:
    """Whether a class makes a container for each of its objects."""
    return any(
        (isinstance(each, (ast.Assign, ast.AnnAssign)) and is_container(each.value))
        or (isinstance(each, ast.keyword) and each.arg == "default_factory" and called(each.value) in CONTAINERS)
        for each in ast.walk(node)
    )


def is_container(value: ast.AST | None) -> bool:
    return isinstance(value, LITERALS) or (isinstance(value, ast.Call) and called(value) in CONTAINERS)


def statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements and those within them: a tenth of all nodes."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, []))


def changed_names(tree: ast.Module) -> set[str]:
    """Names whose content is changed inside a function."""
    found = set()
    for function in statements(tree.body):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        inside = list(ast.walk(function))
        own = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        for each in inside:
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGING:
                found |= {called(each.func.value)} - own
            elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
                found |= {called(each.value)} - own
    return found


def state_of(tree: ast.Module, filling: set[str]) -> Iterator[str]:
    """Names of what a module keeps and changes: memos of functions, containers that are filled, names set anew.

    Args:
        tree: The module.
        filling: Classes whose objects have containers.
    """
    changed: set[str] | None = None
    for node in statements(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and MEMOS & set(map(called, node.decorator_list)):
            yield node.name
        elif isinstance(node, ast.Global):
            yield from node.names
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        value = node.value
        content = {ast.Dict: "keys", ast.List: "elts", ast.Set: "elts", ast.Call: "args"}.get(type(value), "")
        empty = is_container(value) and content and not getattr(value, content)
        if changed is None and is_container(value):
            changed = changed_names(tree)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            name = called(target)
            if (
                empty
                or (changed and is_container(value) and name in changed)
                or (isinstance(value, ast.Call) and (called(value) in filling or called(value.func) in MEMOS))
            ):
                yield name


def fills_itself(node: ast.ClassDef) -> bool:
    begin = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    # a Mapping is not changed, which mypy checks
    fields = [each for each in fields if not ast.unparse(each.annotation).startswith("Mapping[")]
    return any(map(fills, begin)) or any(fills(each) for each in fields)


def found() -> set[str]:
    trees = dict(modules())
    filling = {
        node.name
        for tree in trees.values()
        for node in statements(tree.body)
        if isinstance(node, ast.ClassDef) and fills_itself(node)
    }
    return {f"{path} {name}" for path, tree in trees.items() for name in state_of(tree, filling)}


def test_modules_keep_nothing_but_what_is_listed():
    assert found() == set(STAYS)


@pytest.mark.parametrize(
    "text",
    [
        "@cache\ndef f(): pass",
        "@functools.lru_cache(4)\ndef f(): pass",
        "def outer():\n    @cache\n    def f(): pass",
        "f = {}",
        "f: Final[dict[str, int]] = dict()",
        "f = WeakKeyDictionary()",
        "f = {1: 2}\ndef put(): f[3] = 4",
        "f = [1]\ndef put(): f.append(2)",
        "f = lru_cache(4)(len)",
        "f = 1\ndef put():\n    global f\n    f = 2",
        "f = Kept()",
    ],
)
def test_what_keeps_something_is_found(text):
    assert set(state_of(ast.parse(text), {"Kept"})) == {"f"}


@pytest.mark.parametrize(
    "text",
    [
        "F = {1: 2}",
        "F = {key: 2 for key in KEYS}",
        "F = (1, 2)",
        "F = Table()",
        "def f():\n    known = {}\n    known[1] = 2",
    ],
)
def test_what_keeps_nothing_is_not(text):
    assert not set(state_of(ast.parse(text), {"Kept"}))
