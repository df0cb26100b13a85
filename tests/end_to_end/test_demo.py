"""The study that ships for a first look, made small: from its name to its page."""

import pytest

from sweep.cli import main

SMALL = [
    *("--set", 'grid.task="upos"', "--set", 'grid.ablation=["ref","reinit:1-2"]'),
    *("--set", "seeds.report=[1]", "--set", "search.trials=1"),
    *("--set", "tasks.upos.hyper.epochs=1", "--set", "data.train_limit=40"),
    *("--set", "data.dev_limit=20", "--set", "evaluate.limit=20", "--set", "similarity.limit=20"),
]


@pytest.mark.slow
def test_the_demo_goes_from_its_name_to_its_page(tmp_path, monkeypatch, capsys):
    """Without a download the demo runs, and its page has all languages and a correlation."""
    monkeypatch.setenv("XLING_CACHE", str(tmp_path / "cache"))
    store = ["--storage", str(tmp_path / "results")]
    for command in (["run", "demo", "--executor", "local", "--workers", "1"], ["report", "demo"]):
        with pytest.raises(SystemExit) as ended:
            main([*command, *SMALL, *store])
        assert ended.value.code == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    page = next(line for line in said.splitlines() if line.startswith("Page: "))
    with open(page.removeprefix("Page: "), encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    for language in ("qaa", "qab", "qak"):
        assert language in text
    assert "Spearman" in text
    assert "slots: idle" in text
    assert "&lt;svg" not in text  # a drawing that is shown as its own source
    assert "&lt;text" not in text
