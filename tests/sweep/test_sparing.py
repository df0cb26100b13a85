"""What the command line need not load."""

import subprocess
import sys

ASKS_ONCE = """
import sys
from sweep.sparing import spare_pandas
spare_pandas()
import pyarrow as pa
import pyarrow.compute as pc
table = pa.table({"a": [1, 2]})
assert pc.sum(table["a"]).as_py() == 3
assert table.to_pylist() == [{"a": 1}, {"a": 2}]
assert "pandas" not in sys.modules
import pandas
assert pandas.DataFrame({"a": [1]})["a"].tolist() == [1]
spare_pandas()
"""

COMMAND = """
import sys
sys.argv = ["sweep", "plan", "first-align", "--counts"]
from sweep.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
loaded = [name for name in ("pandas", "torch", "ray", "mlflow") if name in sys.modules]
assert not loaded, loaded
"""


def test_pyarrow_does_not_load_pandas_and_others_still_can():
    """Pyarrow asks once, and is told that there is none."""
    subprocess.run([sys.executable, "-c", ASKS_ONCE], check=True)


def test_a_plan_loads_none_of_the_large_packages():
    """They take seconds; a plan reads files and counts."""
    subprocess.run([sys.executable, "-c", COMMAND], check=True, stdout=subprocess.DEVNULL)
