"""Fetching data: every file whole or not there, nothing fetched twice, honest about the rest."""

import io
import json
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback import Site, serve

from sweep.cli import main
from sweep.complaints import StudyError
from sweep.fetch import Mirrors, fetch, files_of, names_of, rehearse
from sweep.fetch_http import AbsentError, FetchError, UnreachableError, check_base, download
from sweep.fetch_manifest import MANIFEST, read_manifest, sha256_of
from sweep.fetch_names import HUB_SETS, wanted
from sweep.fetch_treebanks import LANGUAGES, TREEBANKS, UNNAMED, nearby, treebank
from sweep.study import load_study
from trainables.data.conllu import read_conllu
from trainables.data.treebanks import data_ref
from trainables.registry import LAYOUTS, load

TREES = b"""# sent_id = 1
# text = Dogs bark
1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_

"""
EWT = "/UD_English-EWT/r2.4/en_ewt-ud-{}.conllu"


@pytest.fixture
def site(monkeypatch):
    """A server that has three files of English-EWT 2.4."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site(files={EWT.format(split): TREES for split in ("train", "dev", "test")})
    server = serve(site)
    yield site
    server.shutdown()
    server.server_close()


@pytest.fixture
def pauses():
    """Pauses that were asked for, instead of made."""
    return []


def get(site, folder, *names, pauses=None, token=""):
    """Fetch names from the site."""
    mirrors = Mirrors(ud_url=site.url, hub_url=site.url)
    wait = (pauses if pauses is not None else []).append
    return fetch(files_of(names, mirrors), Path(folder), token=token, wait=wait)


def parquet(rows, classes=None, column="label"):
    """A parquet file as the hub has it, with its note about classes if there are any."""
    table = pa.Table.from_pylist(rows)
    if classes:
        about = {"info": {"features": {column: {"names": classes, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({b"huggingface": json.dumps(about).encode()})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def hub(name, language, split, revision="main"):
    """Path of a file on the hub."""
    repository = HUB_SETS[name].repository
    return f"/datasets/{repository}/resolve/{revision}/{language}/{split}-00000-of-00001.parquet"


# One file


def test_a_whole_file_is_received_as_it_is(site, tmp_path):
    """What is written equals what is served, and its hash is told."""
    part = tmp_path / "a.part"
    received = download(site.url + EWT.format("dev"), part)
    assert part.read_bytes() == TREES
    assert (received.size, received.sha256) == (len(TREES), sha256_of(part))


def test_a_cut_transfer_goes_on_where_it_stopped(site, tmp_path, pauses):
    """After a connection dies at byte 30 only the rest is asked for, and the file is whole."""
    path = EWT.format("dev")
    site.faults[path] = deque(["cut:30"])
    download(site.url + path, tmp_path / "a.part", wait=pauses.append)
    assert [wanted for _, _, wanted in site.asked] == ["", "bytes=30-"]
    assert (tmp_path / "a.part").read_bytes() == TREES
    assert pauses == [1.0]


def test_a_later_call_goes_on_where_a_killed_one_stopped(site, tmp_path):
    """A part left by a dead process is continued, not begun again."""
    path = EWT.format("dev")
    part = tmp_path / "a.part"

    def die(_):
        raise KeyboardInterrupt

    site.faults[path] = deque(["cut:50"])
    with pytest.raises(KeyboardInterrupt):
        download(site.url + path, part, wait=die)
    assert part.read_bytes() == TREES[:50]
    download(site.url + path, part)
    assert site.asked[-1][2] == "bytes=50-"
    assert part.read_bytes() == TREES


def test_a_part_of_an_older_version_is_not_continued(site, tmp_path):
    """When the file changed between two calls, the parts of two versions are never mixed."""
    path = EWT.format("dev")
    part = tmp_path / "a.part"
    site.faults[path] = deque(["cut:50", "503", "503", "503", "503", "503"])
    with pytest.raises(FetchError):
        download(site.url + path, part, wait=lambda _: None)
    site.faults[path].clear()
    site.files[path] = TREES.replace(b"Dogs", b"Cats")
    download(site.url + path, part)
    assert part.read_bytes() == site.files[path]


def test_without_an_exact_tag_a_part_is_not_continued(site, tmp_path, pauses):
    """A weak tag does not promise the same bytes, so the file is begun again."""
    site.weak = True
    path = EWT.format("dev")
    site.faults[path] = deque(["cut:30"])
    download(site.url + path, tmp_path / "a.part", wait=pauses.append)
    assert [wanted for _, _, wanted in site.asked] == ["", ""]
    assert (tmp_path / "a.part").read_bytes() == TREES


def test_a_complete_part_needs_no_more_bytes(site, tmp_path):
    """The server's 416 on a part that has all bytes already means success."""
    part = tmp_path / "a.part"
    first = download(site.url + EWT.format("dev"), part)
    again = download(site.url + EWT.format("dev"), part)
    assert again == first
    assert site.asked[-1][2] == f"bytes={len(TREES)}-"


def test_a_part_that_is_too_long_is_begun_again(site, tmp_path):
    """A 416 on a part that is longer than the file throws the part away."""
    part = tmp_path / "a.part"
    download(site.url + EWT.format("dev"), part)
    part.write_bytes(TREES + b"more")
    download(site.url + EWT.format("dev"), part, wait=lambda _: None)
    assert part.read_bytes() == TREES


def test_a_wrong_range_is_not_glued_on(site, tmp_path):
    """Bytes from another place than asked for are refused, and the file is begun again."""
    path = EWT.format("dev")
    site.faults[path] = deque(["cut:30", "shift"])
    download(site.url + path, tmp_path / "a.part", wait=lambda _: None)
    assert (tmp_path / "a.part").read_bytes() == TREES


def test_pauses_grow_and_end(site, tmp_path, pauses):
    """Five refusals in a row are four growing pauses and one honest error."""
    path = EWT.format("dev")
    site.faults[path] = deque(["503"] * 9)
    with pytest.raises(FetchError, match="503 Service Unavailable"):
        download(site.url + path, tmp_path / "a.part", wait=pauses.append)
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert site.gets(path) == 5


def test_a_transfer_that_never_gets_further_ends(site, tmp_path, pauses):
    """A server that always cuts at the same byte is given up after five tries."""
    site.weak = True
    path = EWT.format("dev")
    site.faults[path] = deque(["cut:30"] * 99)
    with pytest.raises(FetchError, match=f"ended after 30 of {len(TREES)} bytes"):
        download(site.url + path, tmp_path / "a.part", wait=pauses.append)
    assert site.gets(path) == 5


def test_progress_is_rewarded_with_more_tries(site, tmp_path):
    """A file that comes ten bytes at a time arrives, however many tries it takes."""
    path = EWT.format("dev")
    site.faults[path] = deque(["cut:10"] * 12)
    download(site.url + path, tmp_path / "a.part", wait=lambda _: None)
    assert (tmp_path / "a.part").read_bytes() == TREES


def test_damage_is_noticed_by_the_hubs_hash(site, tmp_path):
    """A file whose last byte flipped on the way is fetched once more, then it is right."""
    path = hub("xnli", "en", "test")
    site.files[path] = b"PAR1 some bytes"
    site.faults[path] = deque(["damaged"])
    received = download(site.url + path, tmp_path / "a.part", wait=lambda _: None)
    assert (tmp_path / "a.part").read_bytes() == b"PAR1 some bytes"
    assert received.commit == "0123abcd"


def test_lasting_damage_is_an_error_and_leaves_no_part(site, tmp_path):
    """A file that is wrong twice is refused with both hashes, and nothing of it is kept."""
    path = hub("xnli", "en", "test")
    site.files[path] = b"PAR1 some bytes"
    site.faults[path] = deque(["damaged"] * 9)
    with pytest.raises(FetchError, match=r"its sha256 is .*, not .*: damaged"):
        download(site.url + path, tmp_path / "a.part", wait=lambda _: None)
    assert not (tmp_path / "a.part").exists()
    assert site.gets("/cdn" + path) == 2


def test_a_token_goes_to_the_hub_and_not_where_it_redirects(site, tmp_path):
    """The server of the files never sees the token of the hub."""
    path = hub("xnli", "en", "test")
    site.files[path] = b"PAR1"
    download(site.url + path, tmp_path / "a.part", token="secret")
    assert site.tokens == {path: "Bearer secret"}


def test_a_token_of_the_hub_does_not_go_to_github(site, tmp_path):
    """Treebanks are fetched without it."""
    get(site, tmp_path, "en_ewt:dev", token="secret")
    assert site.tokens == {}


def test_a_part_of_another_file_is_not_continued(site, tmp_path):
    """Two addresses may have equal tags, and still are two files."""
    site.tag = '"1"'
    site.files["/other"] = b"something else entirely, and longer than fifty bytes, as is needed"
    part = tmp_path / "a.part"
    download(site.url + EWT.format("dev"), part)
    part.write_bytes(TREES[:50])
    download(f"{site.url}/other", part, wait=pytest.fail)
    assert part.read_bytes() == site.files["/other"]


@pytest.mark.parametrize(
    ("status", "told"), [("401", "HF_TOKEN"), ("403", "HF_TOKEN"), ("418", "browser")]
)
def test_a_refusal_is_not_tried_again(site, tmp_path, status, told):
    """What will not change by waiting is said at once."""
    path = EWT.format("dev")
    site.faults[path] = deque([status])
    with pytest.raises(FetchError, match=told):
        download(site.url + path, tmp_path / "a.part", wait=pytest.fail)
    assert site.gets(path) == 1


def test_a_file_that_is_not_there_is_an_absence(site, tmp_path):
    """404 is an error of its own kind, and not tried again."""
    with pytest.raises(AbsentError, match="no such file"):
        download(f"{site.url}/nothing", tmp_path / "a.part", wait=pytest.fail)


def test_no_server_is_an_error_of_its_own(tmp_path, pauses):
    """Where nobody listens, five tries end in a message that says so."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/a"
        with pytest.raises(
            UnreachableError, match=r"no answer .*Check the network, or name a mirror"
        ):
            download(url, tmp_path / "a.part", wait=pauses.append)


@pytest.mark.parametrize("url", ["file:///etc", "ftp://a/b", "mirror", "http://", "http://a/?q=1"])
def test_a_mirror_is_a_web_address(url):
    """Anything that is not http or https, or holds more than a path, is refused."""
    with pytest.raises(FetchError, match="not an address"):
        check_base(url, "--ud-url")


# A folder


def test_a_treebank_is_where_the_readers_look(site, tmp_path):
    """Files fetched by their code are found by the same code, with or without the release."""
    get(site, tmp_path, "en_ewt")
    for code in ("en_ewt", "en_ewt@2.4"):
        ref = data_ref(tmp_path, code, "dev")
        assert read_conllu(ref.location)[0].words == ("Dogs", "bark")
    assert not list((tmp_path / ".fetch").glob("*.part*"))


def test_the_manifest_says_what_was_fetched(site, tmp_path):
    """Path, hash, size, address and day of every file are noted."""
    get(site, tmp_path, "en_ewt:dev")
    (entry,) = read_manifest(tmp_path).values()
    path = tmp_path / "ud-2.4/UD_English-EWT/en_ewt-ud-dev.conllu"
    assert entry.path == "ud-2.4/UD_English-EWT/en_ewt-ud-dev.conllu"
    assert (entry.sha256, entry.size) == (sha256_of(path), len(TREES))
    assert entry.url == site.url + EWT.format("dev")
    assert entry.fetched.endswith("+00:00")


def test_a_second_call_downloads_nothing(site, tmp_path):
    """What is there is not asked for again."""
    first = get(site, tmp_path, "en_ewt")
    n_asked = len(site.asked)
    second = get(site, tmp_path, "en_ewt", "UD_English-EWT")
    assert [outcome.status for outcome in first] == ["fetched"] * 3
    assert [outcome.status for outcome in second] == ["there"] * 3
    assert len(site.asked) == n_asked


def test_a_file_that_is_gone_is_fetched_again_and_compared(site, tmp_path):
    """The same content comes back; other content than the manifest knows is refused."""
    get(site, tmp_path, "en_ewt:dev")
    path = tmp_path / "ud-2.4/UD_English-EWT/en_ewt-ud-dev.conllu"
    path.unlink()
    assert get(site, tmp_path, "en_ewt:dev")[0].status == "fetched"
    path.unlink()
    site.files[EWT.format("dev")] = TREES.replace(b"Dogs", b"Cats")
    (outcome,) = get(site, tmp_path, "en_ewt:dev")
    assert outcome.status == "failed"
    assert "not the same file any more" in outcome.told
    assert not path.exists()


def test_a_file_that_was_changed_is_neither_used_nor_overwritten(site, tmp_path):
    """A changed file is named with what to do, and stays as it is."""
    get(site, tmp_path, "en_ewt:dev")
    path = tmp_path / "ud-2.4/UD_English-EWT/en_ewt-ud-dev.conllu"
    path.write_bytes(b"my own work")
    (outcome,) = get(site, tmp_path, "en_ewt:dev")
    assert outcome.is_fault
    assert "changed or damaged" in outcome.told
    assert path.read_bytes() == b"my own work"


def test_a_file_of_the_users_own_is_not_overwritten(site, tmp_path):
    """A file that no manifest knows is not touched."""
    path = tmp_path / "ud-2.4/UD_English-EWT/en_ewt-ud-dev.conllu"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"my own work")
    (outcome,) = get(site, tmp_path, "en_ewt:dev")
    assert "not fetched by `sweep data get`" in outcome.told
    assert path.read_bytes() == b"my own work"


@pytest.mark.parametrize("step", ["note", "file"])
def test_a_crash_between_note_and_file_is_mended(site, tmp_path, monkeypatch, step):
    """Killed before the note or before the file, the next call puts both in place."""

    def crash(*_):
        raise KeyboardInterrupt

    def replace(path, to):
        return crash() if "ud-" in str(to) else path.rename(to)

    with monkeypatch.context() as broken:
        if step == "note":
            broken.setattr("sweep.fetch.write_manifest", crash)
        else:
            broken.setattr(Path, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            get(site, tmp_path, "en_ewt:dev")
    (outcome,) = get(site, tmp_path, "en_ewt:dev")
    assert outcome.status == "fetched"
    assert (tmp_path / outcome.wanted.path).read_bytes() == TREES


def test_other_names_go_on_after_a_fault(site, tmp_path):
    """A file that is not to be had does not keep the others from coming."""
    del site.files[EWT.format("dev")]
    outcomes = get(site, tmp_path, "en_ewt")
    assert [outcome.status for outcome in outcomes] == ["fetched", "failed", "fetched"]


def test_a_missing_file_says_which_release_has_it(site, tmp_path):
    """The nearest release that has the file is named as it is to be written."""
    path = "/UD_Turkish-PUD/{}/tr_pud-ud-test.conllu"
    site.files |= {path.format("r2.5"): TREES, path.format("r2.9"): TREES}
    (outcome,) = get(site, tmp_path, "tr_pud")
    assert "no such file (404 Not Found)" in outcome.told
    assert "Release 2.5 has it: write tr_pud@2.5." in outcome.told
    assert get(site, tmp_path, "tr_pud@2.5")[0].status == "fetched"


def test_a_file_that_no_release_has_says_so(site, tmp_path):
    """When no release has it, the name is in doubt."""
    (outcome,) = get(site, tmp_path, "sv_pud")
    assert "No other release has it" in outcome.told


def test_a_repository_may_have_a_test_set_only(site, tmp_path):
    """Of a treebank that the table does not know, train and dev may be absent."""
    site.files["/UD_Welsh-CCG/r2.4/cy_ccg-ud-test.conllu"] = TREES
    outcomes = get(site, tmp_path, "UD_Welsh-CCG")
    assert [outcome.status for outcome in outcomes] == ["absent", "absent", "fetched"]
    assert not any(outcome.is_fault for outcome in outcomes)


def test_a_login_page_is_no_treebank(site, tmp_path):
    """What begins like a web page is refused, and does not stay."""
    site.files[EWT.format("dev")] = b"<!DOCTYPE html>\n<html>sign in</html>"
    (outcome,) = get(site, tmp_path, "en_ewt:dev")
    assert "not CoNLL-U, as it begins with '<!DOCTYPE html>'" in outcome.told
    assert not (tmp_path / outcome.wanted.path).exists()


def test_when_the_network_is_gone_the_rest_is_not_tried(tmp_path):
    """One file pays for the tries; the others of that server are not tried."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        mirrors = Mirrors(ud_url=f"http://127.0.0.1:{free.getsockname()[1]}")
        outcomes = fetch(files_of(["en_ewt"], mirrors), tmp_path, wait=lambda _: None)
    assert [outcome.status for outcome in outcomes] == ["failed", "not tried", "not tried"]


def test_offline_the_hub_is_not_asked(site, tmp_path):
    """HF_HUB_OFFLINE keeps data sets of the hub from being fetched, and treebanks not."""
    files = files_of(["en_ewt:dev", "xnli-en:dev"], Mirrors(ud_url=site.url))
    tree, pair = fetch(files, tmp_path, is_offline=True)
    assert tree.status == "fetched"
    assert pair.status == "not tried"
    assert "HF_HUB_OFFLINE" in pair.told


def test_two_calls_do_not_work_in_one_folder(site, tmp_path):
    """The second is told so, instead of mixing its parts with those of the first."""
    seen = []

    def second(_):
        with pytest.raises(FetchError, match="another `sweep data get`"):
            get(site, tmp_path, "en_ewt:test")
        seen.append(True)

    fetch(files_of(["en_ewt:dev"], Mirrors(ud_url=site.url)), tmp_path, tell=second)
    assert seen


@pytest.mark.parametrize("text", ["path\tdataset\n", "", "\xe9"])
def test_a_foreign_manifest_is_not_overwritten(site, tmp_path, text):
    """A folder that has another MANIFEST.tsv is somebody else's."""
    (tmp_path / MANIFEST).write_text(text, encoding="latin-1")
    with pytest.raises(FetchError, match="MANIFEST"):
        get(site, tmp_path, "en_ewt:dev")
    assert (tmp_path / MANIFEST).read_text(encoding="latin-1") == text


def test_a_damaged_manifest_says_the_line(site, tmp_path):
    """A line that was cut short is named by its number."""
    get(site, tmp_path, "en_ewt:dev")
    path = tmp_path / MANIFEST
    path.write_text(path.read_text(encoding="utf-8")[:-60], encoding="utf-8")
    with pytest.raises(FetchError, match="tsv:2: damaged"):
        get(site, tmp_path, "en_ewt:dev")


def test_a_rehearsal_asks_nobody_and_writes_nothing(site, tmp_path):
    """It says what is there, what would be fetched and what resumed."""
    get(site, tmp_path, "en_ewt:dev")
    site.faults[EWT.format("test")] = deque(["cut:30", "401"])
    get(site, tmp_path, "en_ewt:test", pauses=[])
    n_asked = len(site.asked)
    before = sorted(tmp_path.rglob("*"))
    outcomes = rehearse(files_of(["en_ewt"], Mirrors(ud_url=site.url)), tmp_path)
    assert {o.wanted.split: o.status for o in outcomes} == {
        "train": "to fetch",
        "dev": "there",
        "test": "to resume",
    }
    assert len(site.asked) == n_asked
    assert sorted(tmp_path.rglob("*")) == before
    rehearse(files_of(["en_ewt"], Mirrors(ud_url=site.url)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


# Data sets of the hub


def examples(folder, outcome):
    """What our reader makes of a converted file."""
    wanted = outcome.wanted
    return load("layout", wanted.layout, LAYOUTS)(str(folder / wanted.path))


def test_wikiann_is_read_by_its_reader(site, tmp_path):
    """Tokens and tags come back as the hub has them; an empty token or sentence is left out."""
    site.files[hub("wikiann", "en", "test")] = parquet(
        [
            {"tokens": ["The", "U.N.", "in", "New", "York"], "ner_tags": [0, 3, 0, 5, 6]},
            {"tokens": ["", "a:b"], "ner_tags": [0, 1]},
            {"tokens": [], "ner_tags": []},
        ]
    )
    (outcome,) = get(site, tmp_path, "wikiann-en:test")
    first, second = examples(tmp_path, outcome)
    assert first.words == ("The", "U.N.", "in", "New", "York")
    assert first.tags == ("O", "B-ORG", "O", "B-LOC", "I-LOC")
    assert (second.words, second.tags) == (("a:b",), ("B-PER",))
    assert outcome.told == "2 examples, 1 without text or class left out"
    assert data_ref(tmp_path, "wikiann-en", "test").layout == "wikiann"


def test_xnli_is_read_by_its_reader(site, tmp_path):
    """Quotation marks stay, tabs become blanks, and a pair without class is left out."""
    site.files[hub("xnli", "sw", "validation")] = parquet(
        [
            {"premise": '"Yes', "hypothesis": "he\tsaid\n", "label": 0},
            {"premise": "a", "hypothesis": "b", "label": 2},
            {"premise": "a", "hypothesis": "b", "label": -1},
            {"premise": " ", "hypothesis": "b", "label": 1},
        ],
        classes=["entailment", "neutral", "contradiction"],
    )
    (outcome,) = get(site, tmp_path, "xnli-sw:dev")
    first, second = examples(tmp_path, outcome)
    assert (first.text, first.pair, first.label) == ('"Yes', "he said", "entailment")
    assert second.label == "contradiction"
    assert outcome.wanted.path == "xnli/xtreme/dev-sw.tsv"
    assert outcome.told == (
        "2 examples, 2 without text or class left out, 1 texts with tabs or line ends mended"
    )


def test_pawsx_is_read_by_its_reader(site, tmp_path):
    """Quotation marks at the start of a field survive the quoting of that layout."""
    rows = [
        {"id": 1, "sentence1": '"A" is', "sentence2": 'say "b"', "label": 1},
        {"id": 2, "sentence1": "c", "sentence2": "d", "label": 0},
    ]
    site.files[hub("pawsx", "de", "train")] = parquet(rows, classes=["0", "1"])
    (outcome,) = get(site, tmp_path, "pawsx-de:train")
    first, second = examples(tmp_path, outcome)
    assert (first.text, first.pair, first.label) == ('"A" is', 'say "b"', "1")
    assert (second.text, second.label) == ("c", "0")


def test_a_converted_file_is_noted_with_its_source(site, tmp_path):
    """The manifest has the hash of the parquet file, too, and the commit of the hub."""
    path = hub("pawsx", "de", "test")
    site.files[path] = parquet([{"sentence1": "a", "sentence2": "b", "label": 1}])
    (outcome,) = get(site, tmp_path, "pawsx-de:test")
    entry = read_manifest(tmp_path)[outcome.wanted.path]
    assert entry.commit == "0123abcd"
    assert entry.source_sha256 != entry.sha256 == sha256_of(tmp_path / entry.path)
    (tmp_path / entry.path).unlink()
    assert get(site, tmp_path, "pawsx-de:test")[0].status == "fetched"


def test_another_revision_does_not_pass_for_the_one_that_is_there(site, tmp_path):
    """Two revisions have one path, so the second is refused instead of being called there."""
    content = parquet([{"sentence1": "a", "sentence2": "b", "label": 1}])
    site.files |= {hub("pawsx", "de", "test", r): content for r in ("main", "4cd8187c")}
    get(site, tmp_path, "pawsx-de:test")
    (outcome,) = get(site, tmp_path, "pawsx-de@4cd8187c:test")
    assert "another version" in outcome.told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"<html>", "not a parquet file"),
        (parquet([{"premise": "a", "label": 1}]), "no column 'hypothesis'"),
        (
            parquet(
                [{"premise": "a", "hypothesis": "b", "label": 1}],
                classes=["contradiction", "neutral", "entailment"],
            ),
            "numbers contradiction, neutral, entailment, not entailment",
        ),
    ],
)
def test_a_data_set_that_changed_is_refused(site, tmp_path, content, told):
    """Another format, other columns or other classes are noticed before a file appears."""
    site.files[hub("xnli", "en", "test")] = content
    (outcome,) = get(site, tmp_path, "xnli-en:test")
    assert told in outcome.told
    assert not (tmp_path / outcome.wanted.path).exists()


# Names


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("en_ewtt", "Did you mean 'en_ewt'"),
        ("UD_Klingon-TNG", "unknown treebank"),
        ("xnli-xx", "no language 'xx'"),
        ("wikiann-../..", "no name of data"),
        ("../../etc/passwd", "no name of data"),
        ("UD_English-EWT/../x", "no name of data"),
        ("en_ewt@../../x", "no name of data"),
        ("en_ewt@2.4/../../x", "no name of data"),
        ("en_ewt@main", "no release"),
        ("en_ewt:valid", "unknown split 'valid'"),
        ("wikiann-EN", "no language 'EN'"),
        ("xnli-en@..", "no name of data"),
        ("en_ewt\n", "no name of data"),
        ("", "no name of data"),
    ],
)
def test_a_name_that_means_nothing_is_refused(name, told):
    """What is not known never becomes a path or an address."""
    with pytest.raises(StudyError, match=told):
        wanted(name)


def test_addresses_are_those_of_the_publishers():
    """The files of a treebank and of a data set are where GitHub and the hub have them."""
    (tree,) = wanted("en_ewt@2.5:dev")
    assert tree.url == (
        "https://raw.githubusercontent.com/UniversalDependencies/"
        "UD_English-EWT/r2.5/en_ewt-ud-dev.conllu"
    )
    (pair,) = wanted("xnli-ar:dev")
    assert pair.url == (
        "https://huggingface.co/datasets/facebook/xnli/resolve/main/"
        "ar/validation-00000-of-00001.parquet"
    )
    (old,) = wanted("fr@1.4:test")
    assert old.source == "UD_French-GSD/r1.4/fr-ud-test.conllu"


def test_codes_follow_the_names_of_their_repositories():
    """Every code of the table is the one that its repository's name leads to, but a renamed one."""
    for code, repository in TREEBANKS.items():
        if code != "pl_sz":
            assert treebank(f"UD_{repository}") == treebank(code)
    assert set(UNNAMED.values()) <= set(TREEBANKS)
    assert LANGUAGES["Swiss_German"] == "gsw"


def test_other_releases_are_tried_from_the_nearest_on():
    """Later goes before earlier at the same distance, and the release itself is left out."""
    assert list(nearby("2.4"))[:4] == ["2.5", "2.3", "2.6", "2.2"]
    assert "2.4" not in nearby("2.4")


def test_a_study_says_what_it_needs():
    """All files of a study that ships can be fetched by name, each split once."""
    names, by_hand = names_of(load_study("first-align-small"))
    assert "en_ewt:train" in names
    assert "fr_pud:test" in names
    assert by_hand == ()


# The command line


@pytest.mark.slow
def test_kill_minus_9_loses_no_byte_that_came(site, tmp_path):
    """The call after a SIGKILL amid a transfer asks for the rest only, and the file is whole."""
    content = TREES * 20_000
    path = EWT.format("train")
    site.files[path] = content
    site.faults[path] = deque(["hang:1000000"])
    arguments = ["data", "get", "en_ewt:train", "--to", str(tmp_path), "--ud-url", site.url]
    command = [sys.executable, "-c", "from sweep.cli import main; main()", *arguments]
    (file,) = files_of(["en_ewt:train"], Mirrors(ud_url=site.url))
    give_up = time.monotonic() + 60
    with subprocess.Popen(command) as process:
        try:
            while rehearse([file], tmp_path)[0].size < 1_000_000:
                assert time.monotonic() < give_up
                assert process.poll() is None
        finally:
            process.kill()
            site.resume.set()
    assert subprocess.run(command, check=False).returncode == 0
    assert [wanted for _, asked, wanted in site.asked if asked == path] == ["", "bytes=1000000-"]
    assert (tmp_path / file.path).read_bytes() == content


def run(capsys, *arguments):
    """Exit code, stdout and stderr of the command."""
    with pytest.raises(SystemExit) as left:
        main(["data", "get", *arguments])
    told = capsys.readouterr()
    return left.value.code, told.out, told.err


def test_the_command_fetches_and_tells(site, tmp_path, capsys, monkeypatch):
    """Exit code 0 and a row a file; the same call again fetches nothing."""
    monkeypatch.setenv("XLING_UD_URL", site.url)
    code, out, err = run(capsys, "en_ewt", "--to", str(tmp_path))
    assert code == 0
    assert len(out.splitlines()) == 4
    assert err.count("fetched ") == 3
    code, out, err = run(capsys, "en_ewt", "--to", str(tmp_path), "--json")
    assert code == 0
    assert {row["status"] for row in json.loads(out)} == {"there"}
    assert err == ""


def test_the_command_ends_with_1_when_something_is_missing(site, tmp_path, capsys):
    """What could not be had is told on stderr, and the exit code says so."""
    del site.files[EWT.format("dev")]
    code, _, err = run(capsys, "en_ewt", "--to", str(tmp_path), "--ud-url", site.url)
    assert code == 1
    assert "error: " in err
    assert "r2.4/en_ewt-ud-dev.conllu" in err


@pytest.mark.parametrize("arguments", [("en_ewtt",), (), ("en_ewt", "--release", "x/../..")])
def test_the_command_ends_with_2_for_a_wrong_name(tmp_path, capsys, arguments):
    """Wrong usage is exit code 2, and nothing is written."""
    code, _, err = run(capsys, *arguments, "--to", str(tmp_path / "new"))
    assert code == 2
    assert err
    assert not (tmp_path / "new").exists()


def test_the_command_rehearses_a_study(tmp_path, capsys):
    """`--study --dry-run` lists the files of a study that ships."""
    code, out, _ = run(capsys, "--study", "first-align-small", "--to", str(tmp_path), "--dry-run")
    assert code == 0
    assert "UD_French-PUD" in out
    assert not list(tmp_path.iterdir())
