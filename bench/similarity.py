"""Budget: similarity of 17 languages x 13 states x 1,000 sentences, all pairs: 20 s, two cores.

Run as `python -m bench.similarity [threads]`; prints JSON. The states are made up (768 wide, with a
shared part and an offset), as the time does not depend on the values.
"""

import json
import os
import platform
import resource
import sys
import time
from importlib.metadata import version

import numpy as np

from trainables.registry import SIMILARITIES
from trainables.similarity.base import compare

LAYERS, SENTENCES = 13, 1000


def made_up(languages: int, width: int) -> dict[str, np.ndarray]:
    """States of translations: a shared part with falling spectrum, noise, an offset."""
    rng = np.random.default_rng(0)
    size = (LAYERS, SENTENCES, width)
    shared = rng.standard_normal(size, np.float32) * np.geomspace(1, 0.05, width, dtype=np.float32)
    return {
        f"l{i:02}": shared + 0.5 * rng.standard_normal(size, np.float32) + 1
        for i in range(languages)
    }


def bench(threads: int) -> dict[str, object]:
    """Time each measure on one pivot of 9 languages, and the default measure on all pairs of 17.

    Returns:
        Wall and CPU seconds with and without a null (20 draws), the machine, its load (others on
        the same cores stretch wall time) and the versions.
    """

    def seconds(
        states: dict[str, np.ndarray], pivots: list[str], name: str, draws: int
    ) -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        compare(states, pivots, name, draws, 0, threads=threads)
        return {
            "wall_s": round(time.perf_counter() - wall, 2),
            "cpu_s": round(time.process_time() - cpu, 2),
        }

    small = made_up(9, 384)
    one = {
        name: {f"{draws}_draws": seconds(small, ["l00"], name, draws) for draws in (0, 20)}
        for name in SIMILARITIES
    }
    large = made_up(17, 768)
    whole = {
        f"{draws}_draws": seconds(large, list(large), "linear-cka", draws) for draws in (0, 20)
    }
    return {
        "one_pivot_9_languages_384": one,
        "all_pairs_17_languages_768_linear": whole,
        "budget_s": 20,
        "threads": threads,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "states_bytes": sum(side.nbytes for side in large.values()),
        "machine": f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores",
        "load_average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "scipy")},
    }


if __name__ == "__main__":
    print(json.dumps(bench(int(sys.argv[1]) if len(sys.argv) > 1 else 1), indent=1))  # noqa: T201 - its output
