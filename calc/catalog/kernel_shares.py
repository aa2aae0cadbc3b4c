"""Measured kernels, as shares of what a device's published peaks allow: `surface_of("product", …)`.

A kernel that does so many operations and moves so many bytes takes at least the longer of both at
published peaks, its roof. What share of that pace it reaches was measured by device, program and
version; `data/measured/kernel_shares.csv` has a surface of each, over one length of the kernel's
shape and over its roof, distilled by `experiments/distil_kernels.py` from some 24 million rows.
Between the points of a surface the logarithm of the share is linear; a kernel that is shorter than
all that was measured takes as long as the shortest, and a longer one has the share of the longest.
Rows that say that more of them take less time, where all wait for the same weights, are noise or
another kernel, which takes fewer rows too: `without_falls` puts both in their mean.

Of linear attention there is the delta rule with a decay for each head (Gated DeltaNet), a layer's
convolution counted in, of versions whose rows hold both kernels: vLLM 0.24, SGLang from 0.5.9 and,
for prompts, TensorRT-LLM, whose benchmark of written tokens holds states in 16 bits where engines
hold 32. Rows of one shape that differ by more than a tenth are of a device that was not alone.
With a decay for each number of a key (Kimi Delta Attention) it is measured of SGLang 0.5.16 and,
for written tokens, of the preview of vLLM for Kimi K3, in which the host launches the convolutions
of a prompt for 0.4 ms and more.

Of sparse attention rows time a layer's whole module with its projections. What a context adds to
the shortest one is scoring, choosing and attending to the chosen; with a start of each of these
three it is the surface of "chosen", for written tokens. On Hopper kernels read 2 048 places where
fewer are cached, of which the shortest context hides most (vLLM on an H200, 128 sequences of FP8:
0.47 ms a module, 0.19 expected).

Of prompts ("choosing") the shortest hides too much to be taken off: kernels read 2 048 places for
a token with fewer before it, and compute 64 heads where a device has fewer. So it is what a module
of two bytes takes beside its products and its rotation, as calc expects these of the same program;
each number of heads, and of heads that score, has a surface of its own. Rows whose time is that of
a host that launches are left out (below 1.4 ms in vLLM, 0.6 to 2 in SGLang), and so are SGLang
0.5.9 and 0.5.10, of whose rows a fifth takes no longer than its products. Up to 2 048 tokens SGLang
and TensorRT-LLM attend to all; SGLang then leaves out the scores too, whose products calc counts.
No row of modules in FP8 and NVFP4 is used: engines fuse their products with what rounds for them.

There is no surface of DeepSeek-V4's compressed attention, which was not read, and none of
Mamba-2: but for one version, which has no written tokens, its convolutions alone were timed.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from operator import sub
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, overload

from calc.catalog import hardware
from calc.core.arrays import Number
from calc.core.elementwise import by_math, choose, maximum, minimum, place, where
from calc.core.errors import InputError
from calc.core.files import read_text
from calc.core.records import DATA

FILE = DATA / "measured" / "kernel_shares.csv"
SOURCE = "nvidia-aiconfigurator"
"""The key of references.bib of all rows."""
COLUMNS = (
    *("kernel", "device", "program", "version", "format"),
    *("rows", "own", "version_before", "device_alike", "hundredths"),
)
ALIKE = {
    "h100": "h200",
    "h200": "h100",
    "b200": "gb200",
    "gb200": "b200",
    "b300": "b200",
    "gb300": "gb200",
}
"""The device whose kernels are held to those of each, as though these had not been measured."""
SHORTEST = 1e-6
"""Seconds: no kernel takes less, and a benchmark that says so did not wait for it."""
SPREAD = 2.0
"""The factor by which rows beside a surface may differ from it; all do from one that is wrong."""
ROUNDING = 0.011
"""Error of the logarithm of a time whose share has two decimals."""
ROOFS = (-4, -2, 0, 2, 4, 6, 9, 14)
"""Logarithms to base 2 of the roofs of all surfaces, in microseconds."""
LENGTHS = {
    "product": (0, 4, 6, 7, 8, 10, 12, 15),
    "experts": (-7, -4, -2, 0, 2, 4, 6, 8, 10),
    "prompts": (4, 7, 8, 9, 10, 11, 12, 14),
    "caches": (0, 5, 8, 10, 12, 14, 17),
    "chosen": (1, 8, 10, 13, 15, 17),
    "choosing": (6, 9, 11, 12, 13, 15, 17, 20),
    "states": (0, 4, 7, 10),
    "chunks": (4, 7, 9, 11, 13, 15),
}
"""Logarithms to base 2, by kernel, of: rows of a product (m); tokens of an expert; tokens of a
prompt that attention reads; tokens of the cache of a sequence, all read or few chosen; tokens of a
prompt that chooses, with those before it; sequences whose states a token changes; tokens of a
prompt that states read in chunks."""

LADDER = tuple(
    100 * row + roof * math.log(2)
    for row in range(max(map(len, LENGTHS.values())))
    for roof in ROOFS
)
"""The natural logarithms of roofs in microseconds, of each next length on a rung above."""

RATES = {  # of a format of products or attention: the published peak that its operations run at
    "nvfp4": "fp4",
    "fp8": "fp8",
    "fp8-block": "fp8",
    "fp8-narrow": "fp8",
    "mxfp4": "fp8",
    "int4-weights-fp8": "fp8",
    "int8": "int8",
}
"""All others run at that of 16 bits."""


def bytes_of_product(
    m: Number, n: Number, k: Number, operand: float, weight: float, result: float = 2.0
) -> Number:
    """Bytes that a product moves, by those of an element; inputs of few are rounded from two.

    >>> bytes_of_product(16, 4096, 4096, 1.0, 1.0)
    17170432.0
    """
    read = 2 + 2 * operand if operand < 2 else operand
    return m * k * read + n * k * weight + m * n * result


def bytes_of_experts(
    tokens: Number, routed: Number, width: Number, hidden: Number, weights: Number
) -> Number:
    """Bytes that a layer's experts move: weights, tokens there and back, what is between products.

    So many tokens, sent to experts so many times in all; vectors in two bytes.

    >>> bytes_of_experts(64, 512, 7168, 2048, 1.0e9)
    1021889024.0
    """
    return weights + 2 * tokens * width + 4 * routed * width + 6 * routed * hidden


def bytes_of_states(
    sequences: Number, tokens: Number, channels: Number, results: Number, state: Number
) -> Number:
    """Bytes that a layer of linear attention moves: states twice, and vectors of two bytes.

    What its convolution reads, it writes for the rule to read, which writes the results.

    >>> bytes_of_states(32, 32, 8192, 4096, 2**21)
    136052736
    """
    return 2 * sequences * state + 2 * tokens * (3 * channels + results)


def bytes_of_chosen(
    sequences: Number,
    context: Number,
    chosen: Number,
    heads: Number,
    kv: float,
    widths: tuple[int, int, int],
) -> Number:
    """Bytes of a layer that scores a context and attends to the chosen latents.

    Widths are those of a latent, its positions and a key for scores, which has a byte a number and
    a scale of four; queries and results of each head have two bytes a number.

    >>> bytes_of_chosen(128, 32768, 2048, 16, 1.0, (512, 64, 128))
    709099520.0
    """
    latent, positions, scored = widths
    keys = context * (scored + 4) + chosen * (latent + positions) * kv
    return sequences * (keys + 2 * heads * (2 * latent + positions))


WITH_WEIGHTS = ("product", "experts")
"""Kernels of which one more row reads no more weights: of a product any, of experts one that most
of them have a token of."""
WIDE = 6
"""Widths of a square matrix, over its rows, from which on these move little beside it."""
STARTED = 4e-6
"""Seconds of a roof below which a kernel's own start, a few microseconds, is most of its time."""


def bytes_of_weight(format: str) -> float:
    """Bytes of a number of a product's weights, with their scales, by the name of its format.

    >>> bytes_of_weight("fp8-block"), bytes_of_weight("mxfp4-weights"), bytes_of_weight("bf16")
    (1.0, 0.53125, 2.0)
    """
    if "fp4" in format or "int4" in format:
        return 0.5625 if format == "nvfp4" else 0.53125
    return 1.0 if "8" in format else 2.0


def waiting_for_weights(kernel: str, device: str, format: str) -> frozenset[int]:
    """Return the points of a surface up to whose next length a kernel waits for its weights alone.

    Up to the ridge of its device weights take longer to be read than rows to be multiplied, if the
    matrix is so wide that the rows themselves are little beside it, and the kernel's start too.

    >>> sorted(waiting_for_weights("product", "h100", "bf16"))[:6]
    [3, 4, 5, 6, 7, 11]
    """
    if kernel not in WITH_WEIGHTS:
        return frozenset()
    found, rate = hardware.get(device), RATES.get(format, "bf16")
    peak = found.peak(rate if rate in found.dtypes else found.usual_dtype).m_as("FLOP/s")
    bandwidth, size = found.memory_bandwidth.m_as("byte/s"), bytes_of_weight(format)
    lengths, width = LENGTHS[kernel], len(ROOFS)
    points = set()
    for row, (first, after) in enumerate(pairwise(lengths)):
        rows = 2.0**after
        if first < 0 or rows > peak * size / bandwidth / 2:
            continue
        least = max(STARTED, size * (WIDE * rows) ** 2 / bandwidth)
        points |= {
            row * width + column for column, roof in enumerate(ROOFS) if 2.0**roof * 1e-6 >= least
        }
    return frozenset(points)


def without_falls(shares: Sequence[float], flat: frozenset[int]) -> tuple[float, ...]:
    """Return a surface's logarithms of shares with times that never fall with more work.

    More work is a longer roof and, from the points that are `flat`, more rows of the same roof. A
    time becomes the mean of the longest with no more work and the shortest with no less: none moves
    by more than half of what was measured the wrong way round, and no rule moves the farthest less.

    >>> made = without_falls([-1.0] * 8 + [-0.5] * 8, frozenset({7}))
    >>> [round(share, 2) for share in (*made[6:8], *made[14:])]
    [-1.0, -0.75, -0.5, -0.75]
    """
    width = len(ROOFS)
    roofs = [roof * math.log(2) for roof in ROOFS] * (len(shares) // width)
    most = [roof - share for roof, share in zip(roofs, shares, strict=True)]
    least = list(most)
    for point in range(len(most)):
        if point % width:
            most[point] = max(most[point], most[point - 1])
        if point - width in flat:
            most[point] = max(most[point], most[point - width])
    for point in reversed(range(len(least))):
        if (point + 1) % width:
            least[point] = min(least[point], least[point + 1])
        if point in flat:
            least[point] = min(least[point], least[point + width])
    return tuple(
        roof - (low + high) / 2 for roof, low, high in zip(roofs, least, most, strict=True)
    )


class Measured(Protocol):
    """Kernels of a version of a program on a device."""

    @property
    def device(self) -> str: ...
    @property
    def version(self) -> str: ...


Kernels = TypeVar("Kernels", bound=Measured)


class Error(NamedTuple):
    """Error of expectations on measured rows, as two medians: absolute, and signed."""

    median: float
    """Median of the relative errors, without their signs."""
    signed: float
    """The median of measured / expected − 1."""


@dataclass(frozen=True)
class Surface:
    """The share of its roof's pace that a kernel reaches, by length and roof, as measured."""

    kernel: str
    device: str
    program: str
    version: str
    format: str
    rows: int
    """Measured rows that it was distilled from."""
    own: Error
    """Error of this surface on the rows that it is fitted to."""
    version_before: Error | None
    """Error on these rows of the surface of the version before it."""
    device_alike: Error | None
    """Error on these rows of the surface of the device which ALIKE names."""
    logarithms: tuple[float, ...] = field(repr=False)
    """Logarithms of the share, the roofs of the first length first."""
    instead_of: str = ""
    """The version for which it stands, since the rows of that contradict all that surround them."""

    @cached_property
    def rate(self) -> str:
        """The format of the published peak of which it has a share."""
        return RATES.get(self.format, "bf16")

    @property
    def sustained(self) -> float:
        """The share of the largest of kernels, whatever it is of shorter ones at a higher clock."""
        return math.exp(self.logarithms[-1])

    def contradicts(self, after: Surface | None = None) -> bool:
        """Return whether its rows contradict those of its device alike and of both versions beside.

        That is by more than a factor of SPREAD each way, all slower or all faster than it, where at
        least two of these three were measured.

        >>> key = "experts", "h100", "sglang", "bf16"
        >>> surface_of(*key, "0.5.6").version, surface_of(*key, "0.5.6").instead_of
        ('0.5.9', '0.5.6.post2')
        """
        beside = [error.signed for error in (self.version_before, self.device_alike) if error]
        logarithms = [math.log1p(signed) for signed in beside]
        if after is not None and after.version_before is not None:
            logarithms.append(-math.log1p(after.version_before.signed))
        least, most = min(logarithms, default=0.0), max(logarithms, default=0.0)
        return len(logarithms) > 1 and (least > math.log(SPREAD) or most < -math.log(SPREAD))

    def __str__(self) -> str:
        return (
            f"{self.program} {self.version} on {self.device}, {self.kernel} in {self.format}:"
            f" {self.rows} rows, half within {self.own.median:.0%}"
        )

    @overload
    def share(self, length: float, roof: float) -> float: ...
    @overload
    def share(self, length: Number, roof: Number) -> Number: ...
    def share(self, length: Number, roof: Number) -> Number:
        """Return the share of the pace of published peaks, for a length and a roof in seconds."""
        lengths = LENGTHS[self.kernel]
        positive = where(length > 0, length, 2.0 ** lengths[0])
        row, right = place(by_math(math.log2, positive), lengths)
        microseconds = by_math(math.log2, maximum(roof, 1e-15) * 1e6)
        column, up = place(microseconds, ROOFS)
        width, values = len(ROOFS), self.logarithms
        first, second = row * width + column, (row + 1) * width + column
        low = choose(values, first) * (1 - up) + choose(values, first + 1) * up
        high = choose(values, second) * (1 - up) + choose(values, second + 1) * up
        share = by_math(math.exp, low * (1 - right) + high * right)
        # Shorter than all that was measured, it takes as long as the shortest.
        return share * by_math(_power_of_two, minimum(0.0, microseconds - ROOFS[0]))

    def time(self, length: Number, roof: Number) -> Number:
        """Seconds of a kernel whose roof is so many, or of each of several.

        >>> surface = surface_of("product", "h100", "vllm", "bf16")
        >>> f"{surface.time(4096, 556e-6) * 1e6:.0f} µs"
        '706 µs'
        """
        return roof / self.share(length, roof)


_power_of_two = partial(pow, 2)


def load(path: Path | str = FILE) -> Iterator[Surface]:
    """Every surface of a file, checked.

    >>> next(load()).kernel
    'caches'
    """
    for cells in _lines(path):
        yield _surface(cells, path)


def _lines(path: Path | str) -> Iterator[list[str]]:
    head, *lines = list(csv.reader(read_text(path).splitlines())) or [[]]
    if tuple(head) != COLUMNS:
        raise InputError(f"{path}: its columns must be {', '.join(COLUMNS)}")
    yield from filter(None, lines)


def _surface(cells: list[str], path: Path | str) -> Surface:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{path}: a cell for each column is needed; got {', '.join(cells[:5])}")
    kernel, device, program, version, format, count, *off, hundredths = cells
    owner = f"{path}: {kernel} {device} {program} {version} {format}"
    if kernel not in LENGTHS:
        raise InputError(f"{owner}: the kernel must be one of {', '.join(LENGTHS)}")
    try:
        shares = tuple(-int(number) / 100 for number in hundredths.split())
        rows = int(count)
        error_of_table, before, alike = map(error, off)
    except ValueError:
        raise InputError(f"{owner}: rows, errors and hundredths must be numbers") from None
    if error_of_table is None:
        raise InputError(f"{owner}: how far its own rows are off is needed")
    if len(shares) != len(LENGTHS[kernel]) * len(ROOFS):
        raise InputError(f"{owner}: a share for each length and roof is needed; got {len(shares)}")
    if max(shares) > 0:
        raise InputError(f"{owner}: a share is above 1, faster than the published peaks")
    times = tuple(map(sub, LADDER, shares))
    shortest = math.exp(LADDER[0] - max(shares[:: len(ROOFS)]))
    if shortest < SHORTEST * 1e6 * (1 - ROUNDING):
        raise InputError(
            f"{owner}: its shortest kernel takes {shortest:.2g} µs; none takes less than"
            f" {SHORTEST * 1e6:g} µs, so that it was not waited for"
        )
    rises = tuple(map(sub, times[1:], times))
    if min(rises) < -ROUNDING:
        raise InputError(
            f"{owner}: its time falls by {1 - math.exp(min(rises)):.0%} from point"
            f" {rises.index(min(rises)) + 1} to the next, with more work"
        )
    risen = without_falls(shares, waiting_for_weights(kernel, device, format))
    return Surface(
        kernel, device, program, version, format, rows, error_of_table, before, alike, risen
    )


def error(cell: str) -> Error | None:
    """An error as files have it, a median and one with its sign; None of an empty cell.

    >>> error("0.05 -0.01")
    Error(median=0.05, signed=-0.01)
    """
    return Error(*map(float, cell.split(" ", 1))) if cell else None


@cache
def _stored() -> dict[tuple[str, str, str, str], list[list[str]]]:
    """Lines by kernel, device, program and format: a plan asks for few of more than a thousand."""
    lines: dict[tuple[str, str, str, str], list[list[str]]] = {}
    for cells in _lines(FILE):
        kernel, device, program, _, format = cells[:5]
        lines.setdefault((kernel, device, program, format), []).append(cells)
    return lines


@cache
def _versions(kernel: str, device: str, program: str, format: str) -> tuple[Surface, ...]:
    """The surfaces of a kernel, the newest version last."""
    lines = _stored().get((kernel, device, program, format), ())
    surfaces = (_surface(cells, FILE) for cells in lines)
    return tuple(sorted(surfaces, key=lambda surface: number_of(surface.version)))


def number_of(version: str) -> tuple[int, ...]:
    """The numbers of a version, by which versions are ordered.

    >>> number_of("0.24.0") > number_of("0.9.1"), number_of("1.3.0rc20")
    (True, (1, 3, 0, 20))
    """
    return tuple(map(int, re.findall(r"\d+", version)))


def stand_ins(kernels: Kernels, alike: Iterable[Kernels]) -> tuple[Kernels | None, Kernels | None]:
    """Return the stand-ins for kernels that were not measured: alike but for version or device.

    That is the newest of the older versions on their device, and the same version on the device
    that ALIKE names.

    >>> several = [surface_of("product", key, "vllm", "bf16", "0.24") for key in ("h100", "h200")]
    >>> before, there = stand_ins(several[0], several)
    >>> before, there.device
    (None, 'h200')
    """
    several = list(alike)
    older = (
        other
        for other in several
        if other.device == kernels.device and number_of(other.version) < number_of(kernels.version)
    )
    there = (ALIKE.get(kernels.device), kernels.version)
    same = (other for other in several if (other.device, other.version) == there)
    return max(older, key=lambda other: number_of(other.version), default=None), next(same, None)


def surface_of(
    kernel: str, device: str, program: str, format: str, version: str = ""
) -> Surface | None:
    """The surface of a kernel by a program; of the newest version at most as new as is asked for.

    A version older than all that were measured is not told apart from the newest, which published
    rows of such versions are nearer to than to the oldest. One that contradicts what was measured
    beside it gives its place to the next. None where nothing was measured.

    >>> surface_of("experts", "b200", "vllm", "nvfp4", "0.19").version
    '0.19.0'
    """
    versions = _versions(kernel, device, program, format)
    surface = as_asked(versions, version)
    if surface is None:
        return None
    index = versions.index(surface)
    before, after = versions[:index][-1:], versions[index + 1 :][:1]
    if not surface.contradicts(*after):
        return surface
    return replace((after or before)[0], instead_of=surface.version)


def as_asked(versions: Sequence[Kernels], version: str) -> Kernels | None:
    """Return the newest of sorted versions that is no newer than asked for, else the newest.

    >>> kernel = "experts", "b200", "vllm", "nvfp4"
    >>> several = [surface_of(*kernel, asked) for asked in ("0.19", "0.24")]
    >>> as_asked(several, "0.20").version, as_asked(several, "0.1").version, as_asked([], "0.1")
    ('0.19.0', '0.24.0', None)
    """
    if not versions or not version:
        return versions[-1] if versions else None
    wanted = number_of(version)
    older = [one for one in versions if number_of(one.version)[: len(wanted)] <= wanted]
    return (older or versions)[-1]


@cache
def devices() -> tuple[str, ...]:
    """The devices whose kernels were measured.

    >>> "h100" in devices(), "h800" in devices()
    (True, False)
    """
    return tuple(dict.fromkeys(device for _, device, _, _ in _stored()))


@cache
def newest(device: str, program: str) -> str:
    """The newest version of a program that was measured on a device; "" for none.

    >>> newest("h100", "vllm"), newest("t4", "vllm")
    ('0.24.0', '')
    """
    versions = (
        version
        for (_, of, by, _), lines in _stored().items()
        if (of, by) == (device, program)
        for _, _, _, version, *_ in lines
    )
    return max(versions, key=number_of, default="")


@cache
def programs() -> tuple[str, ...]:
    """The programs whose kernels were measured.

    >>> sorted(programs())
    ['sglang', 'tensorrt-llm', 'vllm']
    """
    return tuple(dict.fromkeys(program for _, _, program, _ in _stored()))
