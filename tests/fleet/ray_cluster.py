"""A Ray cluster of two nodes on this machine, of which one is killed while a data set is built."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tpuprof_tui.dataset import build as building


def built_while_a_node_dies(
    folder: Path, place: Path, content: Callable[[Path], dict[str, Any]], most: int = 60
) -> dict[str, Any]:
    """Builds on two nodes, of which one is killed when some captures are done; compares with a build without."""
    import ray
    from ray.cluster_utils import Cluster

    words = sorted(str(path) for path in folder.glob("*/*"))[:most]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    done = threading.Event()
    counted: list[int] = []
    killed_at: list[int] = []
    out = place / "by_ray"

    def kill() -> None:
        done.wait(300)
        cluster.remove_node(other, allow_graceful=False)
        killed_at.append(counted[-1])

    def told(count: int, _: int) -> None:
        counted.append(count)
        if count == 10:
            done.set()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    began = time.perf_counter()
    try:
        building.build(out, words, building.ray(cluster.address), progress=told)
        took = time.perf_counter() - began
        assert done.is_set()
        killer.join(60)
        assert killed_at[0] < len(words), "the node died when all was done"
        nodes = _nodes(ray, cluster.address)
    finally:
        cluster.shutdown()
    here = place / "without_ray"
    building.build(here, words, building.local(1))
    assert content(out) == content(here)
    return {"captures": len(words), "seconds": round(took), "done when a node died": killed_at[0], "nodes left": nodes}


def _nodes(ray: Any, address: str) -> int:
    ray.init(address=address, log_to_driver=False)
    try:
        for _ in range(60):
            alive = sum(node["Alive"] for node in ray.nodes())
            if alive == 1:
                break
            time.sleep(1)
        return alive
    finally:
        ray.shutdown()
