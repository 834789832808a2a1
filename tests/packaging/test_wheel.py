"""What is built and installed: wheel and sdist are whole, install where nothing is, and leave nothing behind.

Building and installing ask the package index; where it cannot be reached these tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tpuprof_tui import __version__

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "aksv_cdma"
#: What is installed is not compiled: pandas alone would take half a minute.
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
sys.path.insert(0, str(ROOT / "packaging"))

import bundle  # noqa: E402
import pythons  # noqa: E402


def ran(*words, check=True, **settings):
    """A process without our tree on its path."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PIP_NO_COMPILE"] = "1"
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False,
        env=environment | settings.pop("env", {}), **settings,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stderr + done.stdout
    return done


def package_files():
    """Files of the package that must be inside, relative to the root: code, data and the web page."""
    tracked = ran("git", "ls-files", "tpuprof_tui", cwd=ROOT, check=False)
    found = tracked.stdout.split() if tracked.returncode == 0 else []
    return set(found) or {
        str(path.relative_to(ROOT)) for path in (ROOT / "tpuprof_tui").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip


@pytest.fixture(scope="session")
def online(tmp_path_factory):
    """Whether the package index answers; skips where it does not."""
    folder = tmp_path_factory.mktemp("online")
    asked = ran(*PIP, "download", "--no-deps", "--retries", "0", "--timeout", "20", "--dest", folder,
                "setuptools>=77", check=False)  # fmt: skip
    if asked.returncode:
        pytest.skip("the package index cannot be reached")


@pytest.fixture(scope="session")
def wheel(online, tmp_path_factory):
    return bundle.own_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environment(online, tmp_path_factory):
    """A function that makes an environment with nothing in it; gives its Python and the words that call pip for it."""

    def made(name):
        python = tmp_path_factory.mktemp(name) / "venv" / "bin" / "python"
        ran(sys.executable, "-m", "venv", "--without-pip", python.parents[1])
        return python, (*PIP, "--python", python)

    return made


# -- wheel and sdist ----------------------------------------------------------


def test_the_wheel_holds_the_whole_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {name for name in package_files() if not name.endswith(".md")}
    assert wanted <= names, wanted - names
    assert {name for name in names if name.startswith("tpuprof_tui/")} <= package_files()
    assert any(name.startswith("tpuprof_tui/export/web/page_parts/") and name.endswith(".js") for name in names)
    assert any(name.endswith(".data/data/share/man/man1/tpuprof.1") for name in names)
    assert sum(name.startswith("tpuprof_tui/sources/sophgo/chips/") and name.endswith(".json") for name in names) >= 8


def test_the_wheel_is_for_any_machine(wheel):
    assert wheel.name == f"tpuprof_tui-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"tpuprof_tui-{__version__}.dist-info/METADATA").decode()
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra" not in line]
    names = {re.split(r"[<>=: ]+", line)[1] for line in needed}
    assert names == {"numpy", "textual", "rich", "msgspec", "perfetto", "plotext", "pandas", "openpyxl"}
    assert all("<" in line and ">=" in line for line in needed), "both ends of each range are tested"


@pytest.mark.packages
def test_the_sdist_builds_the_same_wheel(wheel, environment, tmp_path):
    python, pip = environment("builder")
    ran(*pip, "install", "setuptools>=77")
    unwanted = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests")
    source = shutil.copytree(ROOT, tmp_path / "source", ignore=unwanted)
    code = f"from setuptools import build_meta; print(build_meta.build_sdist({str(tmp_path)!r}))"
    ran(python, "-c", code, cwd=source)
    sdist = next(tmp_path.glob("tpuprof_tui-*.tar.gz"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"docs/tpuprof.1", "README.md", "LICENSE", "NOTICE", "pyproject.toml"} <= names
    ran(*PIP, "wheel", "--no-deps", "--wheel-dir", tmp_path / "again", sdist)
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(next((tmp_path / "again").glob("*.whl"))) as second:
        inside = [{entry.filename: entry.CRC for entry in archive.infolist()} for archive in (first, second)]
    assert inside[0].keys() == inside[1].keys()
    assert all(inside[0][name] == inside[1][name] for name in inside[0] if not name.endswith(("RECORD", "WHEEL")))


# -- installed ----------------------------------------------------------------


@pytest.mark.packages
def test_it_installs_where_nothing_is_and_leaves_nothing(wheel, environment, tmp_path):
    python, pip = environment("clean")
    before = everything_below(python.parents[1])
    ran(*pip, "install", "--only-binary", ":all:", wheel)
    tool = python.parent / "tpuprof"
    assert ran(tool, "--version").stdout == f"tpuprof {__version__}\n"
    assert ran(tool, "summary", SAMPLE).stdout.startswith("aksv_cdma: AKSV")
    ran(tool, "export", SAMPLE, tmp_path / "out", "--perfetto")
    assert (tmp_path / "out" / "PerfWeb" / "result.html").stat().st_size > 100_000
    assert (tmp_path / "out" / "perfetto.pftrace").stat().st_size > 100_000
    assert (python.parents[1] / "share" / "man" / "man1" / "tpuprof.1").exists()
    ran(*pip, "check")
    ran(*pip, "uninstall", "--yes", "tpuprof-tui")
    assert not {path for path in everything_below(python.parents[1]) - before if "tpuprof" in path}


@pytest.mark.packages
@pytest.mark.parametrize("version", ["3.10", "3.13"])
def test_on_aarch64_it_needs_no_compiler(wheel, version, tmp_path):
    """All that it needs has wheels there: what would be installed is asked for, and nothing else."""
    words = ("--dry-run", "--ignore-installed", "--target", tmp_path, "--report", "-")
    told = json.loads(ran(*PIP, "install", *words, *bundle.binaries(version, "aarch64"), wheel).stdout)
    files = [each["download_info"]["url"].rpartition("/")[2] for each in told["install"]]
    machine = {name.partition("-")[0] for name in files if "aarch64" in name}
    assert machine >= {"numpy", "pandas"}
    assert {name.partition("-")[0] for name in files if not name.endswith("-none-any.whl")} == machine


def everything_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.packages
def test_a_server_with_numpy_alone_reads_and_exports(wheel, environment, tmp_path):
    python, pip = environment("server")
    ran(*pip, "install", "--only-binary", ":all:", "numpy")
    ran(*pip, "install", "--no-deps", wheel)
    tool = python.parent / "tpuprof"
    for words in (["info", "--json"], ["summary"], ["instructions"]):
        assert ran(tool, *words, SAMPLE).stdout
    ran(tool, "export", SAMPLE, tmp_path / "out")
    assert (tmp_path / "out" / "PerfDoc" / "PerfAI_output.xlsx").exists()
    refused = ran(tool, "export", SAMPLE, tmp_path / "out", "--only", "pftrace", check=False)
    assert refused.returncode == 2
    assert "The Perfetto trace needs the package perfetto" in refused.stderr


# -- the bundle ---------------------------------------------------------------


@pytest.fixture(scope="session")
def unpacked(online, tmp_path_factory):
    """The folder of a bundle for this Python and machine, as a server gets it."""
    folder = tmp_path_factory.mktemp("bundle")
    assert bundle.main(["--output", str(folder)]) == 0
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "server")  # our own archive
    return next((folder / "server").iterdir())


def offline(home, **more):
    """An environment in which pip finds no index, and nothing of ours is on the path."""
    return {"HOME": str(home), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PYTHON": sys.executable, **more}


@pytest.mark.packages
def test_the_bundle_installs_without_network(unpacked, tmp_path):
    done = ran("sh", unpacked / "install.sh", env=offline(tmp_path))
    tool = tmp_path / ".local" / "bin" / "tpuprof"
    assert f"Installed tpuprof {__version__}" in done.stdout
    assert ran(tool, "summary", SAMPLE).stdout.startswith("aksv_cdma: AKSV")
    ran(tool, "export", SAMPLE, tmp_path / "out", "--only", "pftrace")
    assert (tmp_path / ".local" / "share" / "man" / "man1" / "tpuprof.1").exists()
    ran("sh", unpacked / "install.sh", "--remove", env=offline(tmp_path))
    assert not [path for path in (tmp_path / ".local").rglob("*") if not path.is_dir()]


@pytest.mark.packages
def test_the_bundle_touches_nothing_that_is_not_its_own(unpacked, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for words in ([tmp_path / "mine"], ["--remove", tmp_path / "mine"]):
        refused = ran("sh", unpacked / "install.sh", *words, env=offline(tmp_path), check=False)
        assert refused.returncode == 1
        assert "was not made by this script" in refused.stderr
    assert (tmp_path / "mine" / "file").exists()


@pytest.mark.packages
def test_a_damaged_bundle_is_not_installed(unpacked, tmp_path):
    copy = shutil.copytree(unpacked, tmp_path / "copy")
    with next((copy / "wheels").glob("rich-*.whl")).open("r+b") as file:
        file.write(b"damage")
    refused = ran("sh", copy / "install.sh", env=offline(tmp_path), check=False)
    assert refused.returncode == 1
    assert "the archive is damaged" in refused.stderr
    assert not (tmp_path / ".local").exists()


@pytest.mark.packages
def test_a_bundle_for_another_python_says_so(unpacked, tmp_path):
    script = (unpacked / "install.sh").read_text()
    (tmp_path / "install.sh").write_text(re.sub(r'^pythons=".*"$', 'pythons="2.7"', script, flags=re.M))
    refused = ran("sh", tmp_path / "install.sh", env=offline(tmp_path), check=False)
    assert refused.returncode == 1
    assert "these wheels are for Python 2.7, and none is here" in refused.stderr


# -- ranges -------------------------------------------------------------------


def test_the_oldest_packages_are_those_the_project_names():
    found = dict(pin.split("==") for pin in pythons.lowest())
    assert set(found) == {"numpy", "textual", "rich", "msgspec", "perfetto", "plotext", "pandas", "openpyxl",
                          "pyarrow", "duckdb", "fsspec"}  # fmt: skip
    assert (found["numpy"], found["pyarrow"]) == ("1.24", "14")
