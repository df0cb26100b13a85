"""The cluster file that ships, and its blocks for other providers put in place as it tells to."""

import re
from pathlib import Path

FILE = Path(__file__).parents[2] / "cluster.yaml"
VARIANTS = ("on premise", "google")


def variant(name: str) -> str:
    """The file with what stands between the marks taken out and one block, uncommented, put in."""
    text = FILE.read_text(encoding="utf-8")
    (block,) = re.findall(rf"^# >>> {name}\n(.*?)^# <<< {name}\n", text, re.DOTALL | re.MULTILINE)
    lines = "".join(line.removeprefix("# ") for line in block.splitlines(keepends=True))
    marked = re.compile(r"^# >>> where.*?^# <<< where[^\n]*\n", re.DOTALL | re.MULTILINE)
    made, n = marked.subn(lambda _: lines, text)
    assert n == 1
    return made
