"""`sweep report --against`: the name of a paper is checked before anything else."""

from sweep import cli


def test_an_unknown_paper_exits_2_with_the_closest_name(capsys):
    """A slip of `first-align` is answered with it, before the study's data are looked for."""
    assert cli._code(["report", "first-align", "--against", "first-aling"]) == 2
    out, err = capsys.readouterr()
    assert "unknown paper 'first-aling'. Did you mean 'first-align'?" in err
    assert "Traceback" not in err
    assert out == ""
