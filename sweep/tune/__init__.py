"""Run trials on Ray Tune, on this machine or a cluster; the only package that imports ray.

connection --a Ray of our own, or a cluster--> executor --one `Tuner.fit`--> Tune
schedule --jobs--> trials --Tune's trials--> `sweep.actor` on nodes, which commits its rows
mending: what Tune and Ray do wrong, put right for as long as a sweep lasts
"""

from sweep.tune.connection import connected
from sweep.tune.executor import TuneExecutor, try_ray

__all__ = ["TuneExecutor", "connected", "try_ray"]
