"""The node stream against a slow, obvious decoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import raw_bytes as raw
from hypothesis import given
from hypothesis import strategies as st

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.sophgo.read.commands.command_table import Commands, Mode, NodeRules, NodeStream
from tpuprof_tui.sources.sophgo.read.commands.nodes import decode_nodes
from tpuprof_tui.sources.sophgo.read.problems import Problems

_AKS = {0: "TIU", 1: "GDMA", 2: "HAU", 3: "SDMA", 4: "CDMA", 5: "VSDMA"}
_AKSV = {0: "TIU", 1: "GDMA", 2: "SDMA", 3: "CDMA", 4: "VSDMA"}
_FILL = {"TIU": (15, 3), "GDMA": (6, 3)}
_AKS_RULES = NodeRules(_AKS, None, {}, 11, 10_000)
#: The real limit is 0x3FFFF; a small one meets it often.
_AKSV_RULES = NodeRules(_AKSV, 4, _FILL, 10, 10_000)


def _decode(words: list[int], rules: NodeRules = _AKS_RULES) -> tuple[NodeStream, Problems]:
    report = Problems("f", 0)
    return decode_nodes(np.array(words, "<u4"), rules, report, 100), report


# -- the slow decoder ------------------------------------------------------

_KNOWN = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 100, 127}


@dataclass
class _Slow:
    """Word by word, as the format's description reads."""

    rules: NodeRules
    lists: dict[Any, list[tuple[int, ...]]] = field(default_factory=dict)
    counters: dict[Any, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    sets: int = 0
    scope: int = -1
    batch: int = -1

    def run(self, words: list[int]) -> _Slow:
        place = 0
        while place < len(words):
            place += self._node(words, place)
        return self

    def _node(self, words: list[int], place: int) -> int:
        word = words[place]
        kind = word & 127
        if word == 0:
            return 1  # padding
        if kind == 0:
            length = word >> 7
            size = (length + 3) // 4
            text = b"".join(value.to_bytes(4, "little") for value in words[place + 1 : place + 1 + size])
            self.names.append(text[:length].decode("utf-8", "replace").rstrip("\0"))
            self.scope = len(self.names) - 1
            return 1 + size
        if 8 <= kind <= 11:
            self._des(kind, words[place + 1], place)
            return 2
        engine = {"VSDMA": "SDMA"}.get(name := self.rules.engine_codes.get(word >> 7 & 7, ""), name)
        key = ("CDMA", word >> 28) if engine == "CDMA" else engine
        if kind in (1, 13):
            self._command(kind, word, key, place)
        elif kind == 12:
            self.counters[key] = 0
        elif kind == 14:
            self.batch = word >> 7
        elif kind == 15:
            self.scope = -1
        return 1

    def _command(self, kind: int, word: int, key: Any, place: int) -> None:
        extra = -1
        if kind == 1:
            extra = self.sets
            self.sets += 1
        mode = Mode.TDI if kind == 1 else Mode.RVT
        self._append(key, word, self.scope, self.batch, mode, place, extra, -1)
        limit = self.rules.rvt_id_limit
        if kind == 13 and key in ("TIU", "GDMA") and limit is not None and self.counters.get("TIU") == limit:
            for code, engine in enumerate(("TIU", "GDMA")):
                type_, function = self.rules.rvt_fill[engine]
                self._append(engine, code << 7 | type_ << 10 | function << 15, -1, -1, Mode.NONE, place, -1, -1)
            self.counters["TIU"] = self.counters["GDMA"] = 0

    def _des(self, kind: int, second: int, place: int) -> None:
        engine = ("TIU", "GDMA", "SDMA", "CDMA")[kind - 8]
        key: Any = ("CDMA", second >> 28) if engine == "CDMA" else engine
        self.counters.clear()
        for number in range(second & 0xFFFFFFF if engine == "CDMA" else second):
            self.counters[key] = number
            self._append(key, 0, self.scope, self.batch, Mode.DES, place, -1, 0)
        self.counters.clear()

    def _append(self, key: Any, word: int, *rest: int) -> None:
        number = self.counters.get(key, 0)
        self.counters[key] = number + 1
        self.lists.setdefault(key, []).append((word, number, *rest))


def _rows(commands: Commands) -> list[tuple[int, ...]]:
    des = np.where(commands.des >= 0, 0, -1)
    columns = (commands.word, commands.id, commands.scope, commands.batch, commands.mode, commands.node_index,
               commands.extra, des)  # fmt: skip
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _assert_same(stream: NodeStream, slow: _Slow) -> None:
    for engine in ("TIU", "GDMA", "SDMA"):
        assert _rows(stream.engines[engine]) == slow.lists.get(engine, []), engine
    ports = {key[1]: rows for key, rows in slow.lists.items() if isinstance(key, tuple) and key[1] < slow.rules.ports}
    assert {port: _rows(found) for port, found in stream.ports.items() if len(found)} == ports
    assert stream.scope_names == slow.names
    assert stream.nodes_set == slow.sets


# -- streams ---------------------------------------------------------------

_CODES = st.tuples(st.integers(0, 5), st.integers(0, 31), st.integers(0, 31), st.integers(0, 4095))
_ONE = st.one_of(
    _CODES.map(lambda codes: [raw.node(*codes)]),
    _CODES.map(lambda codes: [raw.node(*codes)]),
    _CODES.map(lambda codes: [raw.node(*codes, kind=13)]),
    st.sampled_from([2, 3, 4, 5, 6, 7, 100, 127]).map(lambda kind: [kind | 3 << 7]),
    st.tuples(st.integers(0, 5), st.integers(0, 15)).map(lambda pair: [raw.id_reset(*pair)]),
    st.integers(0, 1 << 24).map(lambda number: [raw.batch(number)]),
    st.just([raw.FUNC_END]),
    st.text(max_size=12).filter(lambda text: text and not text.endswith("\0")).map(raw.func),
    st.binary(min_size=1, max_size=9).map(raw.func),
    st.just([0]),
    st.tuples(st.integers(8, 10), st.integers(0, 1 << 24), st.integers(0, 5)).map(lambda three: raw.des(*three)),
    st.tuples(st.integers(0, 99), st.integers(0, 4), st.integers(0, 9)).map(lambda item: raw.des(11, *item)),
)
_STREAMS = st.lists(_ONE, max_size=40).map(lambda nodes: [word for part in nodes for word in part])


@raw.FIXED
@given(_STREAMS)
def test_streams_decode_as_the_obvious_decoder_says(words: list[int]) -> None:
    stream, _ = _decode(words)
    _assert_same(stream, _Slow(_AKS_RULES).run(words))


@raw.FIXED
@given(_STREAMS)
def test_firmware_of_aksv_inserts_a_pair_where_ids_run_out(words: list[int]) -> None:
    words = [word for word in words if not (word & 127 in (1, 12, 13) and word >> 7 & 7 == 5)]
    stream, _ = _decode(words, _AKSV_RULES)
    _assert_same(stream, _Slow(_AKSV_RULES).run(words))


@raw.FIXED
@given(st.lists(st.sampled_from([(0, 1), (0, 13), (1, 13), (1, 1), (2, 13), (0, 12), (1, 12)]), max_size=60))
def test_the_limit_is_met_at_any_place(steps: list[tuple[int, int]]) -> None:
    """Dense in what decides: RVT and other nodes of TIU and GDMA, and resets."""
    words = [engine << 7 | kind | (0 if kind == 12 else 3 << 10) for engine, kind in steps]
    stream, _ = _decode(words, _AKSV_RULES)
    _assert_same(stream, _Slow(_AKSV_RULES).run(words))


@raw.FIXED
@given(_STREAMS, st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4))
def test_words_of_unknown_type_are_skipped_and_named(words: list[int], odd: list[int]) -> None:
    """Nodes of unknown kind anywhere between nodes change nothing else."""
    odd = [word for word in odd if word & 127 not in _KNOWN]
    sound, _ = _decode(words)
    stream, report = _decode([*odd, *words])
    for engine, commands in sound.engines.items():
        moved = [(*row[:5], row[5] + len(odd), *row[6:]) for row in _rows(commands)]
        assert _rows(stream.engines[engine]) == moved
    named = {problem.what for problem in report.problems() if "unknown type" in problem.what}
    assert named == {f"Node of unknown type {word & 127}." for word in odd}
    assert all(problem.severity is Severity.ERROR for problem in report.problems() if problem.what in named)


@raw.FIXED
@given(st.lists(st.integers(0, 2**32 - 1), max_size=60))
def test_noise_decodes_to_no_more_commands_than_allowed(words: list[int]) -> None:
    rules = NodeRules(_AKS, None, {}, 11, 50)
    stream, _ = _decode(words, rules)
    lists = [*stream.engines.values(), *stream.ports.values()]
    assert all(len(commands) <= len(words) + 50 for commands in lists)
    for commands in lists:
        assert (np.diff(commands.node_index) >= 0).all()
        assert (commands.scope < len(stream.scope_names)).all()


# -- single rules ----------------------------------------------------------


def test_the_format_s_own_example_decodes() -> None:
    """The node stream of the worked example (capture 11)."""
    text = """013c0400 81980100 01bc0400 81180200 81990100 81190200 0c000000 8c000000 8c010000 8e010000 00040000
              67656c75 5f667764 81001008 010c1100 01081200 013c0400 01bc0400 81005002 0f000000"""
    words = np.frombuffer(bytes.fromhex(text.replace("\n", "").replace(" ", "")), "<u4").tolist()
    stream, report = _decode(words)
    assert report.problems() == ()
    assert stream.scope_names == ["gelu_fwd"]
    tiu, gdma = stream.engines["TIU"], stream.engines["GDMA"]
    assert tiu.id.tolist() == [0, 1, 0, 1, 2, 3]
    assert gdma.id.tolist() == [0, 1, 0, 1]
    assert tiu.type_code.tolist() == [15, 15, 3, 2, 15, 15]
    assert tiu.function_code.tolist() == [8, 9, 2, 4, 8, 9]
    assert tiu.scope.tolist() == [-1, -1, 0, 0, 0, 0]
    assert tiu.batch.tolist() == [-1, -1, 3, 3, 3, 3]


def test_a_zero_word_is_padding_and_closes_no_kernel() -> None:
    stream, report = _decode([*raw.func("k"), raw.node(0, 3, 2), 0, 0, raw.node(0, 3, 2)])
    assert stream.engines["TIU"].scope.tolist() == [0, 0]
    assert [(problem.severity, problem.count) for problem in report.problems()] == [(Severity.NOTE, 2)]


def test_zeros_within_names_and_counts_are_no_padding() -> None:
    _, report = _decode([*raw.func(b"ab\0\0\0\0\0\0cd"), *raw.des(8, 0, 0), raw.FUNC_END])
    assert report.problems() == ()


def test_des_nodes_restart_all_counters_also_without_their_blocks() -> None:
    words = [raw.node(e, 3, 2) for e in (raw.TIU, raw.GDMA, raw.SDMA, raw.CDMA)] * 2
    stream, _ = _decode([*words, *raw.des(9, 7, 3), *words])
    assert stream.engines["TIU"].id.tolist() == [0, 1, 0, 1]
    assert stream.engines["SDMA"].id.tolist() == [0, 1, 0, 1]
    assert stream.engines["GDMA"].id.tolist() == [0, 1, 0, 1, 2, 0, 1]
    assert stream.ports[0].id.tolist() == [0, 1, 0, 1]
    assert [(node.engine, node.key, node.count, node.first) for node in stream.des_nodes] == [("GDMA", 7, 3, 2)]


@pytest.mark.parametrize("kind", [8, 9, 10, 11])
def test_a_des_node_without_its_second_word_is_a_problem(kind: int) -> None:
    stream, report = _decode([raw.node(0, 3, 2), kind])
    assert len(stream.engines["TIU"]) == 1
    assert [(problem.severity, problem.offset) for problem in report.problems()] == [(Severity.ERROR, 104)]


@pytest.mark.parametrize("kind", [8, 10, 11])
def test_a_des_node_that_claims_billions_is_cut(kind: int) -> None:
    claim = 0xFFFFFFF if kind == 11 else 0xFFFFFFFF
    stream, report = _decode([raw.node(0, 3, 2), *raw.des(kind, 1, claim)], NodeRules(_AKS, None, {}, 11, 50))
    assert max(len(commands) for commands in (*stream.engines.values(), *stream.ports.values())) <= 51
    assert [problem.severity for problem in report.problems()] == [Severity.ERROR]
    assert str(claim) in report.problems()[0].what


def test_a_name_that_runs_past_the_end_keeps_the_text_that_is_there() -> None:
    stream, report = _decode([5000 << 7, *raw.func("overlong")[1:], raw.node(0, 3, 2)])
    assert stream.scope_names == ["overlong"]
    assert stream.engines["TIU"].scope.tolist() == [0]
    assert [(problem.severity, problem.offset) for problem in report.problems()] == [(Severity.ERROR, 100)]


def test_commands_for_ports_the_chip_lacks_are_named_not_shown() -> None:
    stream, report = _decode([raw.node(raw.CDMA, 0, 0, port << 8) for port in (3, 12, 12, 15)])
    assert list(stream.ports) == [3]
    assert sorted((problem.what, problem.count) for problem in report.problems()) == [
        ("Commands for CDMA port 12, which the chip does not have.", 2),
        ("Commands for CDMA port 15, which the chip does not have.", 1),
    ]


def test_a_command_of_no_engine_still_owns_its_detail_record() -> None:
    stream, report = _decode([raw.node(0, 3, 2), raw.node(2, 0, 0), raw.node(7, 0, 0), raw.node(0, 3, 2)])
    assert stream.engines["TIU"].extra.tolist() == [0, 3]
    assert [problem.offset for problem in report.problems()] == [108]


def test_rvt_nodes_own_no_detail_record() -> None:
    stream, _ = _decode([raw.node(0, 3, 2), raw.node(0, 3, 2, kind=13), raw.node(1, 0, 0)])
    assert stream.engines["TIU"].extra.tolist() == [0, -1]
    assert stream.engines["GDMA"].extra.tolist() == [1]
