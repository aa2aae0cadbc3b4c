"""Sweeps: every variant of a network, by pruning and precision, trained from several seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from calc.core.arguments import as_list, number, one_of, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.row_file import Row, RowFile
from calc.core.tasks import Tasks, check_executor
from calc.core.units import Quantity, QuantityLike, quantity
from calc.simulation.budgets import budget_keys, checked_budget, memory_violations
from calc.simulation.data import Split, checked_split
from calc.simulation.frames import imported
from calc.simulation.metrics import checked_power, collect_metrics
from calc.simulation.network import NeuralNetwork
from calc.simulation.precision import arithmetic
from calc.simulation.pruning import KINDS, TWO_OF_FOUR, checked_level, prune
from calc.simulation.storage import FORMATS

if TYPE_CHECKING:
    from polars import DataFrame

COLUMNS = {
    "seed": int,
    "kind": str,
    "pruning": float,
    "precision": str,
    "accuracy": float,
    "latency_seconds": float,
    "latency_spread_seconds": float,
    **{f"memory_{each}_bytes": int for each in FORMATS},
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
class _Job:
    """What is the same for every row: picklable, as tasks travel to other processes."""

    model: NeuralNetwork
    data: Split
    epochs: int
    alpha: float
    batch_size: int
    power: Quantity
    latency_multiplier: float
    repeats: int
    latency_batch: int
    storage: str
    fine_tuning: int

    def train(self, seed: int) -> NeuralNetwork:
        trained = NeuralNetwork(self.model.layer_sizes, self.model.activations)
        samples, labels = self.data.X_train, self.data.y_train
        trained.fit(samples, labels, self.epochs, self.alpha, self.batch_size, seed)
        return trained

    def row(self, trained: NeuralNetwork, variant: Variant) -> Row:
        model = trained
        if variant.kind in KINDS:
            model = prune(model, variant.pruning, variant.kind)
        if self.fine_tuning:
            model = model.with_precision("fp32")  # a copy
            samples, labels = self.data.X_train, self.data.y_train
            model.fine_tune(
                samples, labels, self.fine_tuning, self.alpha, self.batch_size, variant.seed
            )
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

    def settings(self) -> dict[str, Any]:
        """What two sweeps must have in common for their rows to belong together."""
        digest = hashlib.sha256()
        for each in self.data:
            digest.update(repr((each.shape, each.dtype.str)).encode() + each.tobytes())
        return {
            "layer_sizes": list(self.model.layer_sizes),
            "activations": list(self.model.activations),
            "data": digest.hexdigest(),
            "epochs": self.epochs,
            "alpha": self.alpha,
            "batch_size": self.batch_size,
            "power": self.power.m_as("W"),
            "latency_multiplier": self.latency_multiplier,
            "repeats": self.repeats,
            "latency_batch": self.latency_batch,
            "storage": self.storage,
            "fine_tuning": self.fine_tuning,
        }


def run_sweep(
    base_model: NeuralNetwork,
    data: Split | tuple[Any, Any, Any, Any],
    pruning_levels: Sequence[float],
    precisions: Sequence[str],
    budgets: Sequence[QuantityLike],
    active_budget: QuantityLike,
    power: QuantityLike,
    latency_multiplier: float = 1.0,
    repeats: int = 30,
    executor: Executor | None = None,
    *,
    kinds: Sequence[str] = ("unstructured",),
    seeds: Sequence[int] = (0,),
    epochs: int = 40,
    alpha: float = 0.2,
    batch_size: int = 32,
    latency_batch: int = 256,
    storage: str = "dense",
    fine_tuning: int = 0,
    resume: Path | str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> DataFrame:
    """Train the network from each seed, and measure every variant of it: a row for each.

    A variant is a seed, a kind and level of pruning, and a precision; level 0 is of no kind. Each
    seed trains the layers of `base_model` anew, in FP32 and on the training half of `data`. Then
    come pruning, fine-tuning of all variants alike, and rounding. A row holds the metrics of
    `collect_metrics`, whether the parameters exceed each budget in the chosen `storage` (the flags
    of `memory_violations`), and whether they are within the active one (`accepted`).

    - `pruning_levels`: shares of the weights that are pruned
    - `kinds`: kinds of pruning, of unstructured, 2:4 and structured; 2:4 has the level 0.5 alone
    - `precisions`: number formats, of FP32, FP16, BF16 and INT8
    - `budgets`: memory budgets that rows are held against
    - `active_budget`: the budget that `accepted` means, which is the first on the command line
    - `storage`: how pruned weights are stored: dense, csr or bitmask
    - `power`: power of the device
    - `latency_multiplier`: how many times as long the device takes
    - `epochs`: passes over the samples in each training
    - `alpha`: the length of a step
    - `batch_size`: samples in a batch of training
    - `fine_tuning`: passes over the samples after pruning, in which zeros stay zero
    - `repeats`: timed passes of each variant
    - `latency_batch`: samples in a timed pass
    - `resume`: a file that takes each row as it is finished, and that a later call goes on from

    With an `executor` of `concurrent.futures`, such as a ProcessPoolExecutor or that of a Dask
    cluster (`Client.get_executor()`), rows are made by its workers. Everything but the times
    follows from the seeds, wherever it runs.

    Of the rows that the file of `resume` holds, none is made again. A sweep that cannot go on,
    since its executor died or a training failed, raises SweepStoppedError, which has the finished
    rows too. `on_progress` is told how many rows there are and how many there will be.

    >>> from calc.simulation import digits
    >>> network = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    >>> table = run_sweep(
    ...     network, digits(), [0, 0.5], ["fp32", "int8"], ["4 kB", "8 kB"], "4 kB", "15 W",
    ...     repeats=3, epochs=2,
    ... )
    >>> table.select("pruning", "precision", "memory_dense_bytes", "accepted").rows()
    [(0.0, 'fp32', 4840, False), (0.0, 'int8', 1210, True), (0.5, 'fp32', 4840, False), \
(0.5, 'int8', 1210, True)]
    """
    imported()  # before any work
    job = _Job(
        _checked_model(base_model),
        checked_split(data, base_model.layer_sizes[0], base_model.layer_sizes[-1]),
        whole_number("epochs", epochs),
        number("alpha", alpha, above=0.0),
        whole_number("batch_size", batch_size),
        checked_power(power),
        number("latency_multiplier", latency_multiplier, above=0.0),
        whole_number("repeats", repeats),
        whole_number("latency_batch", latency_batch),
        one_of("storage", storage, FORMATS),
        whole_number("fine_tuning", fine_tuning, at_least=0),
    )
    limits = _Limits(budgets, active_budget)
    variants = _variants(seeds, kinds, pruning_levels, precisions)
    check_executor(executor)
    sweep = _Sweep(job, limits, variants, on_progress or (lambda done, total: None))
    if resume is not None:
        sweep.continue_in(resume)
    sweep.run(executor)
    return sweep.table()


class _Limits:
    """The budgets, read once."""

    def __init__(self, budgets: Sequence[QuantityLike], active: QuantityLike) -> None:
        keys = budget_keys(budgets)
        limit = checked_budget(active)
        if limit not in keys.values():
            raise InputError(
                f"active_budget must be one of the budgets, {', '.join(map(str, budgets))};"
                f" got {abbreviated(active)}"
            )
        self.budgets = list(budgets)
        self.active = next(key for key, each in keys.items() if each == limit)

    def judged(self, row: Row, storage: str) -> Row:
        """A row with its flags."""
        memory = quantity(row[f"memory_{storage}_bytes"], "byte")
        flags = memory_violations(memory, self.budgets)
        return {**row, "accepted": not flags[self.active], **flags}


class _Sweep:
    """Rows that are there and rows that are to be made."""

    def __init__(
        self,
        job: _Job,
        limits: _Limits,
        variants: list[Variant],
        on_progress: Callable[[int, int], None],
    ) -> None:
        self.job, self.limits, self.variants = job, limits, variants
        self.on_progress = on_progress
        self.rows: dict[Variant, Row] = {}
        self.file: RowFile | None = None

    def continue_in(self, path: Path | str) -> None:
        self.file = RowFile(path, self.job.settings(), COLUMNS)
        wanted = set(self.variants)
        for row in self.file.open():
            variant = Variant(*(row[name] for name in Variant._fields))
            if variant in wanted:
                self.rows[variant] = row

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
            self.limits.judged(self.rows[each], self.job.storage)
            for each in self.variants
            if each in self.rows
        ]
        flags = budget_keys(self.limits.budgets)
        schema: Any = {**COLUMNS, **dict.fromkeys(["accepted", *flags], bool)}
        return imported().DataFrame(rows, schema=schema)  # type: ignore[no-any-return]

    def _missing(self) -> dict[int, list[Variant]]:
        """What is to be made, by seed: a seed whose rows are all there is not trained again."""
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
            trained = self.job.train(seed)
            for variant in variants:
                self._finish(variant, self.job.row(trained, variant))

    def _run_in(self, executor: Executor) -> None:
        """Trainings first; as each is done, its variants, so that no worker waits for a seed."""
        missing = self._missing()
        tasks = Tasks(executor)
        try:
            for seed in missing:
                tasks.submit(seed, self.job.train, seed)
            for makes, result in tasks:
                if isinstance(makes, Variant):
                    self._finish(makes, result)
                else:
                    for variant in missing[makes]:
                        tasks.submit(variant, self.job.row, result, variant)
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


def _variants(
    seeds: Sequence[int], kinds: Sequence[str], levels: Sequence[float], precisions: Sequence[str]
) -> list[Variant]:
    """Every row of a sweep, in order; level 0 prunes nothing, so that it has no kind."""
    checked = [
        _several("seeds", seeds, lambda each: whole_number("a seed", each, at_least=0)),
        _several("kinds", kinds, lambda each: one_of("a kind of pruning", each, KINDS)),
        _several("pruning_levels", levels, checked_level),
        _several("precisions", precisions, lambda each: arithmetic(each).name),
    ]
    found = {
        Variant(seed, kind if level else "none", level, name)
        for seed, kind, level, name in product(*checked)
        if kind != "2:4" or level in (0, TWO_OF_FOUR)
    }
    if "2:4" in checked[1] and TWO_OF_FOUR not in checked[2]:
        raise InputError(
            f"pruning 2:4 has the level {TWO_OF_FOUR:g} alone, which pruning_levels lack;"
            f" got {abbreviated(levels)}"
        )
    ranks = [{value: rank for rank, value in enumerate(each)} for each in checked]
    kind_ranks = {"none": -1, **ranks[1]}
    return sorted(
        found,
        key=lambda each: (
            ranks[0][each.seed],
            kind_ranks[each.kind],
            ranks[2][each.pruning],
            ranks[3][each.precision],
        ),
    )


def _several(name: str, given: Any, checked: Callable[[Any], Any]) -> list[Any]:
    values = [checked(each) for each in as_list(name, given)]
    if not values or len(set(values)) < len(values):
        raise InputError(f"{name} must be at least one, each given once; got {abbreviated(given)}")
    return values


def _checked_model(model: Any) -> NeuralNetwork:
    if not isinstance(model, NeuralNetwork):
        raise InputError(
            f"run_sweep() trains and prunes a NeuralNetwork of calc.simulation;"
            f" got {abbreviated(model)}"
        )
    return model
