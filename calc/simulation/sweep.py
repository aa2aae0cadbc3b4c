"""Sweeps: every variant of a network, by pruning and precision, trained from several seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy

from calc.core.arguments import as_list, number, one_of, whole_number
from calc.core.errors import InputError, abbreviated, marked
from calc.core.report import values
from calc.core.row_file import Row, RowFile
from calc.core.tasks import Tasks, check_executor
from calc.core.units import QuantityLike, quantity
from calc.simulation.budgets import budget_keys, checked_budget, memory_violations
from calc.simulation.frames import imported
from calc.simulation.low_precision import arithmetic
from calc.simulation.metrics import checked_power, collect_metrics
from calc.simulation.network import NeuralNetwork
from calc.simulation.pruning import KINDS, TWO_OF_FOUR, checked_level, prune
from calc.simulation.samples import Split, checked_split
from calc.simulation.storage import FORMATS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from polars import DataFrame

T = TypeVar("T")

COLUMNS = {
    "seed": int,
    "kind": str,
    "pruning": float,
    "precision": str,
    "accuracy": float,
    "latency_seconds": float,
    "latency_spread_seconds": float,
    **{f"memory_{form}_bytes": int for form in FORMATS},
    "energy_joules": float,
    "energy_model_joules": float,
}


class Variant(NamedTuple):
    """One row's name: the seed of its training, and what was done to the network then."""

    seed: int
    kind: str
    pruning: float
    precision: str


class SweepStoppedError(InputError):
    """A sweep that could not go on; `rows` is the table of what was finished."""

    def __init__(self, sentence: str, rows: DataFrame) -> None:
        super().__init__(sentence)
        self.rows = rows


@dataclass(frozen=True)
class Experiment:
    """A network and its data, how it is trained and pruned, and how its variants are measured.

    Each seed trains the layers of the model anew, in FP32 and on the training half of the data.

    Parameters
    ----------
    power
        power of the device
    latency_multiplier
        how many times as long the device takes
    repeats
        timed passes of each variant
    epochs
        passes over the samples in each training
    alpha
        the length of a step
    batch_size
        samples in a batch of training
    latency_batch
        samples in a timed pass
    storage
        how pruned weights are stored: dense, csr or bitmask
    fine_tuning
        passes over the samples after pruning, in which zeros stay zero
    """

    model: NeuralNetwork
    data: Split | tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
    power: QuantityLike
    latency_multiplier: float = 1.0
    repeats: int = 30
    epochs: int = 40
    alpha: float = 0.2
    batch_size: int = 32
    latency_batch: int = 256
    storage: str = "dense"
    fine_tuning: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.model, NeuralNetwork):
            raise InputError(
                f"a sweep trains and prunes a NeuralNetwork of calc.simulation;"
                f" got {abbreviated(self.model)}"
            )
        sizes = self.model.layer_sizes
        checked: dict[str, object] = {
            "data": checked_split(self.data, sizes[0], sizes[-1]),
            "power": checked_power(self.power),
            "storage": one_of("storage", self.storage, FORMATS),
        }
        for name in ("epochs", "batch_size", "repeats", "latency_batch", "fine_tuning"):
            least = 0 if name == "fine_tuning" else 1
            checked[name] = whole_number(name, getattr(self, name), least)
        for name in ("alpha", "latency_multiplier"):
            checked[name] = number(name, getattr(self, name), above=0.0)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def training_data(self) -> tuple[ArrayLike, ArrayLike]:
        """Samples to learn, and their labels."""
        samples, labels, *_ = self.data
        return samples, labels

    def train(self, seed: int) -> NeuralNetwork:
        """The network, as this seed makes it."""
        trained = NeuralNetwork(self.model.layer_sizes, self.model.activations)
        trained.fit(*self.training_data, self.epochs, self.alpha, self.batch_size, seed)
        return trained

    def row(self, trained: NeuralNetwork, variant: Variant) -> Row:
        """Return the measured row of one variant of a trained network."""
        model = trained
        if variant.kind in KINDS:
            model = prune(model, variant.pruning, variant.kind)
        if self.fine_tuning:
            model = model.with_precision("fp32")  # a copy
            epochs, alpha, batch = self.fine_tuning, self.alpha, self.batch_size
            model.fine_tune(*self.training_data, epochs, alpha, batch, variant.seed)
        metrics = collect_metrics(
            model.with_precision(variant.precision),
            self.data,
            self.power,
            self.latency_multiplier,
            self.repeats,
            self.latency_batch,
            self.storage,
        )
        return {**variant._asdict(), **metrics}

    def settings(self) -> dict[str, object]:
        """Return the settings that two sweeps must share for their rows to belong together."""
        digest = hashlib.sha256()
        for array in map(numpy.asarray, self.data):
            digest.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
        return {
            "layer_sizes": list(self.model.layer_sizes),
            "activations": list(self.model.activations),
            "data": digest.hexdigest(),
            **values(self, "epochs alpha batch_size"),
            "power": quantity(self.power).m_as("W"),
            **values(self, "latency_multiplier repeats latency_batch storage fine_tuning"),
        }


@dataclass(frozen=True)
class Grid:
    """The variants of a network: every pruning at every precision, from every seed.

    Parameters
    ----------
    pruning_levels
        shares of the weights that are pruned; level 0 is of no kind
    precisions
        number formats, of FP32, FP16, BF16 and INT8
    kinds
        kinds of pruning, of unstructured, 2:4 and structured; 2:4 has the level 0.5 alone

    Examples
    --------
    >>> len(Grid([0, 0.5], ["fp32", "int8"], ["unstructured", "structured"]).variants())
    6
    """

    pruning_levels: Sequence[float]
    precisions: Sequence[str]
    kinds: Sequence[str] = ("unstructured",)
    seeds: Sequence[int] = (0,)

    def variants(self) -> list[Variant]:
        """Return all variants of the sweep, in order."""
        seeds = _several("seeds", self.seeds, lambda seed: whole_number("a seed", seed, at_least=0))
        kinds = _several("kinds", self.kinds, lambda kind: one_of("a kind of pruning", kind, KINDS))
        levels = _several("pruning_levels", self.pruning_levels, checked_level)
        precisions = _several("precisions", self.precisions, lambda name: arithmetic(name).name)
        if "2:4" in kinds and TWO_OF_FOUR not in levels:
            raise InputError(
                f"pruning 2:4 has the level {TWO_OF_FOUR:g} alone, which pruning_levels lack;"
                f" got {abbreviated(self.pruning_levels)}"
            )
        prunings = [
            *(("none", level) for level in levels if not level),
            *(
                (kind, level)
                for kind, level in product(kinds, filter(None, levels))
                if kind != "2:4" or level == TWO_OF_FOUR
            ),
        ]
        return [
            Variant(seed, kind, level, precision)
            for seed, (kind, level), precision in product(seeds, prunings, precisions)
        ]


def run_sweep(
    experiment: Experiment,
    grid: Grid,
    budgets: Sequence[QuantityLike],
    active_budget: QuantityLike,
    executor: Executor | None = None,
    *,
    resume: Path | str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> DataFrame:
    """Train the network of an experiment from each seed, and measure every variant: a row for each.

    After the training come pruning, fine-tuning of all variants alike, and rounding. A row holds
    the metrics of `collect_metrics`, whether the parameters exceed each budget in the storage of
    the experiment (the flags of `memory_violations`), and whether they are within the active one
    (`accepted`).

    With an `executor` of `concurrent.futures`, such as a ProcessPoolExecutor or that of a Dask
    cluster (`Client.get_executor()`), rows are made by its workers. Everything but the times
    follows from the seeds, wherever it runs.

    Of the rows that the file of `resume` holds, none is made again. A sweep that cannot go on,
    since its executor died or a training failed, raises SweepStoppedError, which has the finished
    rows too. `on_progress` is told how many rows there are and how many there will be.

    Parameters
    ----------
    budgets
        memory budgets that rows are held against
    active_budget
        the budget that `accepted` means, which is the first on the command line
    resume
        a file that takes each row as it is finished, and that a later call goes on from

    Examples
    --------
    >>> from calc.simulation import digits
    >>> network = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    >>> experiment = Experiment(network, digits(), "15 W", repeats=3, epochs=2)
    >>> table = run_sweep(experiment, Grid([0, 0.5], ["fp32", "int8"]), ["4 kB", "8 kB"], "4 kB")
    >>> table.select("pruning", "precision", "memory_dense_bytes", "accepted").rows()
    [(0.0, 'fp32', 4840, False), (0.0, 'int8', 1210, True), (0.5, 'fp32', 4840, False), \
(0.5, 'int8', 1210, True)]
    """
    imported()  # before any work
    limits = _Limits(budgets, active_budget)
    check_executor(executor)
    sweep = _Sweep(experiment, limits, grid.variants(), on_progress or (lambda done, total: None))
    with sweep.continued_in(resume):
        sweep.run(executor)
    return sweep.table()


class _Limits:
    """The budgets, read once."""

    def __init__(self, budgets: Sequence[QuantityLike], active: QuantityLike) -> None:
        keys = budget_keys(budgets)
        limit = checked_budget(active)
        if limit not in keys.values():
            raise InputError(
                f"{marked('active_budget')} must be one of the budgets,"
                f" {', '.join(map(str, budgets))};"
                f" got {abbreviated(active)}"
            )
        self.budgets = list(budgets)
        self.active = next(key for key, size in keys.items() if size == limit)

    def judged(self, row: Row, storage: str) -> Row:
        """A row with its flags."""
        memory = quantity(row[f"memory_{storage}_bytes"], "byte")
        flags = memory_violations(memory, self.budgets)
        return {**row, "accepted": not flags[self.active], **flags}


class _Sweep:
    """Rows that are there and rows that are to be made."""

    def __init__(
        self,
        experiment: Experiment,
        limits: _Limits,
        variants: list[Variant],
        on_progress: Callable[[int, int], None],
    ) -> None:
        self.experiment, self.limits, self.variants = experiment, limits, variants
        self.on_progress = on_progress
        self.rows: dict[Variant, Row] = {}
        self.file: RowFile | None = None

    @contextmanager
    def continued_in(self, path: Path | str | None) -> Iterator[None]:
        if path is None:
            yield
            return
        self.file = RowFile(path, self.experiment.settings(), COLUMNS)
        wanted = set(self.variants)
        with self.file.open() as rows:
            for row in rows:
                variant = Variant(*(row[name] for name in Variant._fields))
                if variant in wanted:
                    self.rows[variant] = row
            yield

    def run(self, executor: Executor | None) -> None:
        self.on_progress(len(self.rows), len(self.variants))
        try:
            if executor is None:
                self._run_here()
            else:
                self._run_in(executor)
        except _RowFileError:
            raise
        except Exception as error:
            raise self._stopped(error) from error

    def table(self) -> DataFrame:
        rows = [
            self.limits.judged(self.rows[variant], self.experiment.storage)
            for variant in self.variants
            if variant in self.rows
        ]
        schema = {**COLUMNS, **dict.fromkeys(["accepted", *budget_keys(self.limits.budgets)], bool)}
        table: DataFrame = imported().DataFrame(rows, schema=schema)
        return table

    def _missing(self) -> dict[int, list[Variant]]:
        """Return the variants that are not yet in the rows, by seed; a finished seed has none."""
        missing: dict[int, list[Variant]] = {}
        for variant in self.variants:
            if variant not in self.rows:
                missing.setdefault(variant.seed, []).append(variant)
        return missing

    def _finish(self, variant: Variant, row: Row) -> None:
        if self.file is not None:
            try:
                self.file.append(row)
            except InputError as error:
                raise _RowFileError(str(error)) from None
        self.rows[variant] = row
        self.on_progress(len(self.rows), len(self.variants))

    def _run_here(self) -> None:
        for seed, variants in self._missing().items():
            trained = self.experiment.train(seed)
            for variant in variants:
                self._finish(variant, self.experiment.row(trained, variant))

    def _run_in(self, executor: Executor) -> None:
        """Trainings first; as each is done, its variants, so that no worker waits for a seed."""
        missing = self._missing()
        tasks = Tasks(executor)
        try:
            for seed in missing:
                tasks.submit(seed, self.experiment.train, seed)
            for makes, result in tasks:
                if isinstance(makes, Variant):
                    self._finish(makes, result)
                else:
                    for variant in missing[makes]:
                        tasks.submit(variant, self.experiment.row, result, variant)
        finally:
            for makes, result in tasks.cancel():
                if isinstance(makes, Variant):
                    self._finish(makes, result)

    def _stopped(self, error: Exception) -> SweepStoppedError:
        kept = (
            f"they are in {self.file.path}, and the same call goes on from there"
            if self.file is not None
            else "they are the error's rows; with resume=FILE the same call would go on from there"
        )
        reason = " ".join(str(error).split()).rstrip(".") or "it gave no reason"
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        return SweepStoppedError(
            f"run_sweep() stopped after {len(self.rows)} of {len(self.variants)} rows ({kept}):"
            f" {name}{reason}",
            self.table(),
        )


class _RowFileError(InputError):
    """The file of finished rows cannot be written, so rows would be lost."""


def _several(name: str, values: Sequence[T], checked: Callable[[T], T]) -> list[T]:
    several = [checked(value) for value in as_list(name, values)]
    if not several or len(set(several)) < len(several):
        raise InputError(
            f"{marked(name)} must be at least one, each given once; got {abbreviated(values)}"
        )
    return several
