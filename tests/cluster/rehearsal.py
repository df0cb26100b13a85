"""A real `ray up`, study and `ray down` on two hosts: network namespaces with an sshd each.

Run by `test_ray_up.py` in namespaces of its own (network, processes, mounts), so that addresses,
`ray stop` and what is mounted concern nothing else on the machine, and all ends with this process.
Prints one JSON object: what was seen.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from cluster_file import variant

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
HOSTS = {"head": "10.77.0.2", "worker": "10.77.0.3"}

# Every host sees the machine's own files, but for its home, Ray's folder, and shared memory.
HOST = """
set -e
mount --make-rprivate /
hostname {name}
mount --bind {home}.passwd /etc/passwd
mount --bind {home}/ray /tmp/ray
mount -t tmpfs tmpfs /dev/shm
exec /usr/sbin/sshd -D -e -f /dev/null -o ListenAddress={address} -o HostKey={home}/hostkey \
  -o PidFile=none -o UsePAM=no -o PermitRootLogin=yes -o PasswordAuthentication=no \
  -o StrictModes=no -o AuthorizedKeysFile={home}/authorized_keys
"""

# A raylet that is told its agents' ports does not give up when they are slow to say them.
PORTS = (
    "--dashboard-agent-grpc-port=52366 --dashboard-agent-listen-port=52365 "
    "--runtime-env-agent-port=52367 --metrics-export-port=52368"
)

COUNT = """
import os, sqlite3
database = sqlite3.connect(os.path.expanduser("~/mlflow/mlflow.db"))
query = "select count(*) from tags where key = 'xling.trial_id'"
print("RUNS", database.execute(query).fetchone()[0])
"""


class Rehearsal:
    """Two hosts, a laptop beside them, and a folder that all of them see.

    Args:
        folder: Holds `study.toml` and what it names; everything made here goes below it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.laptop = folder / "laptop"
        self.file = folder / "cluster.yaml"
        self.name = f"rehearsal-{uuid.uuid4().hex[:8]}"
        self.children: list[subprocess.Popen[bytes]] = []
        self.seen: dict[str, object] = {"seconds": {}}

    @property
    def environment(self) -> dict[str, str]:
        """What the laptop's shell exports."""
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
        return kept | {
            "HOME": str(self.laptop),
            "PATH": f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.laptop),
            "TERM": "dumb",
            "USER": "root",
            "RAY_UP_enable_autoscaler_v2": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
        }

    def call(self, *command: str, name: str = "", check: bool = True) -> str:
        """Run a command on the laptop; its output, both streams."""
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        (self.folder / f"{name or command[0]}.log").write_text(done.stdout)
        if name:
            self.seen["seconds"][name] = round(time.monotonic() - began, 1)
        if check and done.returncode:
            tail = done.stdout[-6000:]
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{tail}")
        return done.stdout

    def network(self) -> None:
        """A bridge, and on it the laptop."""
        self.call("ip", "link", "set", "lo", "up")
        self.call("ip", "link", "add", "br0", "type", "bridge")
        self.call("ip", "addr", "add", "10.77.0.1/24", "dev", "br0")
        self.call("ip", "link", "set", "br0", "up")

    def host(self, name: str, address: str) -> None:
        """A machine with its own processes, addresses and home that answers to ssh."""
        home = self.folder / name
        for folder in (home, home / "ray"):
            folder.mkdir()
        self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / "hostkey"))
        (home / "authorized_keys").write_text((self.laptop / "key.pub").read_text())
        passwd = Path("/etc/passwd").read_text()
        mine = re.sub(r"(?m)^root:.*$", f"root:x:0:0:root:{home}:/bin/bash", passwd)
        Path(f"{home}.passwd").write_text(mine)
        self.call("ip", "netns", "add", name)
        self.call(
            *("ip", "link", "add", f"to-{name}", "type", "veth"),
            *("peer", "name", "eth0", "netns", name),
        )
        self.call("ip", "link", "set", f"to-{name}", "master", "br0", "up")
        inside = ("ip", "netns", "exec", name)
        self.call(*inside, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        self.call(*inside, "ip", "link", "set", "eth0", "up")
        self.call(*inside, "ip", "link", "set", "lo", "up")
        script = HOST.format(name=name, home=home, address=address)
        apart = ("unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")
        with (self.folder / f"sshd-{name}.log").open("wb") as log:
            child = subprocess.Popen(
                [*inside, *apart, "bash", "-c", script], stdout=log, stderr=log
            )
        self.children.append(child)
        until(lambda: answers(address, 22), f"sshd of {name}")

    def cluster_file(self) -> None:
        """The block for machines of one's own, with this rehearsal's names and no internet."""
        config = yaml.safe_load(variant("on premise"))
        config["cluster_name"] = self.name
        config["provider"] |= {"head_ip": HOSTS["head"], "worker_ips": [HOSTS["worker"]]}
        config["auth"] = {"ssh_user": "root", "ssh_private_key": str(self.laptop / "key")}
        config["min_workers"] = config["max_workers"] = 1
        # In place of installing from the internet: the environment of this process.
        export = next(text for text in config["setup_commands"] if "export PATH" in text)
        here = export.replace("PATH=~/env/bin:", f"PYTHONPATH=~/xling-sweep PATH={BIN}:")
        config["setup_commands"] = [here]
        for host, address in HOSTS.items():
            key = f"{host}_start_ray_commands"
            more = f"ray start --node-ip-address={address} --num-cpus=2 {PORTS}"
            config[key] = [text.replace("ray start", more) for text in config[key]]
        self.file.write_text(yaml.safe_dump(config, sort_keys=False))

    def on_head(self, command: str, name: str, *, check: bool = True) -> str:
        """Run a command on the head, through Ray."""
        return self.call("ray", "exec", str(self.file), command, name=name, check=check)

    def on_host(self, host: str, command: str) -> str:
        """Run a command on a host, through ssh."""
        options = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
        key = str(self.laptop / "key")
        return self.call("ssh", "-q", "-i", key, *options, f"root@{HOSTS[host]}", command)

    def raylets(self, host: str) -> str:
        """Raylets that run on a host, one a line."""
        return self.on_host(host, "pgrep -x raylet || true")

    def perform(self) -> None:
        """All of it, in order."""
        self.laptop.mkdir()
        (self.laptop / "ray").mkdir()
        for command in (
            ("mount", "-t", "tmpfs", "tmpfs", "/run"),
            ("mkdir", "-p", "/run/sshd", "/tmp/ray"),  # noqa: S108 - Ray's own folder
            ("mount", "--bind", str(self.laptop / "ray"), "/tmp/ray"),  # noqa: S108 - the same
        ):
            self.call(*command)
        self.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.laptop / "key"))
        self.network()
        for name, address in HOSTS.items():
            self.host(name, address)
        self.call("ray", "get-auth-token", "--generate")
        self.cluster_file()
        self.seen["faults"] = self.call("sweep", "cluster", "check", str(self.file))
        self.up()
        self.study()
        self.doors()
        self.call("ray", "down", "-y", str(self.file), name="down")
        # `ray down` stops the head; a worker of this provider leaves when it misses the head.
        for host in HOSTS:
            until(lambda host=host: not self.raylets(host), f"{host} without Ray")
        self.seen["left behind"] = {host: self.raylets(host) for host in HOSTS}

    def up(self) -> None:
        """`ray up` until both hosts are in: Ray gives a node up that is not there within 30 s."""
        command = ("ray", "up", "-y", "--no-config-cache", str(self.file))
        ask = 'python -c \'import ray; ray.init("auto"); print("NODES", len(ray.nodes()))\''
        for tries_left in (3, 2, 1, 0):
            said = self.call(*command, name="up", check=not tries_left)
            if "Useful commands" not in said:
                continue
            limit_s = 400 if not tries_left else 90
            if until(
                lambda: "NODES 2" in self.on_head(ask, "joined", check=False),
                "both hosts",
                limit_s,
                must=not tries_left,
            ):
                return

    def study(self) -> None:
        """Run the study, then again."""
        health = "curl -sf http://127.0.0.1:5000/health"
        until(lambda: "OK" in self.on_head(health, "health", check=False), "MLflow on the head")
        run = f"RAY_ADDRESS=auto sweep run {self.folder}/study.toml --executor tune --workers 2"
        self.seen["run"] = self.on_head(run, "run")
        self.seen["again"] = self.on_head(run, "again")
        (self.folder / "count.py").write_text(COUNT)
        counted = self.on_head(f"python {self.folder}/count.py", "count")
        self.seen["mlflow runs"] = int(counted.partition("RUNS ")[2].split()[0])

    def doors(self) -> None:
        """What somebody on the same network gets to see, with and without the token."""
        head = HOSTS["head"]
        self.seen["open"] = [p for p in (22, 5000, 6379, 8265) if answers(head, p)]
        status = ("ray", "status", "--address", f"{head}:6379")
        self.seen["with token"] = self.call(*status, name="status", check=False)
        (self.laptop / ".ray" / "auth_token").write_text("0" * 64)
        self.seen["without"] = self.call(*status, name="refused", check=False)

    def close(self) -> None:
        """End what was begun; the namespaces end with this process."""
        for child in self.children:
            child.kill()
            child.wait()


def answers(address: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def until(happened, what: str, limit_s: float = 400, *, must: bool = True) -> bool:
    """Wait for something another process does; whether it did, where it need not."""
    end = time.monotonic() + limit_s
    while not happened():
        if time.monotonic() > end:
            if must:
                raise SystemExit(f"{what}: not within {limit_s:.0f} s")
            return False
        time.sleep(0.2)
    return True


def main() -> None:
    """Perform in the folder that is named."""
    rehearsal = Rehearsal(Path(sys.argv[1]))
    try:
        rehearsal.perform()
    finally:
        rehearsal.close()
    sys.stdout.write(json.dumps(rehearsal.seen))


if __name__ == "__main__":
    main()
