"""How much of the package outside a source's own room knows that source by name: the number may only go down."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "tpuprof_tui"
#: Lines outside ``sources/sophgo`` with one of the words. Lower it when it falls; it never rises.
MOST = 0
#: Engines, memories, chips, files and tools of the Sophgo source.
WORDS = frozenset(
    ("tiu", "gdma", "sdma", "cdma", "vsdma", "bmodel", "uarch", "ddr", "l2m", "lmem", "cdm", "aks", "aksv", "bm1688",
     "cv84x6", "sophgo", "bigtpuprofile", "bigtpu", "perfai", "perfdoc", "perfweb", "tpudnn", "dyn_extra")
)  # fmt: skip
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_in(text: str) -> set[str]:
    """Words of identifiers and strings, in lower case: whole ones, and the parts of names."""
    whole = re.sub(r"[^a-z0-9_]+", " ", text.lower()).split()
    parts = {part for word in whole for part in word.split("_")}
    return {*whole, *parts, *(part.lower() for part in _PART.findall(text))}


def lines_that_know(source: str) -> dict[int, set[str]]:
    """The words by line; of strings that begin statements (docstrings) and comments none."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    found: dict[int, set[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NAME, tokenize.STRING) and token.start[0] not in docstrings:
            known = words_in(token.string) & WORDS
            if known:
                found.setdefault(token.start[0], set()).update(known)
    return found


def test_the_count_sees_names_and_strings_and_nothing_else():
    source = '"""TIU."""\n# GDMA\ntiu_mhz = CdmaPort = 1\nword = "a DDR, an L2M"\ntitular = "gdmas"\n'
    assert lines_that_know(source) == {3: {"tiu", "cdma"}, 4: {"ddr", "l2m"}}


def test_no_more_lines_outside_its_room_name_a_source():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {' '.join(sorted(known))}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if PACKAGE / "sources" / "sophgo" not in path.parents
        for line, known in sorted(lines_that_know(path.read_text(encoding="utf-8")).items())
    ]
    assert len(found) <= MOST, "\n".join(found)
    assert len(found) == MOST, f"fewer than before: set MOST to {len(found)}"


def test_every_profile_is_a_profile():
    """Views ask the columns of any profile, and know no private kind of it."""
    own = re.compile(r"class \w+\([^)]*\bProfile\b|isinstance\(profile,")
    assert not [path for path in PACKAGE.rglob("*.py") if own.search(path.read_text(encoding="utf-8"))]


#: Lines of Python of each room (sources one by one). Lower a number when its room shrank; what makes a room grow goes
#: where something else goes.
ROOMS = {
    "": 440, "analysis": 10_100, "app": 13_000, "cli": 3_840, "dataset": 3_000, "export": 1_700, "formats": 2_700,
    "model": 2_520, "options": 1_560, "sources": 1_430, "sources/ascend": 7_700, "sources/chrome": 3_140,
    "sources/nsys": 760, "sources/perfetto": 1_820, "sources/snapshot": 1_060, "sources/sophgo": 14_480,
    "sources/torch": 8_240, "views": 5_280,
}  # fmt: skip


def lines_by_room() -> dict[str, int]:
    found: dict[str, int] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts[:-1]
        room = "/".join(parts[:2] if parts[:1] == ("sources",) else parts[:1])
        found[room] = found.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return found


def test_no_room_grows_unseen():
    found = lines_by_room()
    assert found.keys() == ROOMS.keys()
    assert not {room: (lines, ROOMS[room]) for room, lines in found.items() if lines > ROOMS[room]}
    loose = {room: lines for room, lines in found.items() if lines < ROOMS[room] * 0.98 - 20}
    assert not loose, f"smaller than before: set them in ROOMS: {loose}"
