"""C++ names of kernels for people: without return type, parameters, namespaces and plumbing of templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern

#: Longer names stay as they are.
_LONGEST: Final = 1 << 14
#: How deep templates are shown where fewer levels would make two names one.
_DEEPEST: Final = 3
_CPP: Final = lazy_pattern(r"void \S|.*\w<.*::|\w+(?:::\w+)+<|.*::.*\)$|\w+\([^()]*[<*&][^()]*\)$", 0)
#: Mangled names, and a part of their path: its length, then its text.
_MANGLED: Final = lazy_pattern(r"_ZN?K?(?=\d)", 0)
_PART: Final = lazy_pattern(r"(\d{1,4})(?=[A-Za-z_])", 0)
#: Frames and operators of Python: file(line): function, <built-in method ...>, aten::mm.
_PYTHON: Final = lazy_pattern(r"[^<]*\(\d+\): |<|[\w:.]+$", 0)
#: Templates that stand for what they wrap, and arguments that tell nothing of a kernel.
_WRAPPERS: Final = ("gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_kernel", "Kernel", "Kernel2")
_PLUMBING: Final = ("Array", "array", "OffsetCalculator", "TrivialOffsetCalculator", "LoadWithCast", "LoadWithoutCast",
                    "StoreWithCast", "StoreWithoutCast", "NullType")  # fmt: skip
_OPENING, _CLOSING = "<({[", ">)}]"


def readable_names(names: Iterable[str]) -> dict[str, str]:
    """The names as people read them; distinct names stay distinct, if need be by more of their templates.

    ``void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(int, ...)`` becomes
    ``vectorized_elementwise_kernel<4, CUDAFunctor_add>``. Names that are not of C++ stay as they are.
    """
    distinct = list(dict.fromkeys(names))
    found = {name: name for name in distinct if not _is_cpp(name)}
    left = [name for name in distinct if name not in found]
    for depth in range(1, _DEEPEST + 1):
        short = {name: _folded(name, depth) for name in left}
        times = Counter((*found.values(), *short.values()))
        found |= {name: text for name, text in short.items() if times[text] == 1}
        left = [name for name in left if name not in found]
    return {**found, **{name: name for name in left}}


def _is_cpp(name: str) -> bool:
    if len(name) > _LONGEST or _MANGLED.match(name):
        return len(name) <= _LONGEST
    return not _PYTHON.match(name) and bool(_CPP.match(name))


def _folded(name: str, depth: int) -> str:
    if (mangled := _MANGLED.match(name)) is not None:
        return (_last_part(name, mangled.end()) if depth == 1 else "") or name
    return _of_path(name.removeprefix("void "), depth) or name


def _last_part(name: str, place: int) -> str:
    """The last part of the path of a mangled name that begins at a place; its templates are not decoded."""
    part = ""
    while (match := _PART.match(name, place)) is not None:
        place = match.end() + int(match[1])
        part = name[match.end() : place]
    return part


def _of_path(text: str, depth: int, *, unwraps: bool = True) -> str:
    """The last part of a path of namespaces and functions, with ``depth`` levels of template arguments."""
    parts = [part for part in _split(text, "::") if not part.startswith(("{", "operator", "(anonymous"))]
    if not parts:
        return ""
    head, arguments = _template(parts[-1])
    if arguments and head in _WRAPPERS and unwraps:
        return _of_path(arguments[0], depth, unwraps=False)
    if not arguments or depth == 0:
        return head
    shown = [_of_path(each, depth - 1) for each in arguments if _head(each) not in _PLUMBING]
    return f"{head}<{', '.join(filter(None, shown))}>"


def _head(text: str) -> str:
    return _template(_split(text, "::")[-1])[0]


def _template(part: str) -> tuple[str, list[str]]:
    """Name and template arguments of a part of a path; its parameters are left out."""
    begin = next((place for place, char in enumerate(part) if char in "<("), len(part))
    if part[begin : begin + 1] != "<":
        return part[:begin].strip() or part.strip(), []
    end = _end_of(part, begin)
    return part[:begin].strip(), [each.strip() for each in _split(part[begin + 1 : end], ",")]


def _split(text: str, mark: str) -> list[str]:
    """Splits a text at a mark outside of brackets."""
    parts, depth, begin, place = [], 0, 0, 0
    while place < len(text):
        char = text[place]
        if char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth = max(depth - 1, 0)
        elif not depth and text.startswith(mark, place):
            parts.append(text[begin:place])
            begin = place = place + len(mark)
            continue
        place += 1
    return [*parts, text[begin:]]


def _end_of(text: str, begin: int) -> int:
    """Place of the bracket that closes the one at ``begin``; the text's end if none does."""
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] in _OPENING) - (text[place] in _CLOSING)
        if not depth:
            return place
    return len(text)
