"""Screens, panes and the application hold parts: read from the source of ``tpuprof_tui/app``, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tpuprof_tui.app

ROOT = Path(tpuprof_tui.app.__file__).parent
#: Where Textual's own private names are overridden.
OVERRIDES = "terminal.py"
#: The application's own parts, which show screens and call back into it; all others are told what they need.
SHELL = "shell/"
#: What stands for the screens and the application that hold parts.
HOLDERS = {"App", "Screen", "OnceScreen", "ModalScreen", "ExplorerScreen", "TpuprofApp"}


@cache
def modules() -> dict[str, ast.Module]:
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")
    }


@cache
def classes() -> dict[str, tuple[str, ast.ClassDef]]:
    """All classes by name, with their modules; a class in a class (a message) by both names."""
    found = {}
    for name, tree in modules().items():
        for node in ast.walk(tree):
            for each in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
                if isinstance(each, ast.ClassDef):
                    found[f"{node.name}.{each.name}" if isinstance(node, ast.ClassDef) else each.name] = name, each
    return found


def last_name(node: ast.AST) -> str:
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def own_bases(node: ast.ClassDef) -> list[str]:
    return [name for name in map(last_name, node.bases) if name in classes()]


def depth(name: str) -> int:
    return 1 + max(map(depth, own_bases(classes()[name][1])), default=0)


def is_holder(name: str) -> bool:
    bases = [last_name(base) for base in classes()[name][1].bases] if name in classes() else []
    return name in HOLDERS or any(map(is_holder, bases))


def methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_classes_are_put_together_from_parts_not_from_one_another():
    several = {name for name, (_, node) in classes().items() if len(own_bases(node)) > 1}
    deep = {name for name in classes() if depth(name) > 2}
    assert several | deep == set()


def is_stub(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = [each for each in method.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    return len(body) == 1 and isinstance(body[0], ast.Raise) and "NotImplementedError" in ast.unparse(body[0])


def names_of_others(node: ast.ClassDef) -> Iterator[str]:
    """What a class says it has, but neither makes nor is given."""
    # a struct may be one by a base elsewhere: then its options tell
    if node.decorator_list or node.keywords or {"Protocol", "Struct"} & set(map(last_name, node.bases)):
        return
    made = {
        ast.unparse(each)
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and each.value is None and f"self.{ast.unparse(each.target)}" not in made:
            yield ast.unparse(each.target)


def test_no_class_only_says_what_another_has():
    stubs = {
        f"{name}.{method.name}" for name, (_, node) in classes().items() for method in methods(node) if is_stub(method)
    }
    stubs |= {f"{name}.{each}" for name, (_, node) in classes().items() for each in names_of_others(node)}
    assert stubs == set()


def test_what_is_private_is_used_by_its_owner_alone():
    found = []
    for name, tree in modules().items():
        if name.startswith(OVERRIDES):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = node.value
                own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
                above = isinstance(owner, ast.Call) and last_name(owner.func) == "super"
                if not (own or above):
                    found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
            elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("tpuprof_tui")):
                found += [f"{name} imports {each.name}" for each in node.names if each.name.startswith("_")]
    assert found == []


def test_parts_do_not_know_the_screen_that_holds_them():
    found = []
    for name, (module, node) in classes().items():
        if is_holder(name.partition(".")[0]):
            # gives itself to no part
            for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
                given = [*call.args, *(each.value for each in call.keywords)]
                known = classes().get(last_name(call.func))
                if (
                    known is not None
                    and not known[0].startswith(SHELL)
                    and any(ast.unparse(each) in ("self", "self.app") for each in given)
                ):
                    found.append(f"{name} gives itself to {ast.unparse(call.func)}")
            continue
        for method in methods(node) if not module.startswith((OVERRIDES, SHELL)) else ():
            arguments = [*method.args.args, *method.args.kwonlyargs]
            for each in arguments:
                words = {last_name(part) for part in ast.walk(each.annotation)} if each.annotation else set()
                found += [f"{module} {name}.{method.name} takes {word}" for word in words if word and is_holder(word)]
    assert found == []


def test_parts_of_the_explorer_do_not_reach_for_it():
    found = []
    for name, tree in modules().items():
        if not name.startswith(("explorer/", "panes/")) or name == "explorer/screen.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found += [f"{name} imports {each.name}" for each in node.names if each.name in HOLDERS]
            elif isinstance(node, ast.Attribute) and node.attr in ("app", "screen") and name.startswith("explorer/"):
                found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert found == []
