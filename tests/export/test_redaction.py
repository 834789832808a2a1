"""What is shared names no host, user, path or capture: looked for in every file and answer, in zips too."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from tpuprof_tui.cli.main import main
from tpuprof_tui.views.redacting import Redactor

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SECRETS = ("acme_run_7", "dgx-a17", "alice.w", "topsecret", "10.1.2.33", "corp-share", "bobby.q", "quartz9", "carl.z")


def torch_run(folder: Path) -> Path:
    """Traces with a host in their names, and users, paths and addresses in names, arguments and metadata."""
    run = folder / "acme_run_7"
    run.mkdir()
    for rank, path in enumerate(sorted((SAMPLES / "torch_cuda_synthetic").iterdir())):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        trace |= {"traceName": "/home/alice.w/topsecret/log.json", "host_name": "quartz9", "username": "carl.z"}
        said = iter((
            "/home/alice.w/topsecret/model.py(4): forward", "C:\\Users\\bobby.q\\topsecret\\x.py(1): f",
            "topsecret/lib/net.cpp(7): run", "step on dgx-a17 of bobby.q", "connect 10.1.2.33",
            "carl.z on Quartz9", "/mnt/corp-share/x y",
            "~alice.w/topsecret/z",
        ))  # fmt: skip
        for event in trace["traceEvents"]:
            if event.get("cat") == "python_function":
                event["name"] = next(said, event["name"])
            if event.get("cat") == "cpu_op":
                event.setdefault("args", {})["Call stack"] = "/home/alice.w/topsecret/model.py(4): forward"
            if event.get("name") == "process_name":
                event["args"]["name"] = "python alice.w@dgx-a17"
            if event.get("name") == "aten::add":
                event["name"] = "/model/layers.0/self_attn/Add"
        (run / f"dgx-a17_{400 + rank}.170000000000{rank}.pt.trace.json").write_text(json.dumps(trace))
    (run / "dgx-a17_9.1700000000009.pt.trace.json").write_text('{"traceEvents": [')
    return run


def texts_of(path: Path) -> str:
    """All bytes of a file as text; of a package those of each of its files."""
    if not zipfile.is_zipfile(path):
        return path.read_bytes().decode("latin-1")
    with zipfile.ZipFile(path) as package:
        return "".join(f"{each.filename}\n{package.read(each).decode('latin-1')}" for each in package.infolist())


@pytest.mark.parametrize("source", ["torch", "ascend", "sophgo"])
def test_no_file_and_no_answer_names_where_and_by_whom(tmp_path, capsys, source):
    if source == "torch":
        run = torch_run(tmp_path)
    else:
        run = tmp_path / "acme_run_7"
        sample = "ascend_synthetic" if source == "ascend" else "aks_damaged"
        shutil.copytree(SAMPLES / sample, run)
        if source == "ascend":
            (run / "rank0_ascend_pt").rename(run / "dgx-a17_123_20240101_ascend_pt")
    outputs, commands = {
        "torch": ("xlsx,web,pftrace,collapsed", (["report", "--json"], ["instructions"])),
        "ascend": ("pftrace,collapsed", (["report", "--json"],)),
        "sophgo": ("xlsx,web,pftrace,collapsed,summary,regs", (["report"],)),
    }[source]
    assert main(["export", str(run), str(tmp_path / "out"), "--redact", "--only", outputs]) in (0, 1)
    capsys.readouterr()
    told = {path.name: texts_of(path) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert len(told) > outputs.count(",") + 1, "and the list of them"
    for command, *options in commands:
        assert main([command, str(run), *options, "--redact"]) in (0, 1)
        told[command] = capsys.readouterr().out
    for name, text in told.items():
        assert len(text) > 40
        assert [secret for secret in SECRETS if secret in text.casefold()] == [], name
    everything = "".join(told.values())
    assert "capture1" in everything
    kept = {"torch": ("/model/layers.0/self_attn/Add", "nn.Module: Linear_11", "(4): forward", "Synthetic A100"),
            "ascend": ("aclnnAddmm_MatMulV2",), "sophgo": ("a16_matmul_multi_core", "cdmlib0_")}  # fmt: skip
    assert [name for name in kept[source] if name not in everything] == []


def test_placeholders_are_stable_and_names_of_layers_stay():
    redactor = Redactor({"node-7": "host", "mm": "capture"}, ["/home/carol/x"], ["mm"])
    first = redactor.text("/home/carol/a/b.py and /data/set1/c.bin on node-7")
    assert first == "path1 and path2 on host1"
    assert redactor.text("NODE-7: /data/set1/c.bin (carol)") == "host1: path2 (user1)"
    for name in (
        "mm",
        "/model/layers.0/MatMul",
        "Default/net/MatMul-op1",
        "aten::add",
        "a/b",
        "std::pair<a, b>",
        "1.2.3",
    ):
        assert redactor.name(name) == name
    assert redactor.name("lib/x/y.cu:12") == "path3:12"
    assert redactor.text("--data s3://team-bucket/set?key=abc then (https://h:8080/a)") == "--data path4 then (path5)"
