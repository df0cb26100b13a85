"""Namespaces for tests that would meet other Rays, addresses or daemons of the machine."""

import os
import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def apart() -> list[str]:
    """The words before a command that give it a network, processes and mounts of its own."""
    command = ["unshare", "--net", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs root, unshare and ip (Debian: util-linux, iproute2)")
    tried = subprocess.run(
        [*command, "ip", "link", "set", "lo", "up"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no namespaces here: {tried.stderr.decode().strip()}")
    own = "mkdir -p /tmp/ray && mount -t tmpfs own /tmp/ray && mount -t tmpfs own /dev/shm"
    return [*command, "sh", "-c", f'ip link set lo up && {own} && exec "$@"', "apart"]


@pytest.fixture
def ec2(monkeypatch):
    """A client of an Amazon on loopback, which AWS_ENDPOINT_URL names as for a user."""
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    import boto3

    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    yield boto3.client("ec2", region_name="us-west-2")
    server.stop()
