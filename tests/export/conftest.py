"""What tests of exports share: the writer of sample captures on the path, and a sample's page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from web_browser import Page, open_page
from web_driver import opened

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.export.web.page import write_web
from tpuprof_tui.model import Profile

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
# the writer is a program, not a package


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[Page]:
    """A tab; tests that change its size or scheme change it back."""
    with open_page(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(scope="session")
def profile() -> Profile:
    """The profile of the page."""
    return open_profile(SAMPLES / "aks_decode_mode2")


@pytest.fixture(scope="session")
def written(tmp_path_factory, profile) -> Path:
    """The page of a sample."""
    path = tmp_path_factory.mktemp("page") / "result.html"
    write_web(query_of(profile), path)
    return path


@pytest.fixture
def page(browser, written) -> Page:
    """The sample's page, opened anew at its timeline."""
    return opened(browser, written, "#timeline")
