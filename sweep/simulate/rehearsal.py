"""A study and a cluster go in; makespan, GPU-hours, dollars and interruptions come out.

Several rehearsals are run, each with durations, spot interruptions and one speed of the whole study
drawn anew; their spread is the interval.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sweep.clusterfile import Cluster, NodeType
from sweep.complaints import StudyError
from sweep.grid import PlannedTrial
from sweep.plan import Plan
from sweep.pricing.devices import CPU, Device, device, known
from sweep.pricing.speeds import Forecast, Interval, Speeds
from sweep.schedule import FixedSchedule, Schedule
from sweep.simulate.executor import Account, Curves, Delays, SimulatedExecutor
from sweep.worker import Outcome
from trainables.spec import CurvePoint, Job, Request, Workspace

_FEW, _MANY = 1_000, 10_000
_QUANTILES = (5.0, 95.0)
_SIGMAS = 3.29  # a 90 % interval of a normal distribution is so many standard deviations wide

_NOWHERE = Workspace(checkpoints="", cache="")

MakeSchedule = Callable[[], Schedule]
"""A fresh schedule of what is to be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a study would be run.

    Attributes:
        cluster: Where.
        cpus: Cores of a trial.
        gpus: GPU share of a trial.
        workers: Most trials at a time; None for all that the cluster holds.
        mtbf_s: Mean life of a spot node; infinite where none is taken back.
        delays: What is nobody's work.
        repeats: Rehearsals; None for as many as are quick.
        seed: Of the first; the others follow.
        note: What had to be assumed of it, in words.
    """

    cluster: Cluster
    cpus: float
    gpus: float
    workers: int | None = None
    mtbf_s: float = math.inf
    delays: Delays = field(default_factory=Delays)
    repeats: int | None = None
    seed: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """What the rehearsals of a study say.

    Attributes:
        study: Its name.
        setting: How it was run.
        trials: Jobs that the plan knew of.
        ended: Jobs that came to an end, on average: with adaptive seeds, more than the plan says.
        pruned: Of these, stopped early.
        slots: Trials that run at a time when every node is up.
        forecast: Seconds of the trials, one after the other.
        repeats: Rehearsals behind the intervals.
        makespan_s: From the start to the end of the last trial.
        busy_hours: Hours of trials, lost work included, times their share of a GPU (or cores).
        billed_hours: Hours of GPUs (or cores) on the bill, idle ones included.
        usd: The bill; None when a price is missing.
        utilisation: Share of the slots' time in which trials ran.
        interruptions: Nodes that were taken back, on average.
        hit: Trials that were interrupted by that, on average.
        lost_hours: Work that was done twice, in the unit of `busy_hours`.
        failed: Trials given up, on average.
        most_nodes: Most worker nodes at once.
        first: The account of the first rehearsal.
    """

    study: str
    setting: Setting
    trials: int
    ended: float
    pruned: float
    slots: int
    forecast: Forecast
    repeats: int
    makespan_s: Interval
    busy_hours: Interval
    billed_hours: Interval
    usd: Interval | None
    utilisation: float
    interruptions: float
    hit: float
    lost_hours: float
    failed: float
    most_nodes: int
    first: Account

    @property
    def unit(self) -> str:
        """What hours are hours of."""
        return "GPU" if self.setting.gpus else "core"


class Silent:
    """A watch that hears nothing."""

    def started(self, job: Job) -> None:
        """Nothing."""

    def epoch(self, job: Job, point: CurvePoint) -> None:
        """Nothing."""

    def finished(self, job: Job, outcome: Outcome, *, retried: bool) -> None:
        """Nothing."""


def rehearse(
    plan: Plan,
    speeds: Speeds,
    setting: Setting,
    *,
    make_schedule: MakeSchedule | None = None,
    curves: Curves | None = None,
    keeps_spans: bool = False,
) -> Rehearsed:
    """Rehearse what is left of a study.

    Args:
        plan: The study against what is known.
        speeds: How long its trials take.
        setting: Where and how it would be run.
        make_schedule: The scheduler to rehearse, anew each time; None for the plan's jobs in order.
        curves: Dev curves, for a scheduler that prunes.
        keeps_spans: Keep every attempt of the first rehearsal, for a timeline.

    Raises:
        StudyError: a trial fits on no node, or nobody knows how fast a node's GPU is.
    """
    left = [(one, one.request) for one in plan.left if one.request is not None]
    measured = {one.trial.trial_id for one, _ in left if one.work == "measure"}
    devices = _devices(setting)
    share = setting.gpus or float(max(1, int(setting.cpus)))
    main = devices[_main_type(setting).name]
    asked = ((one.trial.spec, request, one.work == "train") for one, request in left)
    forecast = speeds.forecast(asked, main, share)

    def expected(job: Job, node: NodeType) -> float:
        return speeds.seconds(
            job.spec,
            job.request,
            trains=job.trial_id not in measured,
            device=devices[node.name],
            share=share,
        )

    def in_order() -> Schedule:
        return FixedSchedule(job_for(one.trial, request, plan) for one, request in left)

    repeats = setting.repeats or (20 if len(left) <= _FEW else 5 if len(left) <= _MANY else 1)
    random = np.random.default_rng(setting.seed)
    ran = []
    for repeat in range(repeats):
        factor = _factor(forecast, random) if repeats > 1 else 1.0
        executor = SimulatedExecutor(
            setting.cluster,
            lambda job, node, factor=factor: factor * expected(job, node),  # type: ignore[misc] # the default binds the factor
            cpus=setting.cpus,
            gpus=setting.gpus,
            workers=setting.workers,
            noise=forecast.noise,
            mtbf_s=setting.mtbf_s,
            delays=setting.delays,
            curves=curves,
            seed=setting.seed + repeat,
            keeps_spans=keeps_spans and not repeat,
        )
        schedule = (make_schedule or in_order)()
        account = executor.run(schedule, Silent())
        ran.append(_Counted(account, len(getattr(schedule, "lost", ())), setting))
    return _summary(plan, setting, forecast, ran)


class _Counted:
    """One rehearsal in the units of the summary."""

    def __init__(self, account: Account, failed: int, setting: Setting) -> None:
        self.account = account
        self.failed = failed
        # Nodes that came on demand go when they have idled; those that always stay are given back.
        end, tail = account.makespan_s, setting.cluster.idle_timeout_s
        per_slot = (setting.gpus or setting.cpus) / 3600
        nodes = account.fleet.nodes
        self.busy_hours = account.busy_s * per_slot
        self.lost_hours = account.lost_s * per_slot
        billed = [
            node.billed_s(end + (0.0 if node.type is setting.cluster.head else tail)) / 3600
            for node in nodes
        ]
        size = [node.type.gpus if setting.gpus else node.type.cpus for node in nodes]
        self.billed_hours = sum(hours * n for hours, n in zip(billed, size, strict=True))
        prices = [node.type.usd_per_hour for node in nodes]
        self.usd = (
            None
            if None in prices
            else sum(hours * (price or 0.0) for hours, price in zip(billed, prices, strict=True))
        )
        open_s = sum(node.open_s(end) for node in nodes)
        self.utilisation = account.busy_s / open_s if open_s else 0.0


def _summary(
    plan: Plan, setting: Setting, forecast: Forecast, ran: Sequence[_Counted]
) -> Rehearsed:
    usd = [one.usd for one in ran if one.usd is not None]
    first = ran[0].account

    def over(values: Sequence[float]) -> Interval:
        return _interval(values, forecast)

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    return Rehearsed(
        study=plan.study,
        setting=setting,
        trials=len(plan.left),
        ended=mean([one.account.ended for one in ran]),
        pruned=mean([one.account.pruned for one in ran]),
        slots=first.fleet.capacity,
        forecast=forecast,
        repeats=len(ran),
        makespan_s=over([one.account.makespan_s for one in ran]),
        busy_hours=over([one.busy_hours for one in ran]),
        billed_hours=over([one.billed_hours for one in ran]),
        usd=over(usd) if len(usd) == len(ran) else None,
        utilisation=mean([one.utilisation for one in ran]),
        interruptions=mean([one.account.interruptions for one in ran]),
        hit=mean([one.account.hit for one in ran]),
        lost_hours=mean([one.lost_hours for one in ran]),
        failed=mean([one.failed for one in ran]),
        most_nodes=max(one.account.fleet.most_workers for one in ran),
        first=first,
    )


def _interval(values: Sequence[float], forecast: Forecast) -> Interval:
    """Mean and spread of the rehearsals; of a single one, as wide as the forecast is."""
    middle = float(np.median(values))
    if len(values) == 1:
        total = forecast.total
        low, high = (total.low / total.mean, total.high / total.mean) if total.mean else (1.0, 1.0)
        return Interval(mean=middle, low=middle * low, high=middle * high)
    low, high = (float(value) for value in np.percentile(values, _QUANTILES))
    return Interval(mean=middle, low=low, high=high)


def _factor(forecast: Forecast, random: np.random.Generator) -> float:
    """One draw of how much slower the whole study is than expected, log-normal."""
    total = forecast.total
    if total.low <= 0:
        return 1.0
    spread = math.log(total.high / total.low) / _SIGMAS
    middle = math.sqrt(total.high * total.low) / total.mean
    return middle * math.exp(spread * random.standard_normal())


def _main_type(setting: Setting) -> NodeType:
    """The kind of node on which most trials run."""
    holds = [
        (kind.slots(setting.cpus, setting.gpus) * kind.max_workers, kind)
        for kind in (*setting.cluster.workers, setting.cluster.head)
    ]
    return max(holds, key=lambda pair: pair[0])[1]


def _devices(setting: Setting) -> Mapping[str, Device]:
    """What a trial computes on, on each kind of node.

    Raises:
        StudyError: a GPU is not in the table.
    """
    found = {}
    for kind in setting.cluster.types:
        name = kind.device if setting.gpus and kind.gpus else CPU
        if name not in known():
            raise StudyError(
                f"cluster '{setting.cluster.name}': node type '{kind.name}': nobody has said how "
                f"fast a '{name}' is. Write resources: {{\"accelerator_type:T4\": 1}} beside GPU, "
                f"or another of {', '.join(k for k in known() if k != CPU)}."
            )
        found[kind.name] = device(name)
    return found


def job_for(trial: PlannedTrial, request: Request, plan: Plan) -> Job:
    """A job as `sweep.jobs` would make it, less where it works."""
    return Job(
        job_id=trial.trial_id,
        trial_id=trial.trial_id,
        study=plan.study,
        spec=trial.spec,
        request=request,
        workspace=_NOWHERE,
        store=plan.store,
        phase=trial.phase,
    )
