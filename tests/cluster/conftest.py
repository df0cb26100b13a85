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
    return [*command, "sh", "-c", 'ip link set lo up && exec "$@"', "apart"]
