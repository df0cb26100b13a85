"""A study whose trials share a real GPU; skipped without one."""

import pytest
import torch

from sweep.ledger import Ledger
from sweep.run import run_study
from sweep.study import build_study
from trainables.encoders.tiny import tiny_encoder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU"),
]


@pytest.mark.parametrize("gpus", [0.25, "auto"])
@pytest.mark.parametrize("executor", ["local", pytest.param("tune", marks=pytest.mark.ray)])
def test_trials_share_a_card(toy_root, tmp_path, executor, gpus):
    """All are done on their share, several at a time; `auto` measures what they need first."""
    study = build_study(
        {
            "name": "shared",
            "encoder": {"model": str(tiny_encoder(tmp_path / "encoder"))},
            "data": {"root": str(toy_root), "sources": {"aa": "aa_toy"}},
            "grid": {"task": "upos", "source": "aa", "ablation": ["ref", "reinit:1-2"]},
            "hyper": {"learning_rate": 1e-3, "batch_size": 8, "epochs": 8},
            "seeds": {"report": [1, 2, 3, 4]},
            "evaluate": {"targets": ["aa", "bb"], "naming": "{lang}_pud"},
            "similarity": {"states": ["fine-tuned"]},
            "options": {"precision": "bf16"},
            "resources": {"gpus": gpus},
            "storage": str(tmp_path / "store"),
            "executor": executor,
            "tracking": {"enabled": False},
        }
    )
    run_study(study)
    rows = Ledger(study.storage).table("trials").to_pylist()
    assert [row["status"] for row in rows] == ["done"] * 8
    assert {row["device"] for row in rows} == {torch.cuda.get_device_name()}
    shares = {row["gpu_share"] for row in rows}
    assert shares == {0.25} if gpus == 0.25 else max(shares) < 0.25
    starts = {row["trial_id"]: (row["started"], row["finished"]) for row in rows}
    together = [
        sum(began <= at < ended for began, ended in starts.values()) for at, _ in starts.values()
    ]
    assert 1 < max(together) <= (4 if gpus == 0.25 else 8)
