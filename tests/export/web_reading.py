"""Reads a written web page back, by rules of its own: what the page's scripts are to find in it."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.web.page import write_web


class _Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.title = ""
        self._open = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open = tag
        self.links += [value or "" for name, value in attributes if name in ("src", "href", "action", "data")]
        if tag == "script":
            self.found.append((dict(attributes), ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.found[-1] = (self.found[-1][0], self.found[-1][1] + data)
        if self._open == "title":
            self.title += data


class WrittenPage:
    """A page as a browser takes it apart.

    Attributes:
        record: The JSON.
        chunks: Columns by chunk number, then key.
        text: The whole file.
        tags: All elements, in order.
        links: Values of all attributes that name something to load.
        code: The scripts that run.
    """

    def __init__(self, path: Path) -> None:
        self.text = path.read_text("utf-8")
        scripts = _Scripts()
        scripts.feed(self.text)
        scripts.close()
        self.tags = scripts.tags
        self.links = scripts.links
        self.title = scripts.title
        self.chunks: dict[int, dict[str, Any]] = {}
        self.code = ""
        self.record: dict[str, Any] = {}
        for attributes, text in scripts.found:
            kind, name = attributes.get("type"), attributes.get("id") or ""
            if kind == "application/json":
                self.record = json.loads(text)
            elif kind == "text/plain":
                self.chunks[int(name.removeprefix("chunk"))] = chunk(attributes["data-columns"] or "", text)
            else:
                self.code += text

    def lane(self, title: str) -> dict[str, Any]:
        """A lane's record, with its ``columns`` and its ``overview`` read."""
        record = dict(next(lane for lane in self.record["lanes"] if lane["title"] == title))
        drawn, told = (self.chunks[number] for number in record["chunks"])
        record["columns"] = {**drawn, **told}
        record["overview"] = self.chunks[record["cells"]]
        return record

    def texts(self, key: str, kinds: Any) -> list[str]:
        """Texts of a key by kind."""
        strings, codes = self.record["strings"][key], self.record["kinds"][key]
        return [strings[codes[kind]] if codes[kind] >= 0 else "" for kind in kinds]


def chunk(description: str, text: str) -> dict[str, Any]:
    """The columns of a chunk: int64, -1 for missing."""
    count, columns = json.loads(description)
    data = np.frombuffer(zlib.decompress(base64.b64decode(text), -15), np.uint8)
    found, at = {}, 0
    for key, planes, ascending, narrow in columns:
        values = np.zeros(count, np.int64)
        for plane in range(planes):
            values |= data[at : at + count].astype(np.int64) << (8 * plane)
            at += count
        values = np.cumsum((values >> 1) ^ -(values & 1)) if ascending else values - 1
        assert not narrow or (abs(values) < 1 << 31).all()
        found[key] = values
    assert at == len(data)
    return found


def page_of(query: Query, tmp_path: Path, **options) -> WrittenPage:
    path = tmp_path / "result.html"
    size = write_web(query, path, **options)
    assert size == path.stat().st_size
    return WrittenPage(path)
