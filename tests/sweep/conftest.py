"""Lets tests of this folder import `store_samples` beside them, and an S3 server on loopback."""

import os
import sys
import uuid
from pathlib import Path

import pyarrow.fs as pafs
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def quick_disk(monkeypatch):
    """Files are not flushed to the platter: only a power cut would tell, and no test makes one."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def bucket(monkeypatch):
    """URI of an empty bucket; AWS_ENDPOINT_URL names the server, as a user would."""
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    name = f"b{uuid.uuid4().hex[:8]}"
    admin = pafs.S3FileSystem(
        endpoint_override=f"{host}:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    admin.create_dir(name)
    yield f"s3://{name}/results"
    server.stop()
