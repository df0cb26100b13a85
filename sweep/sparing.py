"""What a process of the command line need not load."""

import sys


def spare_pandas() -> None:
    """Keep pyarrow from loading pandas, if nothing has yet.

    At its first call pyarrow loads pandas wherever it is installed (MLflow brings it), to convert
    what nobody here converts: half a second and 30 MB of every command. It asks once; whoever
    imports pandas afterwards gets it. In this process `to_pandas` is gone, so this is for the
    command line alone, and not for whoever reads tables in a notebook.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """A finder that knows of no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Look for a module; others are left to the finders after this one.

        Raises:
            ModuleNotFoundError: it is pandas.
        """
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not looked for", name=name)
        del path, target
