"""An object store on this machine (moto) that fails now and then: captures read from it, and data sets kept in it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset import captures as finding
from tpuprof_tui.dataset import query
from tpuprof_tui.errors import TpuprofError


class Failing:
    """A server's application that answers some requests for objects with an error of its own.

    Args:
        inner: The application (WSGI).
        share: How many of the requests fail.
        seed: Of the chance.
    """

    def __init__(self, inner: Any, share: float, seed: int) -> None:
        self.inner, self.share, self.dice = inner, share, random.Random(seed)
        self.failed = 0
        #: Whether writing, deleting and looking fail too.
        self.all_methods = False
        #: Objects whose names hold this cannot be had at all.
        self.broken = "\0"

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        path = environ.get("PATH_INFO", "")
        reading = environ.get("REQUEST_METHOD") == "GET" and path.count("/") > 1
        concerned = reading or (self.all_methods and path.count("/") > 1)
        if (reading and self.broken in path) or (concerned and self.dice.random() < self.share):
            self.failed += 1
            start("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        return self.inner(environ, start)


def built_from_a_store_that_fails(
    folder: Path, place: Path, content: Callable[[Any], dict[str, Any]], seed: int
) -> dict[str, Any]:
    """Builds from addresses of a bucket; compares with a build from the files themselves."""
    import logging
    import threading

    import s3fs
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing", AWS_DEFAULT_REGION="us-east-1")
    application = Failing(DomainDispatcherApplication(create_backend_app), 0.0, seed)
    server = make_server("127.0.0.1", 0, application, threaded=True)
    address = f"http://127.0.0.1:{server.server_port}"
    os.environ["AWS_ENDPOINT_URL"] = address
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # the client would hide most failures by trying again itself
    s3fs.S3FileSystem.retries = 1
    finding._PAUSES = (0.01, 0.01, 0.01)
    try:
        system = s3fs.S3FileSystem()
        system.mkdir("fleet")
        system.put(f"{folder}/", "fleet/captures/", recursive=True)
        application.share = 0.3
        out = place / "from_store"
        found = building.build(out, ["s3://fleet/captures"], building.local(1))
        tries = 1
        while set(found.unreadable).difference(found.known_unreadable) and tries < 10:
            found = building.build(out, ["s3://fleet/captures"], building.local(1))
            tries += 1
        failed = application.failed
        here = place / "from_files"
        building.build(here, [str(folder)], building.local(1))
        ours, theirs = content(out), content(here)
        # days are those of the objects, which were put today
        assert sorted(map(repr, _sums(ours))) == sorted(map(repr, _sums(theirs)))
        # what cannot be had any more keeps what was read of it
        name = next(folder.iterdir()).name
        application.share = 0.0
        for file in system.find(f"fleet/captures/{name}"):
            system.pipe_file(file, system.cat_file(file) + b"\0" * 4096)
        application.broken = name
        found = building.build(out, ["s3://fleet/captures"], building.local(1))
        broken = set(found.unreadable).difference(found.known_unreadable)
        assert [path.rpartition("/")[2] for path in broken] == [name], found
        assert content(out) == ours
        application.broken = "\0"
        kept = _data_set_in_the_store(application, folder, here, place, content)
        return {"captures": len(list(folder.iterdir())), "requests that failed": failed, "builds": tries, **kept}
    finally:
        server.shutdown()
        thread.join()


def _data_set_in_the_store(
    application: Failing, folder: Path, here: Path, place: Path, content: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """Builds a data set at an address, again after a change, and asks it, while requests of all kinds fail."""
    import shutil

    out, captures = "s3://fleet/set", place / "to_store"
    shutil.copytree(folder, captures)
    application.all_methods, application.failed = True, 0
    told: dict[str, Any] = {}
    for turn in ("built", "built again"):
        application.share, tries = 0.1, 1
        while tries < 50:
            try:
                building.build(out, [str(captures)], building.local(1), prune=True)
                break
            except TpuprofError:
                tries += 1
        told[turn] = f"in {tries} tries"
        theirs = place / f"beside_store_{turn}"
        building.build(theirs, [str(captures)], building.local(1))
        application.share = 0.0
        assert content(out) == content(theirs)
        application.share = 0.1
        for ours, beside in zip(_answers(out), _answers(theirs), strict=True):
            assert ours == beside, [pair for pair in zip(ours[1], beside[1], strict=False) if pair[0] != pair[1]][:2]
        # one goes, one changes
        first, second, *_ = sorted(captures.iterdir())
        shutil.rmtree(first)
        changed = second / "global.profile"
        changed.write_bytes(changed.read_bytes() + b"\n# more")
    application.share, application.all_methods = 0.0, False
    told["requests of the data set that failed"] = application.failed
    return told


def _answers(out: Any) -> list[Any]:
    with query.opened(out) as data:
        events = "select kernel, count(*), quantile_disc(duration, 0.9) from events group by all order by all"
        asked = (query.top, lambda data: query.trend(data, "overview.total_us"), query.outliers,
                 lambda data: query.run_sql(data, events))  # fmt: skip
        found = []
        for ask in asked:
            rows = ask(data)
            # sums of floats depend on the order in which files come
            cells = [[f"{value:.9g}" if isinstance(value, float) else value for value in row] for row in rows.rows]
            found.append((rows.columns, cells))
        return found


def _sums(found: dict[str, Any]) -> list[tuple[str, int]]:
    """Rows of each capture by table; times of change differ between a store and files."""
    return [(file.split("/")[0] + file.rpartition("/")[2], rows) for file, (rows, _) in found.items()]
