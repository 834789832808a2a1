"""The parts of a workbook file around its sheets, and the zip they lie in."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, BinaryIO, Final
from xml.sax.saxutils import quoteattr

from ..escape import sheet_xml
from .cells import SharedStrings
from .styles import Styles

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
#: Deflate level. Level 1 takes half the time and leaves what is a third larger.
LEVEL: Final = 6
#: Above this many bytes a part needs the large form of zip, which older spreadsheets may grumble about.
_LARGE: Final = 2_000_000_000


@dataclass(frozen=True)
class SheetEntry:
    """A sheet as the workbook lists it.

    Attributes:
        title: Its name, up to 31 characters.
        filter_range: Cells under the automatic filter, absolute (``$A$6:$D$9``); empty: none.
    """

    title: str
    filter_range: str = ""


class Package:
    """A workbook file being written, part by part."""

    def __init__(self, stream: BinaryIO) -> None:
        self.styles = Styles()
        self.strings = SharedStrings()
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
        self._sheets: list[SheetEntry] = []

    @contextmanager
    def sheet(self, entry: SheetEntry, size: int = 0) -> Iterator[IO[bytes]]:
        """A new sheet's part to write to; ``size``: about how many bytes it gets."""
        self._sheets.append(entry)
        name = f"xl/worksheets/sheet{len(self._sheets)}.xml"
        with self._zip.open(name, "w", force_zip64=size > _LARGE) as part:
            yield part

    def close(self, title: str) -> None:
        """Writes what the sheets refer to and ends the file."""
        self._part("xl/styles.xml", [self.styles.xml()])
        self._part("xl/sharedStrings.xml", self.strings.xml())
        self._part("xl/workbook.xml", [self._workbook()])
        self._part("xl/_rels/workbook.xml.rels", [self._relations()])
        self._part("docProps/core.xml", [_properties(title)])
        self._part("_rels/.rels", [_root_relations()])
        self._part("[Content_Types].xml", [self._content_types()])
        self._zip.close()

    def abandon(self) -> None:
        """Ends a file that will not be kept."""
        with suppress(OSError, ValueError):
            self._zip.close()

    def _part(self, name: str, pieces: Iterable[str]) -> None:
        with self._zip.open(name, "w") as part:
            for piece in pieces:
                part.write(piece.encode("utf-8"))

    def _workbook(self) -> str:
        sheets = "".join(
            f'<sheet name={quoteattr(entry.title)} sheetId="{number}" r:id="rId{number}"/>'
            for number, entry in enumerate(self._sheets, 1)
        )
        names = "".join(
            f'<definedName name="_xlnm._FilterDatabase" localSheetId="{place}" hidden="1">'
            f"'{entry.title}'!{entry.filter_range}</definedName>"
            for place, entry in enumerate(self._sheets)
            if entry.filter_range
        )
        named = f"<definedNames>{names}</definedNames>" if names else ""
        return (
            f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
            '<bookViews><workbookView tabRatio="850"/></bookViews>'
            f"<sheets>{sheets}</sheets>{named}</workbook>"
        )

    def _relations(self) -> str:
        count = len(self._sheets)
        targets = [(f"worksheets/sheet{number}.xml", "worksheet") for number in range(1, count + 1)]
        targets += [("styles.xml", "styles"), ("sharedStrings.xml", "sharedStrings")]
        relations = "".join(
            f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
            for number, (target, kind) in enumerate(targets, 1)
        )
        return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{relations}</Relationships>'

    def _content_types(self) -> str:
        parts = [(f"/xl/worksheets/sheet{number}.xml", f"{_TYPE}.worksheet+xml")
                 for number in range(1, len(self._sheets) + 1)]  # fmt: skip
        parts += [
            ("/xl/workbook.xml", f"{_TYPE}.sheet.main+xml"),
            ("/xl/styles.xml", f"{_TYPE}.styles+xml"),
            ("/xl/sharedStrings.xml", f"{_TYPE}.sharedStrings+xml"),
            ("/docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml"),
        ]
        listed = "".join(f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in parts)
        return (
            f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{listed}</Types>'
        )


def _properties(title: str) -> str:
    return (
        f'{_HEAD}<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{sheet_xml(title)}</dc:title>'
        "<dc:creator>tpuprof</dc:creator></cp:coreProperties>"
    )


def _root_relations() -> str:
    return (
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        f'<Relationship Id="rId2" Type="{_PACKAGE}/relationships/metadata/core-properties" '
        'Target="docProps/core.xml"/></Relationships>'
    )
