"""The memory of each device of a job that serves, as a frozen record: `Memory`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from calc.catalog import engines
from calc.catalog.models.architecture import RECURRENT, STATES
from calc.core.arrays import Number
from calc.core.elementwise import floor
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, quantity
from calc.steps.engine_start import Part, Start, in_gib

MAY_NOT_FIT = "may not fit"


@dataclass(frozen=True)
class Way:
    """A frozen record of a change with which a job fits, tried before it is told."""

    settings: Mapping[str, object]
    """Settings by the names of the arguments of `device_memory.fit`."""
    told: str
    """The settings in words, with what then fits."""


@dataclass(frozen=True)
class Lacks:
    """A frozen record of what each device lacks for one sequence, and of what would make it fit."""

    missing: Quantity
    ways: tuple[Way, ...] = ()
    """The cheapest first; `device_memory.fit` tries them, and `of` leaves them out."""


@dataclass(frozen=True, eq=False, repr=False)
class Memory(Answer):
    """A frozen record of what each device's memory holds of a job, part by part, and what fits.

    `parts` are what is taken before caches, each with how it is computed or measured; `caches` is
    what is left of the `room`, `blocks` how many blocks that makes, `tokens` how many tokens they
    hold in sequences of `context`, and `sequences` how many of these, in one copy of the model.
    `error` is how far off `caches` is: nine in ten of the published logs that nothing was fitted to
    are nearer. Of what does not fit `lacks` says what is missing, and what would make it fit.

    >>> from calc.device_memory import fit
    >>> print(fit("llama-3.1-8b", "h100", "vllm 0.19", utilization=0.95, context=8192))
    Llama 3.1 8B on 1 NVIDIA H100 SXM5 80 GB by vLLM 0.19: 476016 tokens of cache, context 8192
    logs of engines, matrix by matrix and part by part; tokens ± 0.4%
    chosen: gpu_memory_utilization 0.95; steps of 8192 tokens and 1024 sequences
    <BLANKLINE>
                         each device
    found by programs    79.19 GiB
    room of the program  75.23 GiB
      weights            14.99 GiB    ± 122.8 MiB
      largest step       1.883 GiB    ± 25.07 MiB
      outside of torch   0.25 GiB     ± 215.0 MiB
    keys and values      58.11 GiB    ± 0.25 GiB
      blocks of 16       29751
      tokens             476016       ± 0.4%
      sequences of 8192  58.11
    """

    _SENTENCES = (
        ("how", "Each part"),
        ("what_settings_change", "What settings change"),
        ("assumptions", "Assumed"),
    )

    start: Start
    context: int
    visible: Quantity
    """What programs find of each device's memory."""
    room: Quantity
    """What this one may take of it."""
    parts: tuple[Part, ...]
    caches: Quantity
    """What is left for keys, values and states; below zero where the model is too large."""
    error: Quantity | None
    """What that is off by; None where no log tells."""
    block: int
    block_memory: Quantity
    """What a block takes in all layers of a group."""
    blocks: int
    """Blocks that are left, each of a group of layers."""
    blocks_of_a_sequence: int
    tokens: int
    sequences: float
    lacks: Lacks | None
    """What each device lacks for one sequence of this length; None where one fits."""
    called: str = ""
    """What the model that was asked for is called; its own name where it is left out."""
    changes: tuple[Way, ...] = ()
    """What settings of the program change; `device_memory.fit` tries them, `of` leaves them out."""

    @classmethod
    def from_start(cls, start: Start, context: int) -> Memory:
        """Return all that follows from how a program is started, for sequences of such a length."""
        visible, share = start.visible, start.of_the_rest
        parts = tuple(start.parts())
        taken = sum((part.memory for part in parts), quantity(0, "GiB"))
        rest = visible * (start.utilization / share) - taken
        caches = min(rest, rest * share)
        left = float(caches.m_as("byte"))
        block = blocks = held = 0
        of_one = float(start.taken(context))
        if start.divided:
            block, held = start.block, int(start.blocks_of(context))
            blocks = max(0, int(left / start.block_bytes))
            sequences = blocks / held
        else:
            sequences = max(0.0, left) / of_one
        pages = start.pages if start.divided else ()
        if len(pages) == 1 and pages[0].kind != "window":
            tokens = blocks * block
        else:
            tokens = int(sequences * context)
        return cls(
            start,
            context,
            visible,
            taken + caches,
            parts,
            caches,
            None if start.rules is None else start.error,
            block,
            quantity(start.block_bytes if start.divided else 0.0, "byte"),
            blocks,
            held,
            tokens,
            sequences,
            None if sequences >= 1 else Lacks(in_gib(of_one) / share - rest),
        )

    @property
    def over(self) -> Quantity | None:
        """Return what the parts take beyond the room; None where caches have some of it."""
        return -self.caches if self.caches.magnitude < 0 else None

    @property
    def left(self) -> Quantity:
        """Return what caches have, which is never less than nothing."""
        return self.caches if self.over is None else quantity(0, "GiB")

    @property
    def fits(self) -> bool:
        """Return whether a sequence of the wanted length is held."""
        return self.lacks is None

    @property
    def status(self) -> int:
        """Exit status of the command: 1 where not one sequence of that length fits."""
        return int(not self.fits)

    @cached_property
    def doubt(self) -> str:
        """The sentence on what may be otherwise, where the ± of caches covers one sequence."""
        taken = in_gib(float(self.start.taken(self.context)))
        if self.error is None or abs(self.caches - taken) > self.error:
            return ""
        job, may = self.start.job, MAY_NOT_FIT if self.fits else "may fit after all"
        on = f"{job.model.name} {may} on {job.layout.devices} {job.device.name}"
        left = f"keys and values have {self.caches} ± {self.error} of each"
        if self.over is not None:
            left = f"all else takes {self.over} ± {self.error} more than its room of each"
        return f"{on}: {left}, and a sequence of {self.context} tokens takes {taken}."

    @property
    def verdict(self) -> str:
        """Return whether a sequence is held, as far as is known."""
        return "does not fit" if not self.fits else MAY_NOT_FIT if self.doubt else "fits"

    @property
    def most_sequences(self) -> int | None:
        """Sequences that a server starts with at most, where a rule of its is known.

        vLLM gives each a block for its state, and does not start with more than there are. SGLang
        takes some for each that fits at its longest, between bounds, and of two tokens at least.
        """
        start, has_states = self.start, self.start.model.layers_with(*RECURRENT) > 0
        if start.rules is None or not self.fits:
            return None
        if "per_longest" in start.rules:
            if has_states:
                return None
            names = ("fewest_sequences", "most_sequences", "per_longest")
            fewest, most, each = (int(start.engine[name].m_as("")) for name in names)
            usual = max(fewest, min(most, self.tokens * each // self.context))
            return min(usual, self.tokens // 2)
        return self.blocks if has_states and "state_blocks" in start.rules else None

    def sequences_of(self, context: Number) -> Number:
        """Return how many sequences of another length, or of each of several, a copy holds."""
        left = max(0.0, float(self.caches.m_as("byte")))
        pool = self.blocks * self.start.block_bytes if self.start.divided else left
        return pool / self.start.taken(context)

    def batch_of(self, context: Number) -> Number:
        """Return the whole sequences of a length that all copies of the model hold together."""
        return floor(self.sequences_of(context)) * self.start.layout.data

    @property
    def largest_batch(self) -> int:
        """Whole sequences of the wanted length that all copies of the model hold together."""
        return int(self.batch_of(self.context))

    @property
    def how(self) -> tuple[str, ...]:
        """Each part with how it is computed or measured, a sentence each."""
        return tuple(f"{part.name}: {part.how}." for part in self.parts)

    @property
    def what_settings_change(self) -> tuple[str, ...]:
        """Each setting that was tried, with the tokens of cache that are then held."""
        return tuple(change.told for change in self.changes)

    def _assumptions(self) -> Iterator[str]:
        yield from assumptions(self.start)
        if self.start.prints_groups:
            engine, groups = self.start.engine, self.start.groups[1]
            printed = self.blocks // groups * self.block
            yield (
                f'The log of {engine.title} prints {printed} tokens as "GPU KV cache size": its'
                f" blocks over {groups} groups of layers, which is not what fits."
            )

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*filter(None, [self.doubt, self._too_many()]), *caveats(self.start))

    def _too_many(self) -> str:
        """The sentence on a step of more sequences than a server starts with."""
        most, asked = self.most_sequences, self.start.step_sequences
        if most is None or "per_longest" in self.start.engine or most >= asked:
            return ""
        return (
            f"{self.program} does not start with steps of {asked} sequences, each of which needs a"
            f" block for its state: --max-num-seqs {most} or fewer."
        )

    @property
    def program(self) -> str:
        """The software with its version, as a sentence names it."""
        rules, software = self.start.rules, self.start.job.software
        return software.title() if rules is None else rules.title

    @property
    def answer(self) -> str:
        job = self.start.job
        result = f"{self.tokens} tokens of cache, context {self.context}"
        if self.lacks is not None:
            result = f"context {self.context} {self.verdict}, each lacks {self.lacks.missing}"
        elif self.doubt:
            result = f"{self.verdict}, {result}"
        count = f"{job.layout.devices} {job.device.name}"
        return f"{self.called or job.model.name} on {count} by {self.program}: {result}"

    @property
    def stands_on(self) -> str:
        if self.error is None:
            return "weights and caches counted, and nothing else"
        off = f"; tokens ± {self.tokens_off:.1%}" if self.fits else ""
        return f"logs of engines, matrix by matrix and part by part{off}"

    @property
    def chosen(self) -> tuple[str, ...]:
        start = self.start
        if start.bare:
            return ()
        fraction = "share of the memory" if start.rules is None else start.engine.fraction
        settings = f"{fraction} {start.utilization:g}"
        if start.rules is None or start.engine.rule == "static":
            return (settings,)
        step = f"steps of {start.step_tokens} tokens and {start.step_sequences} sequences"
        return settings, step

    @property
    def part_rows(self) -> list[tuple[str, str, str]]:
        """The parts as rows of a table: name, memory, and what it may be off by."""
        return [(f"  {part.name}", str(part.memory), _plus_minus(part.off)) for part in self.parts]

    @cached_property
    def tables(self) -> Sequence[Table]:
        off = f"± {self.tokens_off:.1%}" if self.fits and self.error is not None else ""
        rows = [
            ("", "each device", ""),
            ("found by programs", str(self.visible), ""),
            ("room of the program", str(self.room), ""),
            *self.part_rows,
            *self._left_rows(),
            *([(f"  blocks of {self.block}", str(self.blocks), "")] if self.block else []),
            *([("  a sequence", self.a_sequence, "")] if self.a_sequence else []),
            ("  tokens", str(self.tokens), off),
            (f"  sequences of {self.context}", f"{self.sequences:.2f}", ""),
            *(
                []
                if self.most_sequences is None
                else [("  most at once", str(self.most_sequences), "")]
            ),
        ]
        if self.lacks is None or not self.lacks.ways:
            return (Table(rows),)
        ways = [("fits with",), *((way.told,) for way in self.lacks.ways)]
        return Table(rows), Table(ways)

    def _left_rows(self) -> list[tuple[str, str, str]]:
        """Return what is left for caches; nothing where all else is larger than its room."""
        off = _plus_minus(self.error)
        if self.over is None:
            return [("keys and values", str(self.caches), off)]
        return [("more than its room", str(self.over), off), ("keys and values", "none", "")]

    @property
    def a_sequence(self) -> str:
        """The bytes of a sequence on each device as what is fixed and what each token adds.

        It is empty where nothing is fixed, or no rule of the program is known.
        """
        fixed, each = self.start.of_a_sequence() or (0.0, 0.0)
        if not fixed:
            return ""
        return f"{quantity(fixed, 'byte')} + {quantity(each, 'byte')} a token"

    @property
    def tokens_off(self) -> float:
        """Return what tokens are off by at most, as a share: all where they may be none."""
        assert self.error is not None
        return min(1.0, float((self.error / self.caches).m_as("")))  # none holds fewer than none

    @cached_property
    def facts(self) -> Mapping[str, object]:
        job = self.start.job
        return {
            "model": job.model.key or job.model.name,
            "device": job.device.key,
            **self.headline,
            "engine": self.program,
            "tensor": job.layout.tensor,
            "stages": job.layout.pipeline,
            **values(self.start, "utilization step_tokens step_sequences"),
            **values(self, "context fits visible room"),
            "parts": [values(part, "name memory off how") for part in self.parts],
            "caches": self.left,
            **values(self, "over error block blocks tokens sequences most_sequences"),
            "missing": self.lacks and self.lacks.missing,
            "ways": [values(way, "settings told") for way in self.lacks.ways] if self.lacks else [],
            "changes": [values(change, "settings told") for change in self.changes],
            "assumptions": self.assumptions,
        }


def _plus_minus(off: Quantity | None) -> str:
    return "" if off is None else f"± {off}"


def assumptions(start: Start) -> Iterator[str]:
    """Yield what is taken for granted, a sentence each.

    >>> from calc.device_memory import fit
    >>> next(assumptions(fit("llama-3.1-8b", "h100", "vllm 0.19", context=8192).start))
    'Programs find 79.19 GiB of 80 GiB, by their logs.'
    """
    if start.rules is None:
        return
    engine = start.engine
    if start.memory is not None:
        yield f"Programs find {start.visible} of {start.device.memory_capacity}, as given."
    elif by := engines.visible_by(start.device):
        yield f"Programs find {start.visible} of {start.device.memory_capacity}, {by}."
    left = start.visible * (1 - start.utilization)
    if engine.rule == "static":
        yield (
            f"{engine.name} takes no trial step: what its activations and graphs need must fit"
            f" into the {left} that it leaves."
        )
    elif engine.rule == "free":
        yield (
            f"Caches get {start.utilization:.0%} of what its parts leave; the rest is for what its"
            " trial step did not need."
        )
    elif not engine["graphs_counted"].magnitude:
        yield (
            f"CUDA graphs are captured afterwards, {engine['graphs']} in the mean of logs, into"
            f" the {left} outside of its share."
        )


def caveats(start: Start) -> Iterator[str]:
    """Yield what no log of this device or version says, or what is not counted.

    >>> from calc.device_memory import fit
    >>> print(next(caveats(fit("llama-3.1-8b", "h100", "none", context=8192).start))[:43])
    Bytes of weights and caches alone are count
    """
    software = start.job.software
    if start.bare:
        yield (
            "Bytes of weights and caches alone are counted, each cache once, in all of the"
            " memory: a bound, which no program reaches."
        )
        return
    if start.rules is None:
        yield (
            f"How {software.name} shares out the memory of {start.job.device.name} is not in the"
            f" data: {start.utilization:.0%} of it is taken to be for weights and caches, and"
            " nothing else is counted."
        )
        return
    engine, device = start.engine, start.device
    if start.memory is None and not engines.visible_by(device):
        yield (
            f"Programs find {engines.visible_share():.0%} of {device.memory_capacity}, as on"
            " other devices in the median: no log of this one was read."
        )
    if not start.divided:
        yield (
            f"How {engine.name} divides its pool among layers with windows or states and the"
            " others is not in the data: none of it is taken to be left over."
        )
    if engine.rule == "static":
        return
    if engine.counted_as:
        yield (
            f"How {engine.title} measured memory is not in the data: it is taken to be as in"
            f" {engine.name} {engine.counted_as}."
        )
    if engine.beyond_logs:
        yield (
            f"No complete log of {engine.title} was read: its largest step is taken to need"
            f" what it needs in {engine.name} {engine.read_to}, and each ± is of that version."
        )
    if start.links_unknown:
        yield (
            "Without a switch between devices, buffers of links are taken to be as in a version"
            " that had none for sums through one; no complete log of such devices was read."
        )
    if start.model.layers_with(*STATES) and start.model.state_bytes is None:
        yield (
            "States are taken to be in 16 bits, as they are where a configuration does not ask"
            " for FP32, which doubles them."
        )
