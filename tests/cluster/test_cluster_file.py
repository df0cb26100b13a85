"""`cluster.yaml`, its blocks for other providers, and `kuberay.yaml`, as those who read them do."""

import sys
from pathlib import Path

import pytest
import yaml

from sweep.clusterlint import cluster_faults

sys.path.insert(0, str(Path(__file__).parent))
from cluster_file import FILE, VARIANTS, variant

ROOT = Path(__file__).parents[2]
AMI = "ami-0123456789abcdef0"
RAY = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def texts():
    """The file that ships and each of its variants."""
    return {"amazon": FILE.read_text(encoding="utf-8")} | {name: variant(name) for name in VARIANTS}


@pytest.mark.parametrize("name", ["amazon", *VARIANTS])
def test_each_variant_has_no_fault_but_what_only_the_user_knows(name):
    """What is left to fill in is marked, and nothing else is wrong."""
    faults = cluster_faults(yaml.safe_load(texts()[name]))
    assert all("REPLACE-ME" in fault for fault in faults)
    assert bool(faults) == (name != "on premise")


@pytest.mark.parametrize("name", [pytest.param(name, marks=RAY) for name in ["amazon", *VARIANTS]])
def test_ray_takes_each_variant(name, monkeypatch):
    """Ray's own schema and its rules for node types accept the file and its blocks."""
    from ray.autoscaler._private import util

    # Google's library is asked only for what a machine type holds; ours says so itself.
    monkeypatch.setattr(util, "fillout_resources_gcp", lambda config: config, raising=False)
    prepared = util.prepare_config(yaml.safe_load(texts()[name]))
    util.validate_config(prepared)
    assert prepared["max_workers"] == (2 if name == "on premise" else 15)


def test_every_node_installs_what_was_tested():
    """The environment of a node is made by constraints.txt, and the image has that Ray."""
    config = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert any("-c constraints.txt -e '.[cluster]'" in text for text in config["setup_commands"])
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    job = yaml.safe_load((ROOT / "docs" / "kuberay.yaml").read_text(encoding="utf-8"))
    assert job["spec"]["rayClusterSpec"]["rayVersion"] == pinned["ray"]
    assert f"rayproject/ray:{pinned['ray']}-py311" in (ROOT / "docs" / "clusters.md").read_text()
    for name in ("opencensus", "aiohttp-cors", "boto3"):
        assert name in pinned


def test_no_code_is_left_behind():
    """What is not carried is named from the top of the tree, so that `trainables/data` is."""
    config = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    kept_here = config["rsync_exclude"]
    assert all(name.startswith("/") for name in kept_here)
    assert not [name for name in kept_here if (ROOT / name[1:] / "__init__.py").exists()]


def test_kubernetes_gets_a_cluster_that_is_closed_and_shrinks():
    """The RayJob asks for a token, grows from nothing, and gives head and workers one image."""
    job = yaml.safe_load((ROOT / "docs" / "kuberay.yaml").read_text(encoding="utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["shutdownAfterJobFinishes"] is True
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert cluster["enableInTreeAutoscaling"] is True
    (group,) = cluster["workerGroupSpecs"]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (0, 0, 15)
    pods = [cluster["headGroupSpec"]["template"]["spec"], group["template"]["spec"]]
    assert len({pod["containers"][0]["image"] for pod in pods}) == 1
    for pod in pods:
        mounts = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
        assert mounts <= {volume["name"] for volume in pod["volumes"]}


@pytest.mark.slow
@pytest.mark.parametrize("_", [pytest.param("amazon", marks=RAY)])
def test_amazon_gives_what_the_file_asks_for(_, ec2, tmp_path, monkeypatch):
    """Ray's bootstrap on a made-up Amazon finds network, key and a door for ssh alone."""
    from ray.autoscaler._private.commands import _bootstrap_config

    monkeypatch.setenv("HOME", str(tmp_path))  # the key that Ray makes is kept there
    (tmp_path / ".ssh").mkdir()
    config = yaml.safe_load(FILE.read_text(encoding="utf-8").replace("ami-REPLACE-ME", AMI))
    made = _bootstrap_config(config, no_config_cache=True)
    head, worker = (made["available_node_types"][name]["node_config"] for name in ("head", "t4"))
    assert worker["InstanceMarketOptions"] == {"MarketType": "spot"}
    assert "InstanceMarketOptions" not in head
    assert head["SubnetIds"]
    assert Path(made["auth"]["ssh_private_key"]).is_file()
    groups = ec2.describe_security_groups(GroupIds=worker["SecurityGroupIds"])["SecurityGroups"]
    doors = [
        (rule.get("FromPort"), rule.get("ToPort"))
        for group in groups
        for rule in group["IpPermissions"]
        if rule["IpRanges"]
    ]
    assert doors == [(22, 22)]
