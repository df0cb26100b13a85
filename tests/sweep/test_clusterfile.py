"""Cluster files are read as Ray reads them, and complained about as a researcher would want."""

import pytest

from sweep.clusterfile import NodeType, imagined_cluster, read_cluster
from sweep.complaints import StudyError
from sweep.pricing.instances import price_list

AWS = """
cluster_name: lab
max_workers: 15
idle_timeout_minutes: 10
upscaling_speed: 2.0
provider: {type: aws, region: us-east-1}
head_node_type: head
available_node_types:
  head:
    resources: {CPU: 0}
    node_config: {InstanceType: m5.large}
  t4:
    min_workers: 1
    node_config:
      InstanceType: g4dn.xlarge
      InstanceMarketOptions: {MarketType: spot}
"""

GCP = """
cluster_name: lab
max_workers: 4
provider: {type: gcp, project_id: p}
head_node_type: head
available_node_types:
  head:
    node_config: {machineType: n1-standard-2}
  t4:
    max_workers: 3
    resources: {CPU: 4, GPU: 2}
    node_config:
      machineType: n1-standard-4
      scheduling: [{preemptible: true}]
      guestAccelerators:
        - acceleratorType: projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4
          acceleratorCount: 2
"""

LOCAL = """
cluster_name: own
provider: {type: local, head_ip: h, worker_ips: [a, b, c]}
available_node_types:
  local: {resources: {CPU: 16, GPU: 2, "accelerator_type:A100": 1}}
"""


def read(tmp_path, text, *prices, **options):
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    return read_cluster(file, price_list(prices), **options)


def test_an_aws_file_says_types_limits_and_spot(tmp_path):
    """What the machines hold comes from the table where the file does not say."""
    cluster = read(tmp_path, AWS, boot_s=90)
    (t4,) = cluster.workers
    assert (cluster.name, cluster.max_workers, cluster.idle_timeout_s) == ("lab", 15, 600)
    assert (cluster.upscaling_speed, cluster.boot_s) == (2.0, 90)
    assert (t4.cpus, t4.gpus, t4.device, t4.is_spot) == (4, 1, "T4", True)
    assert (t4.min_workers, t4.max_workers, t4.usd_per_hour) == (1, 15, 0.204)
    assert (cluster.head.cpus, cluster.head.usd_per_hour) == (0, 0.096)


def test_the_head_type_makes_no_workers_unless_told(tmp_path):
    """As Ray does since 1.3, `max_workers` of the head's type is 0 where nobody says."""
    assert [kind.name for kind in read(tmp_path, AWS).workers] == ["t4"]
    told = AWS.replace("resources: {CPU: 0}", "resources: {CPU: 2}\n    max_workers: 2")
    assert [kind.name for kind in read(tmp_path, told).workers] == ["head", "t4"]


def test_a_google_file_says_the_same_in_its_own_words(tmp_path):
    """GPUs are attached and paid apart: two T4 and four cores, preemptible: 0.0522 + 2 x 0.175."""
    (t4,) = read(tmp_path, GCP).workers
    assert (t4.cpus, t4.gpus, t4.device, t4.is_spot) == (4, 2, "T4", True)
    assert t4.usd_per_hour == pytest.approx(0.4022)


def test_machines_of_ones_own_are_always_there(tmp_path):
    """`provider: local`: as many workers as hosts, no price, the GPU as Ray names it."""
    cluster = read(tmp_path, LOCAL)
    (own,) = cluster.workers
    assert (own.min_workers, own.max_workers, own.gpus, own.device) == (3, 3, 2, "A100")
    assert own.usd_per_hour is None


def test_prices_of_ones_own_go_before_the_table(tmp_path):
    """By node type or by machine."""
    assert read(tmp_path, AWS, "t4=0.5").workers[0].usd_per_hour == 0.5
    assert read(tmp_path, AWS, "g4dn.xlarge=0.4").workers[0].usd_per_hour == 0.4


@pytest.mark.parametrize("price", ["t4=cheap", "=3", "t4=-1", "t4=nan", "t4=inf"])
def test_a_wrong_price_is_refused(price):
    """What cannot be dollars an hour says so, with the way to write it."""
    with pytest.raises(StudyError, match=r"not a price in dollars an hour\. Write NAME=USD"):
        price_list([price])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cluster_name: x", "available_node_types: missing"),
        (AWS.replace("head_node_type: head", "head_node_type: haed"), "Did you mean 'head'"),
        (AWS.replace("max_workers: 15", "max_workers: many"), "max_workers = 'many'"),
        (AWS.replace("g4dn.xlarge", "g4dn.xlrage"), r"type 'g4dn.xlrage'\? Did you mean 'g4dn.xl"),
    ],
)
def test_wrong_files_say_file_key_and_way_out(tmp_path, text, told):
    """One error, in words, for each way to get it wrong."""
    with pytest.raises(StudyError, match=told) as error:
        read(tmp_path, text)
    assert "cluster.yaml" in str(error.value)


def test_made_up_nodes_have_four_cores_beside_a_gpu():
    """`--nodes 15 --gpus-per-node 2 --price 0.5` needs nothing more."""
    cluster = imagined_cluster(15, gpus=2, device="T4", prices=price_list(["0.5"]))
    (worker,) = cluster.workers
    assert worker == NodeType(
        name="worker", cpus=8, gpus=2, device="T4", max_workers=15, usd_per_hour=0.5
    )
    assert (cluster.head.cpus, cluster.head.usd_per_hour) == (0, 0)
