"""Faults of a `cluster.yaml` that Ray itself lets through, each with where and how to mend it.

Ray accepts a file without ssh user, region or machine image and with typos inside `node_config`,
and fails minutes later, or waits in silence for workers that no cloud will ever start. It also
starts a cluster without a secret: whoever reaches its ports runs code there.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from sweep.complaints import closest, shown

Config = Mapping[str, Any]

_TOP = (
    *("cluster_name", "max_workers", "min_workers", "upscaling_speed", "idle_timeout_minutes"),
    *("provider", "auth", "available_node_types", "head_node_type", "docker", "file_mounts"),
    *("cluster_synced_files", "file_mounts_sync_continuously", "rsync_exclude", "rsync_filter"),
    *("initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands"),
    *("head_start_ray_commands", "worker_start_ray_commands", "no_restart", "metadata"),
)
_AUTH = (
    *("ssh_user", "ssh_private_key", "ssh_public_key", "ssh_proxy_command"),
    "ssh_proxy_use_node_id",
)
_NODE_TYPE = (
    *("min_workers", "max_workers", "resources", "node_config", "docker", "labels", "priority"),
    *("idle_timeout_s", "initialization_commands", "worker_setup_commands"),
)
_PROVIDERS: Mapping[str, tuple[str, ...]] = {  # what each cannot do without
    "aws": ("region",),
    "gcp": ("region", "availability_zone", "project_id"),
    "local": ("head_ip", "worker_ips"),
    "azure": ("location", "resource_group"),
}
_EC2 = (  # parameters of EC2's RunInstances, and those that Ray turns into some
    *("AdditionalInfo", "BlockDeviceMappings", "CapacityReservationSpecification"),
    *("CpuOptions", "CreditSpecification", "DisableApiStop", "DisableApiTermination"),
    *("EbsOptimized", "EnclaveOptions", "HibernationOptions", "IamInstanceProfile", "ImageId"),
    *("InstanceInitiatedShutdownBehavior", "InstanceMarketOptions", "InstanceType", "KeyName"),
    *("KernelId", "LaunchTemplate", "LicenseSpecifications", "MaintenanceOptions"),
    *("MetadataOptions", "Monitoring", "NetworkInterfaces", "NetworkPerformanceOptions"),
    *("Placement", "PrivateDnsNameOptions", "PrivateIpAddress", "RamdiskId"),
    *("SecurityGroupIds", "SecurityGroups", "SubnetId", "SubnetIds", "TagSpecifications"),
    "UserData",
)
_IMAGE = re.compile(r"ami-(?:[0-9a-f]{8}|[0-9a-f]{17})|resolve:ssm:/?[\w./-]+")
_GPUS_OF = re.compile(r"(?:g[3-9]\w*|p[2-9]\w*)\..+")  # EC2's families with NVIDIA cards
_OPEN = re.compile(r"--(?:dashboard-)?host[= ]+(?:0\.0\.0\.0|::|\*)")
_PLACEHOLDER = "REPLACE-ME"
_MARKETS = ("spot", "capacity-block")
_SSH = 22


class ClusterFileError(Exception):
    """A cluster file cannot be read: says which, where and why."""


def read_cluster(path: Path) -> dict[str, Any]:
    """Read a cluster file; a key that stands twice is an error, as YAML would drop the first.

    Raises:
        ClusterFileError: it is missing, no YAML, or no mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Strict)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise ClusterFileError(f"{path}: {error.strerror}. Name a cluster file.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error)
        raise ClusterFileError(f"{path}{line}: {what}") from error
    if not isinstance(content, dict):
        raise ClusterFileError(f"{path}: no mapping of keys to values. See cluster.yaml.")
    return content


def cluster_faults(config: Config, root: Path | None = None) -> list[str]:
    """Find what is wrong with a cluster file; empty when nothing is.

    Args:
        config: As `read_cluster` gives it.
        root: Folder where `ray up` will be called, to look for the files of `file_mounts`; None
            leaves them alone.
    """
    found = [*_unknown("", config, _TOP), *_placeholders("", config)]
    for check in (_provider, _auth, _nodes, _secret, _ports, _commands):
        found += check(config)
    if root is not None:
        found += _mounts(config, root)
    return found


def _provider(config: Config) -> Iterator[str]:
    provider = _section(config, "provider")
    kind = str(provider.get("type"))
    if kind not in _PROVIDERS:
        yield f"provider.type = {shown(kind)}: unknown.{closest(kind, _PROVIDERS)}"
        return
    for key in _PROVIDERS[kind]:
        if not provider.get(key):
            yield f"provider.{key}: missing. Ray does not ask for it, but {kind} needs it."


def _auth(config: Config) -> Iterator[str]:
    auth = _section(config, "auth")
    yield from _unknown("auth.", auth, _AUTH)
    if not auth.get("ssh_user"):
        yield "auth.ssh_user: missing. Write the user that the machines' image has, e.g. ubuntu."
    is_local = _section(config, "provider").get("type") == "local"
    if is_local and not auth.get("ssh_private_key"):
        yield "auth.ssh_private_key: missing. Name the key that opens your machines."


def _nodes(config: Config) -> Iterator[str]:
    kind = _section(config, "provider").get("type")
    types = _section(config, "available_node_types")
    if kind == "local":
        if types:
            yield "available_node_types: not for machines of your own; worker_ips names them."
        return
    head = config.get("head_node_type")
    if head not in types:
        yield f"head_node_type = {shown(head)}: no such node type.{closest(str(head), types)}"
    for name, node in types.items():
        where = f"available_node_types.{name}"
        if not isinstance(node, Mapping):
            yield f"{where}: holds nothing. Write resources and node_config."
            continue
        yield from _unknown(f"{where}.", node, _NODE_TYPE)
        yield from _sizes(where, node, config)
        if kind == "aws":
            yield from _ec2(where, node)


def _sizes(where: str, node: Config, config: Config) -> Iterator[str]:
    least, most = node.get("min_workers", 0), node.get("max_workers", config.get("max_workers", 0))
    if least > most:
        yield f"{where}: min_workers = {least} is more than max_workers = {most}."
    total = config.get("max_workers", 0)
    if most > total:
        yield f"{where}.max_workers = {most}: the cluster's own max_workers = {total} bounds it."
    for name, amount in _section(node, "resources").items():
        if not isinstance(amount, int) or amount < 0:
            yield f"{where}.resources.{name} = {shown(amount)}: a node has whole ones, at least 0."


def _ec2(where: str, node: Config) -> Iterator[str]:
    machine = _section(node, "node_config")
    where_machine = f"{where}.node_config"
    yield from _unknown(f"{where_machine}.", machine, _EC2)
    kind, image = machine.get("InstanceType"), machine.get("ImageId")
    if not kind:
        yield f"{where_machine}.InstanceType: missing, e.g. g4dn.xlarge."
    elif _GPUS_OF.fullmatch(kind) and not _section(node, "resources").get("GPU"):
        yield f"{where}.resources.GPU: missing, but {kind} has some: no trial would be put there."
    if "LaunchTemplate" not in machine:
        if not image:
            yield f"{where_machine}.ImageId: missing. Ray's own default is an Ubuntu of 2018."
        elif _PLACEHOLDER not in image and not _IMAGE.fullmatch(image):
            yield f"{where_machine}.ImageId = {shown(image)}: not like ami-0123456789abcdef0."
    market = machine.get("InstanceMarketOptions", {"MarketType": "spot"})
    if not isinstance(market, Mapping) or market.get("MarketType") not in _MARKETS:
        at = f"{where_machine}.InstanceMarketOptions"
        yield f"{at} = {shown(market)}: write {{MarketType: spot}}."


def _secret(config: Config) -> Iterator[str]:
    """Whether every node asks for a token, and has one."""
    mounts = [str(path) for path in _section(config, "file_mounts")]
    said = " ".join(_words(config, "setup_commands", "head_start_ray_commands"))
    if "RAY_AUTH_MODE=token" not in said:
        yield (
            "setup_commands: nothing sets RAY_AUTH_MODE=token, so that whoever reaches a port of "
            "the cluster runs code on it. Export it in ~/.bashrc."
        )
    if not any(path.endswith(".ray/auth_token") for path in mounts):
        yield (
            "file_mounts: no ~/.ray/auth_token. Make one (ray get-auth-token --generate) and mount "
            "it on every node."
        )


def _ports(config: Config) -> Iterator[str]:
    for key in ("setup_commands", "head_start_ray_commands", "worker_start_ray_commands"):
        for index, command in enumerate(_words(config, key)):
            if _OPEN.search(command):
                yield f"{key}[{index}]: listens on every address. Write 127.0.0.1."
    group = _section(_section(config, "provider"), "security_group")
    for rule in group.get("IpPermissions", ()):
        world = [r for r in rule.get("IpRanges", ()) if r.get("CidrIp") == "0.0.0.0/0"]
        if world and (rule.get("FromPort"), rule.get("ToPort")) != (_SSH, _SSH):
            ports = f"{rule.get('FromPort')}-{rule.get('ToPort')}"
            yield f"provider.security_group: ports {ports} are open to the world. Only ssh may be."


def _commands(config: Config) -> Iterator[str]:
    head = " ".join(_words(config, "head_start_ray_commands"))
    worker = " ".join(_words(config, "worker_start_ray_commands"))
    if not re.search(r"ray start\b.*--head\b", head):
        yield "head_start_ray_commands: no `ray start --head`."
    elif "--autoscaling-config" not in head:
        yield "head_start_ray_commands: without --autoscaling-config no worker is ever started."
    if "$RAY_HEAD_IP" not in worker:
        yield "worker_start_ray_commands: no `ray start --address=$RAY_HEAD_IP:6379`."


def _mounts(config: Config, root: Path) -> Iterator[str]:
    for remote, local in _section(config, "file_mounts").items():
        if not (root / Path(str(local)).expanduser()).exists():
            yield f"file_mounts.{remote} = {shown(local)}: no such file or folder here."


def _unknown(prefix: str, section: Config, known: tuple[str, ...]) -> Iterator[str]:
    for key in section:
        if key not in known:
            yield f"{prefix}{key}: unknown key.{closest(str(key), known)}"


def _placeholders(where: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _placeholders(f"{where}.{key}" if where else str(key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _placeholders(f"{where}[{index}]", inner)
    elif isinstance(value, str) and _PLACEHOLDER in value:
        yield f"{where} = {shown(value)}: put your own there; the comment beside it says how."


def _section(config: Config, key: str) -> Config:
    inner = config.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _words(config: Config, *keys: str) -> list[str]:
    return [str(command) for key in keys for command in config.get(key) or ()]


class _Strict(yaml.SafeLoader):  # type: ignore[misc] # yaml ships no types
    """Refuses a key that stands twice in one mapping."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"{key}: stands twice. Keep one.", problem_mark=key_node.start_mark
            )
        seen.add(key)
    made: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    return made


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
