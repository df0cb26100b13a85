"""What `sweep cluster check` finds in a cluster file; the file that ships is the example."""

import copy
from pathlib import Path

import pytest

from sweep.clusterlint import ClusterFileError, cluster_faults, read_cluster

FILE = Path(__file__).parents[2] / "cluster.yaml"
AMI = "ami-0123456789abcdef0"


@pytest.fixture(scope="module")
def shipped():
    return read_cluster(FILE)


@pytest.fixture
def config(shipped):
    """The file that ships, with an image put in."""
    made = copy.deepcopy(shipped)
    for node in made["available_node_types"].values():
        node["node_config"]["ImageId"] = AMI
    return made


def test_the_file_that_ships_wants_an_image_and_nothing_else(shipped, config):
    """Nothing but the image is left to the user, and once it is there no fault is found."""
    assert {fault.split(" = ")[0] for fault in cluster_faults(shipped)} == {
        "available_node_types.head.node_config.ImageId",
        "available_node_types.t4.node_config.ImageId",
    }
    assert cluster_faults(config) == []


def worker(config):
    return config["available_node_types"]["t4"]


FAULTS = {
    "a typo at the top": (
        lambda c: c.update(max_worker=3),
        "max_worker: unknown key. Did you mean 'max_workers'?",
    ),
    "no auth": (lambda c: c.pop("auth"), "auth.ssh_user: missing"),
    "a typo in auth": (
        lambda c: c["auth"].update(ssh_usr="x"),
        "auth.ssh_usr: unknown key. Did you mean 'ssh_user'?",
    ),
    "no region": (lambda c: c["provider"].pop("region"), "provider.region: missing"),
    "a provider of no name": (
        lambda c: c["provider"].update(type="awss"),
        "provider.type = \"awss\": unknown. Did you mean 'aws'?",
    ),
    "a typo in node_config": (
        lambda c: worker(c)["node_config"].update(InstanceTyp="x"),
        "t4.node_config.InstanceTyp: unknown key. Did you mean 'InstanceType'?",
    ),
    "a typo in a node type": (
        lambda c: worker(c).update(min_worker=1),
        "t4.min_worker: unknown key. Did you mean 'min_workers'?",
    ),
    "an image of no id": (
        lambda c: worker(c)["node_config"].update(ImageId="ubuntu"),
        't4.node_config.ImageId = "ubuntu"',
    ),
    "a GPU nobody knows of": (
        lambda c: worker(c)["resources"].pop("GPU"),
        "t4.resources.GPU: missing, but g4dn.xlarge has some",
    ),
    "half a GPU": (
        lambda c: worker(c)["resources"].update(GPU=0.5),
        "t4.resources.GPU = 0.5: a node has whole ones",
    ),
    "spot misspelt": (
        lambda c: worker(c)["node_config"].update(InstanceMarketOptions={"MarketType": "Spot"}),
        "write {MarketType: spot}",
    ),
    "more workers than the cluster": (
        lambda c: c.update(max_workers=4),
        "t4.max_workers = 15: the cluster's own max_workers = 4 bounds it",
    ),
    "least above most": (
        lambda c: worker(c).update(min_workers=3, max_workers=2),
        "min_workers = 3 is more than max_workers = 2",
    ),
    "a head of no type": (
        lambda c: c.update(head_node_type="hed"),
        "head_node_type = \"hed\": no such node type. Did you mean 'head'?",
    ),
    "no token asked for": (lambda c: c.update(setup_commands=[]), "sets RAY_AUTH_MODE=token"),
    "no token there": (
        lambda c: c["file_mounts"].pop("~/.ray/auth_token"),
        "file_mounts: no ~/.ray/auth_token",
    ),
    "an open dashboard": (
        lambda c: c["head_start_ray_commands"].append("ray start --dashboard-host=0.0.0.0"),
        "head_start_ray_commands[3]: listens on every address",
    ),
    "an open port": (
        lambda c: c["provider"].update(
            security_group={
                "IpPermissions": [
                    {"FromPort": 8265, "ToPort": 8265, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
                ]
            }
        ),
        "ports 8265-8265 are open to the world",
    ),
    "a head without autoscaler": (
        lambda c: c.update(head_start_ray_commands=["ray start --head"]),
        "without --autoscaling-config",
    ),
    "workers that find no head": (
        lambda c: c.update(worker_start_ray_commands=["ray start"]),
        "worker_start_ray_commands: no `ray start --address",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_alone(name, config):
    """One fault put into a good file is the only one that is told, with its place."""
    spoil, told = FAULTS[name]
    spoil(config)
    faults = cluster_faults(config)
    assert len(faults) == 1, faults
    assert told in faults[0]


def test_files_to_be_carried_must_be_there(config, tmp_path):
    """A mount of a file that is not here is told before a machine is paid for."""
    token = tmp_path / "token"
    token.touch()
    config["file_mounts"] = {"~/.ray/auth_token": str(token), "~/code": "nowhere"}
    (fault,) = cluster_faults(config, root=tmp_path)
    assert fault == 'file_mounts.~/code = "nowhere": no such file or folder here.'


def test_a_key_that_stands_twice_is_an_error(tmp_path):
    """YAML would drop the first of two equal keys without a word."""
    file = tmp_path / "cluster.yaml"
    file.write_text("cluster_name: a\nmax_workers: 1\nmax_workers: 2\n")
    with pytest.raises(ClusterFileError, match=r"cluster\.yaml:3: max_workers: stands twice"):
        read_cluster(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [("a: [", r"cluster\.yaml:1: "), ("- a\n", "no mapping"), (None, "No such file")],
)
def test_what_is_no_cluster_file_is_refused(text, told, tmp_path):
    """Broken YAML, a list and a missing file are told with the file's name."""
    file = tmp_path / "cluster.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ClusterFileError, match=told):
        read_cluster(file)


def test_the_command_line_names_each_fault_and_says_wrong(tmp_path, capsys):
    """`sweep cluster check` exits 2 with a line for each fault."""
    from sweep.cli import _code

    file = tmp_path / "cluster.yaml"
    file.write_text(FILE.read_text().replace("ssh_user:", "ssh_usr:"))
    assert _code(["cluster", "check", str(file)]) == 2
    told = capsys.readouterr().err
    assert f"error: {file}: auth.ssh_usr: unknown key. Did you mean 'ssh_user'?" in told
    assert "auth.ssh_user: missing" in told
