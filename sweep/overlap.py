"""Subword overlap of what a study trains and tests on, counted once and kept in its store.

One file a (tokenizer, training set), `overlap/<hash>.parquet`, with a row a test set. It is part of
no commit, as it belongs to no trial: it says what the files share, before anything is trained.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b

import pyarrow as pa

from analysis.layout import Folder
from analysis.overlap import overlap
from analysis.rowfiles import decode, encode
from analysis.schema import OVERLAP
from sweep.grid import PlannedTrial
from sweep.storage import StorageError, Store
from trainables.data.sentence import DataError
from trainables.spec import DataRef, EncoderRef

FOLDER = "overlap"


def count_overlap(
    trials: Sequence[PlannedTrial],
    home: Store,
    cache: str,
    *,
    say: Callable[[str], None] = lambda _text: None,
) -> int:
    """Count what the store does not know yet. Only the driver that holds its lock may.

    Args:
        trials: Whose training and test sets.
        home: The store.
        cache: Local folder of what can be made again.
        say: Is told what is counted, before it takes its minute.

    Returns:
        How many pairs of files were compared.

    Raises:
        DataError: a file is wrong.
        StorageError: the store cannot be written.
    """
    counted = 0
    for (fingerprint, train_key), (encoder, train, targets) in _pairs(trials).items():
        path = f"{FOLDER}/{_name(fingerprint, train_key)}.parquet"
        known = _known(home, path)
        have = set(known["data_key"].to_pylist())
        missing = {key: ref for key, ref in targets.items() if key not in have}
        if not missing:
            continue
        sets = "1 test set" if len(missing) == 1 else f"{len(missing)} test sets"
        say(f"Counting the subwords that {train.code} shares with {sets}.")
        new = pa.Table.from_pylist(_rows(encoder, train, missing, cache), schema=OVERLAP)
        home.publish(path, encode(pa.concat_tables([known, new])))
        counted += len(missing)
    return counted


def try_overlap(
    trials: Sequence[PlannedTrial], home: Store, cache: str, *, say: Callable[[str], None]
) -> None:
    """Count, or say why not: trials need no counts, and the next run tries again.

    Args:
        trials: As for `count_overlap`.
        home: The store.
        cache: Local folder of what can be made again.
        say: Is told what is counted, and of a failure.

    Raises:
        DataError: a file is wrong; its trials would end the same way, hours later.
        StorageError: the store cannot be written.
    """
    try:
        count_overlap(trials, home, cache, say=say)
    except (DataError, StorageError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, trials are worth more than counts
        say(
            f"Subword overlap was not counted ({type(error).__name__}: {error}). "
            "Trials run without it; the same command counts it again."
        )


def read_overlap(where: str) -> pa.Table:
    """All rows of `schema.OVERLAP` in a store.

    Raises:
        TableError: a file is torn, foreign or of another version.
    """
    folder = Folder(where)
    files = [file for file in folder.files(FOLDER) if file.path.endswith(".parquet")]
    tables = [
        decode(folder.read(file.path), OVERLAP, f"{folder.where}/{file.path}") for file in files
    ]
    return pa.concat_tables([OVERLAP.empty_table(), *tables])


_Pairs = dict[tuple[str, str], tuple[EncoderRef, DataRef, dict[str, DataRef]]]


def _pairs(trials: Sequence[PlannedTrial]) -> _Pairs:
    """(tokenizer, training set) -> the encoder, the training file, and the test files by key."""
    found: _Pairs = {}
    for trial in trials:
        train, encoder = trial.spec.train, trial.spec.encoder
        if train is not None:
            key = encoder.fingerprint, train.key
            targets = found.setdefault(key, (encoder, train, {}))[2]
            targets |= {ref.key: ref for ref in trial.request.targets}
    return found


def _rows(
    encoder: EncoderRef, train: DataRef, targets: dict[str, DataRef], cache: str
) -> list[dict[str, object]]:
    from trainables.data.pieces import piece_counts  # tokenizers: seconds

    seen = piece_counts(train, encoder, cache).pieces
    rows: list[dict[str, object]] = []
    for key, ref in targets.items():
        test = piece_counts(ref, encoder, cache)
        shared = overlap(seen, test.pieces, test.counts)
        rows.append(
            {
                "encoder_fingerprint": encoder.fingerprint,
                "train_key": train.key,
                "data_key": key,
                "types": shared.types,
                "tokens": shared.tokens,
                "n_types": len(test.pieces),
                "n_tokens": int(test.counts.sum()),
            }
        )
    return rows


def _known(home: Store, path: str) -> pa.Table:
    try:
        return decode(home.read(path), OVERLAP, f"{home.where}/{path}")
    except FileNotFoundError:
        return OVERLAP.empty_table()


def _name(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode(), digest_size=8).hexdigest()
