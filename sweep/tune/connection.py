"""Join a Ray cluster, or start a Ray of our own on loopback."""

import importlib.util
import logging
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import ray
from ray._private import ray_constants
from ray._private import services as ray_services
from ray._private import worker as ray_worker
from ray.exceptions import AuthenticationError, RayError

from sweep.commit import CODE_VARIABLE, code_version
from sweep.executor import ClusterError, environment, thread_limits
from sweep.tune.mending import replaced

_log = logging.getLogger(__name__)

TUNE_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",  # with verbose=0: Tune prints nothing
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # paths mean the same in the worker as here
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_agent_register_timeout_ms": "120000",  # a busy machine's agents start late; 20 s end all
    # So do workers; after 60 s Ray would kill them half started, and start others, without end.
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a trial without GPU share keeps the variables
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # half the driver's time per trial
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # ours also hears SIGTERM
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # else a result without metric ends the sweep
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # no snapshots of a state that nobody reads
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # the watch tells of failures
}


class Slots(Protocol):
    """Where trials run, and how many at a time.

    Attributes:
        workers: Most trials at a time.
        threads: CPU threads of each.
        cpus: CPU share of each.
        address: Ray cluster to join; None for a Ray of our own.
    """

    workers: int
    threads: int
    cpus: float
    address: str | None


@contextmanager
def connected(slots: Slots) -> Iterator[None]:
    """Join or start a Ray for these slots, unless this process already has one.

    A Ray of our own listens on loopback only and ends with the block. A cluster that is joined is
    given this code, so that no worker runs another version.

    Raises:
        ClusterError: the cluster cannot be joined.
    """
    if ray.is_initialized():
        yield
        return
    limits = thread_limits(slots.threads) | {"RAY_CHDIR_TO_TRIAL_DIR": "0"}
    common: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": {"env_vars": limits},
    }
    with ExitStack() as patches:
        patches.enter_context(environment(TUNE_ENVIRONMENT))
        # The raylet's remarks go to our standard output otherwise; outcomes say as much.
        patches.enter_context(replaced(ray_worker, "print_to_stdstream", lambda *_, **__: None))
        if slots.address:
            common["runtime_env"] |= {"py_modules": _our_code()}
            limits[CODE_VARIABLE] = code_version()
            _join(slots.address, common)
        else:
            # Loopback only, which Ray does by itself on other systems than Linux.
            patches.enter_context(replaced(ray_constants, "ENABLE_RAY_CLUSTER", False))  # noqa: FBT003 - a value
            # A signal to our process group is for us: Ray would end at once, and trials with it.
            alone = partial(ray_services.ConsolePopen, start_new_session=True)
            patches.enter_context(replaced(ray_services, "ConsolePopen", alone))
            _start(
                address="local",  # and not one that somebody has started on this machine
                num_cpus=math.ceil(slots.workers * slots.cpus),
                include_dashboard=False,
                object_store_memory=100 * 2**20,  # it carries jobs and outcomes only
                **common,
            )
        session = Path(ray_worker.global_worker.node.get_session_dir_path())
        try:
            yield
        finally:
            ray.shutdown()
            if not slots.address:  # Tune's folder for each trial; the logs stay
                shutil.rmtree(session / "artifacts", ignore_errors=True)


def _our_code() -> list[str]:
    """Folders of our packages, which Ray carries to each node once."""
    found = (importlib.util.find_spec(name) for name in ("sweep", "trainables", "analysis"))
    return [str(Path(spec.origin).parent) for spec in found if spec and spec.origin]


def _start(**settings: Any) -> None:  # noqa: ANN401 - ray's own
    """Start a Ray of our own; on a busy machine it may give up on itself once."""
    try:
        ray.init(**settings)
    except Exception as first:  # noqa: BLE001 - Ray raises a bare Exception for this
        _log.warning("Ray did not start (%s); trying once more", first)
        ray.shutdown()
        try:
            ray.init(**settings)
        except Exception as error:
            ray.shutdown()
            reason = " ".join(str(error).split())[:300]
            raise ClusterError(
                f"Ray does not start on this machine: {reason} It may be too busy: try again. "
                "--executor local needs no Ray; `sweep doctor` looks closer."
            ) from error


def _join(address: str, settings: Mapping[str, Any]) -> None:
    try:
        ray.init(address=address, **settings)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise ClusterError(_why_not_joined(address, error)) from error


def _why_not_joined(address: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    where = f"RAY_ADDRESS = {address}"
    if "ersion mismatch" in text:
        return f"{where}: {text} Make both environments by the same constraints.txt."
    if isinstance(error, AuthenticationError) or "oken" in text:
        return (
            f"{where}: the cluster asks for its token ({text[:200]}). Set RAY_AUTH_MODE=token, and "
            "put the token into ~/.ray/auth_token."
        )
    return (
        f"{where}: no Ray cluster answers there ({text[:200]}). Start one (ray up cluster.yaml), "
        "or unset RAY_ADDRESS to run on this machine."
    )
