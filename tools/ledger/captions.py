"""Claims of captions on the rows of their tables, as words and as what the cells must hold.

The words stand in the caption as they are here, with the name of each value that it quotes in
braces; these values are arguments of what must hold, after the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, nan

from calc import quantity
from calc.derivations.cost_and_carbon import OwnOrApi
from tools.ledger import chapter_tables
from tools.ledger.numbers import numbers


@dataclass(frozen=True)
class Table:
    """The printed cells of a table; a number with a unit of its own is in its base unit."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __getitem__(self, head: str) -> list[float]:
        """The numbers under the first head that begins so; a dash is none."""
        return [number(row[self._at(head)]) for row in self.rows]

    def ratios(self, above: str, under: str) -> list[float]:
        return [a / b for a, b in pairs(self[above], self[under])]

    def words(self, head: str) -> list[str]:
        return [row[self._at(head)] for row in self.rows]

    def where(self, **cells: str) -> Table:
        """The rows whose cells begin so, by the first words of their heads."""
        kept = self.rows
        for head, start in cells.items():
            column = self._at(head)
            kept = tuple(row for row in kept if row[column].startswith(start))
        assert kept, f"no row begins with {cells}"
        return Table(self.heads, kept)

    def named(self, start: str) -> Table:
        """The rows whose first cell begins so."""
        return self.where(**{self.heads[0]: start})

    def _at(self, head: str) -> int:
        return next(at for at, title in enumerate(self.heads) if title.startswith(head))


def number(cell: str) -> float:
    value = next(numbers(cell.replace("≈ ", "")), None)
    if value is None:
        return nan
    if value.unit and value.unit != "%":
        return float(quantity(value.value, value.unit).to_base_units().magnitude)
    return value.value


def table(name: str) -> Table:
    heads, *rows = (
        tuple(chapter_tables.words("|".join(line))) for line in chapter_tables.table(name).printed
    )
    return Table(heads, tuple(rows))


def known(values: Iterable[float]) -> list[float]:
    return [value for value in values if not isnan(value)]


def pairs(low: Sequence[float], high: Sequence[float]) -> list[tuple[float, float]]:
    both = [(a, b) for a, b in zip(low, high, strict=True) if not isnan(a) and not isnan(b)]
    assert both, "no row has both numbers"
    return both


def below(low: Sequence[float], high: Sequence[float]) -> bool:
    """Return whether the first number is less than the second in every row that has both."""
    return all(a < b for a, b in pairs(low, high))


def rises(values: Iterable[float]) -> bool:
    """Return whether no number is less than the one before it, and the last exceeds the first."""
    row = known(values)
    return all(a <= b for a, b in pairwise(row)) and row[0] < row[-1]


def falls(values: Iterable[float]) -> bool:
    return rises(-value for value in values)


def by(key: Sequence[float], values: Sequence[float]) -> list[float]:
    """The values in the order of a key."""
    return [value for _, value in sorted(pairs(key, values))]


def every(values: Iterable[float], holds: Callable[[float], bool]) -> bool:
    row = known(values)
    return bool(row) and all(map(holds, row))


def middle(values: Iterable[float]) -> float:
    row = sorted(known(values))
    return row[len(row) // 2]


def close(cell: float, quoted: float) -> bool:
    """Return whether a value that a caption quotes is that of a cell, which has fewer digits."""
    return bool(abs(cell - float(quoted)) < 0.05 * abs(cell))


def own_is_dearer(load: str) -> bool:
    """Return whether devices of one's own cost more at a load than the dearest API."""
    own = OwnOrApi.rent * OwnOrApi.found.devices(load)
    return bool(own > OwnOrApi.found.bill(OwnOrApi.dearest) * quantity(load))


def share(sources: Table, start: str) -> float:
    """Return the share of a table's rows whose source begins so: of what was measured."""
    origins = sources.words("Source")
    return sum(word.startswith(start) for word in origins) / len(origins)


Claim = tuple[str, str, Callable[..., bool]]

# fmt: off
CLAIMS: list[Claim] = [
    ("tbl-agent-server", "With as many sessions as the dense model holds the mixture is still the dearer one, with many more DP of attention makes it the cheaper one",
     lambda t: t["Price"][0] < min(t["Price"][2:4]) and t["Price"][5] < t["Price"][1] < t["Price"][4]),
    ("tbl-flash", "No rate of the first is in our data",
     lambda t: isnan(t["Rate"][0])),
    ("tbl-attention-intensity", "Prefill is compute-bound and decode with grouped queries memory-bound; latents stand near the ridge, unless TP shares out their heads",
     lambda t: t["Intensity"][0] > 590 and t["Intensity"][2] < 100 and all(150 < i < 590 for i in t["Intensity"][3:5])
         and t.named("the same, TP")["Intensity"][0] < 100),
    ("tbl-third-roof", "reach least where that pace is lowest, on the B200",
     lambda t: all(min(t[engine]) == min(t.named("B200")[engine]) and t[engine].index(min(t[engine]))
         == t["In turn"].index(min(t["In turn"])) for engine in ("SGLang", "vLLM", "TensorRT-LLM"))),
    ("tbl-third-roof", "lie near the pace of doing products and exponentials in turn, or below it",
     lambda t: all(every([k / p for p, k in pairs(t["In turn"], t[engine])], lambda x: x < 1.25)
         for engine in ("SGLang", "vLLM", "TensorRT-LLM"))),
    ("tbl-split-decode", "come near the bandwidth when they read for long enough",
     lambda t: all(rises(by(t["At peak"], t[d])) and max(t[d]) > 90 for d in ("H100", "B200",
         "B300"))),
    ("tbl-sums-of-engines", "Below a few megabytes engines' kernels are several times as fast as NCCL's curve",
     lambda t: every([r for r, a in zip(t["NCCL over"], t.words("Array"), strict=True) if a in ("120 kB",
         "1 MB")], lambda r: r > 2.4)),
    ("tbl-nvls", "Sums in the switch raised the bus bandwidth of large all-reduces on these servers",
     lambda t: below(t["Ring"], t["With NVLS"])),
    ("tbl-collectives", "Every other collective sends half of what an all-reduce sends",
     lambda t: all((2 * x == t.named("All-reduce")["Each sends"][0] for x, w in zip(t["Each sends"],
         t.words("Collective"), strict=True) if w != "All-reduce"))),
    ("tbl-price-against-pace", "A faster token costs more on every device",
     lambda t: below(t["20"], t["50"]) and below(t["50"], t["100"])),
    ("tbl-price-against-pace", "at the faster paces the device with the lower rent has the dearer token",
     lambda t: t["Rent"][0] == min(t["Rent"]) and all(t[pace][0] == max(t[pace]) for pace in ("50",
         "100"))),
    ("tbl-carbon", "The equation reproduces what authors report",
     lambda t: every(t["Ratio"], lambda r: abs(r - 1) < 0.05)),
    ("tbl-one-call", "Even without any overlap, the bounds promise more speed than is to be expected",
     lambda t: all(below(t.named(n)["Perfect"], t.named(n)["No"]) and below(t.named(n)["No"], t.named(n)["Expected"])
         for n in ("TTFT", "TPOT", "Answer")) and below(t.named("Throughput")["Expected"], t.named("Throughput")["No"])),
    ("tbl-decide-drafts", "A dash does not fit",
     lambda t: isnan(t["512"][1]) and isnan(t["128"][2])),
    ("tbl-drafts", "More tokens in a pass bring more speed, less than in proportion",
     lambda t: rises(by(t["Tokens"], t["Speedup"])) and below(t["Speedup"], t["Tokens"])),
    ("tbl-drafts-full", "Where caches fill the memory, drafts gain for many users too; where short contexts leave it room, a large batch loses by them",
     lambda t: min(t["By a head"][3:]) > 1.5 and t["By a head"][1] < 1 and (t["By the 8B"][1] < 1)),
    ("tbl-drafts-mixture", "Multi-token prediction gained in each of these reports",
     lambda t: every(t["Gain"], lambda g: g > 1)),
    ("tbl-chunks", "Small chunks spare the other requests, but hold up the prompt",
     lambda t: rises(t["Step, bound"]) and rises(t["Step, expected"]) and falls(t["Prompt"]) and
         rises(t["Rate"])),
    ("tbl-token-bytes", "sends tens to hundreds of kilobytes in every layer",
     lambda t: every([a + b for a, b in pairs(t["Dispatch"], t["Combine"])], lambda kb: 20 < kb <
         1000)),
    ("tbl-two-fabrics", "A rack that is one NVLink domain takes the exchange off the network",
     lambda t: 10 * max(t.named("NVIDIA GB300 NVL72")["Both ways"][:1]) < min(t.named("NVIDIA DGX")["Both ways"])),
    ("tbl-all-to-all", "several times slower where it leaves the domain, and slower still over more servers",
     lambda t: falls(t["Bus"][:3]) and t["Bus"][0] > 3 * t["Bus"][1] and (t["Bus"][4] > 3 * t["Bus"][5])),
    ("tbl-exchange-kernels", "Kernels for thousands of tokens fill most of a port",
     lambda t: every([*t.where(Slowest="the")["Dispatch"], *t.where(Slowest="the")["Combine"]], lambda rate:
         rate > 0.8 * 50)),
    ("tbl-width-that-hides", "More tokens do not hide an exchange; wider experts and faster links do",
     lambda t: t.named("GB300")["Width"][0] < t.named("8 × B200")["Width"][0] and t.named("GB300")["Planned"][0] <
         t.named("8 × B200")["Planned"][0]),
    ("tbl-training-exchange", "Across servers, steps were far faster than expected, in both rows; in racks, one was far faster and one as expected",
     lambda t: every(t["Error"][2:], lambda e: e < -20) and t["Error"][0] < -20 and (abs(t["Error"][1])
         < 5)),
    ("tbl-expert-width", "Wider groups hold fewer weights on each GPU and more sequences",
     lambda t: rises(t["GPUs"]) and falls(t["Weights each"]) and rises(t["Sequences"])),
    ("tbl-deployments", "are expected to within {FurthestDeployment.error}",
     lambda t, error: close(max(map(abs, t["Error"])) / 100, error)),
    ("tbl-rack-rates", "two decode steps under SGLang took at least {RackRates.sooner} less time than expected, one under TensorRT-LLM a little more",
     lambda t, sooner: len(known(t["Error"])) == 3 and close(-sorted(known(t["Error"]))[1] / 100,
         sooner) and (0 < max(known(t["Error"])) < 10)),
    ("tbl-tuning-mixtures", "Memory follows all parameters, work the active ones",
     lambda t: rises(by(t["Parameters"], t["Mixed, Adam"])) and rises(by(t["Parameters"], t["LoRA"]))
         and (t["Work"][2] / t["Work"][0] < t["Parameters"][2] / t["Parameters"][0])),
    ("tbl-tuning-measured", "Programs that are not compiled need more memory than the law predicts; compiled ones lie on either side",
     lambda t: every([*t.where(Run="all weights, not")["Error"], *t.named("PEFT")["Error"]], lambda e: e < -15) and min(t["Error"][1:9])
         < 0 < max(t["Error"][1:9])),
    ("tbl-models-of-a-step", "PPO keeps {ByMethod.ppo_over_grpo} times the state of GRPO without a reference",
     lambda t, ratio: close(t.named("PPO")["Bytes"][0] / t.named("GRPO, rewards by a program")["Bytes"][0],
         ratio)),
    ("tbl-rl-step", "the wait for the longest answer is the largest part of a synchronous step",
     lambda t: t["Time"][1] == max(t["Time"]) and t.words("Part")[1].startswith("The tail: waiting for the longest")),
    ("tbl-rollouts-measured", "The law explains only part of a published step",
     lambda t: below(t["Step"], t["Measured"])),
    ("tbl-format-rates", "On B300 and GB300 INT8 is a small fraction of BF16",
     lambda t: every([*t.named("B300")["INT8"], *t.named("GB300")["INT8"]], lambda r: r < 0.1)),
    ("tbl-many-rows", "On a B200 NVFP4 is published at {EngineProductTables.b200_published} times BF16 and is about {EngineProductTables.b200_reached} times as fast here",
     lambda t, published, reached: close(t.named("B200")["NVFP4"][0], reached) and close(4,
         published)),
    ("tbl-gemm-tiles", "A large tile needs little from L2 and fits few shapes; for a small one it is the reverse",
     lambda t: falls(t["Intensity"]) and rises(t["Left of 64"]) and falls(t["Sums"])),
    ("tbl-gemm-generations", "three data-centre generations",
     lambda t: len(t.heads) == 4),
    ("tbl-gemm-steps", "One more row costs less than the waves of one tile predict",
     lambda t: below(t["Measured"], t["One tile"])),
    ("tbl-gemm-held", "In the middle set a measured rate and a start explain half of what the datasheet's roofline misses; tiles and splits add little",
     lambda t: 0.45 < middle(t.ratios("and start", "Roofline")) < 0.55 and middle([a - b for b, a in pairs(t["Best tile"],
         t["and start"])]) <= 4),
    ("tbl-gemm-formats", "Narrow formats gain less than their peaks promise",
     lambda t: all((rate / bf16 < t["Peak"][n] / t.where(Format="BF16", Device=device)["Peak"][0]
         for engine in ("SGLang", "vLLM", "TensorRT-LLM") for n, (device, rate) in enumerate(zip(t.words("Device"),
         t[engine], strict=True)) if not isnan(rate) and (not t.words("Format")[n].startswith("BF16"))
         for bf16 in t.where(Format="BF16", Device=device)[engine]))),
    ("tbl-gemm-experts", "come nearest to their roof with a single token an expert, and fall far below it with many",
     lambda t: falls(t["Reached"]) and falls([number(row[4]) for row in t.rows]) and (t["Tokens"][0]
         == 1)),
    ("tbl-same-flop", "The same operations can take several times as long when data move differently",
     lambda t: below(t["First"], t["Second"]) and max(t["Slower"]) > 4),
    ("tbl-cheat-sheet", "a TPU v5p seems to be worth less than half an H100 SXM; it has {CheatSheet.bandwidth_ratio} of the H100's memory bandwidth, which is what binds decode",
     lambda t, share: t["TPU / H100"][0] < 0.5 and close(t["TPU / H100"][1], share)),
    ("tbl-format-bits", "NVFP4 has an FP32 scale of the whole tensor besides",
     lambda t: "NVFP4" in t.words("Format")),
    ("tbl-peak-gpu", "INT8 of B300 and GB300 is a small fraction of that of B200 and GB200, and so is FP64 of the B300",
     lambda t: t.named("B300")["INT8"][0] < 0.1 * t.named("B200")["INT8"][0] and t.named("GB300")["INT8"][0]
         < 0.1 * t.named("GB200")["INT8"][0]),
    ("tbl-per-watt", "An L4 leads an H100 in arithmetic and trails it in bytes",
     lambda t: t.named("NVIDIA L4")["FP16"] > t.named("NVIDIA H100")["FP16"] and t.named("NVIDIA L4")["Memory"]
         < t.named("NVIDIA H100")["Memory"]),
    ("tbl-reached-all-reduce", "let the bus bandwidth exceed the wire",
     lambda t: max(t.named("8 in DGX H100")["Best"]) > 450),
    ("tbl-reached-others", "Across servers an all-to-all falls to the port; an all-gather, whose rings leave by all ports of a server, does not",
     lambda t: t.where(Operation="all-to-all", Devices="80")["Best"][0] < 60 and min(t.where(Operation="all-gather",
         Devices="16")["Best"]) > 100),
    ("tbl-short-sums", "the fastest engine's own all-reduce in a graph takes less than half of the shortest time that NCCL's tests had",
     lambda t: all(min(known(t.named(gpu)[head])) < min(known(table("tbl-reached-all-reduce")["Shortest"])) / 2 for gpu in t.words("GPUs")
         for head in ("64 KiB, 2", "4"))),
    ("tbl-base-latency", "For NVLink no measurement of the wire was found",
     lambda t: not any(word.startswith("NVLink") for word in t.words("From"))),
    ("tbl-four-links", "The half-performance size is latency times bandwidth",
     lambda t: rises(by(t["Half"][:3], t["Bandwidth"][:3]))),
    ("tbl-links-today", "A port of InfiniBand NDR has a small part of the bandwidth of the NVLink beside it, {LinksOfToday.least_apart} times as fast on an H100 and {LinksOfToday.most_apart} times on a B200",
     lambda t, h100, b200: t.named("NVLink 4")["Bandwidth"] == [h100 * t.named("InfiniBand NDR")["Bandwidth"][0]] and
         t.named("NVLink 5")["Bandwidth"] == [b200 * t.named("InfiniBand NDR")["Bandwidth"][0]]),
    ("tbl-as-sold", "in a torus one link of six",
     lambda t: abs(t["One"][3] / 600 - 1 / 6) < 0.001),
    ("tbl-tails", "A few slow requests fill a system",
     lambda t: t.named("Slow")["Rate"] < t.named("Fast")["Rate"] and t.named("Slow")["In flight"]
         > t.named("Fast")["In flight"]),
    ("tbl-human", "If a register were a second away, an SSD would be more than a day away",
     lambda t: t.named("Register")["Human"] == [1.0] and max((x for x, w in zip(t["Human"], t.words("Level"),
         strict=True) if "SSD" in w)) > 86400),
    ("tbl-properties", "From Hopper to Blackwell HBM more than doubled and NVLink doubled; what is nearest to the arithmetic stayed, and so did PCIe",
     lambda t: all(2 < number(new) / number(old) < 2.4 for old, new in (t.named("HBM").rows[0][1::3], t.named("HBM").rows[0][3::3]))
         and number(t.named("Another GPU").rows[0][6]) == 2 * number(t.named("Another GPU").rows[0][3]) and all(number(row[4]) < 1.2 * number(row[1]) for row in t.rows if row[0].startswith(("Registers",
         "L1")))),
    ("tbl-energy-movement", "Accounts of one energy differ far more for the caches of a GPU than for its DRAM",
     lambda t: t.named("SRAM, 1 MB")["On an A100"][0] / t.named("SRAM, 1 MB")["7 nm"][0] > 4 * t.named("HBM2")["On an A100"][0]
         / t.named("HBM2")["7 nm"][0]),
    ("tbl-memories-today", "as for the energies of LPDDR5X, HBM3 and HBM4",
     lambda t: all((isnan(e) for w, e in zip(t.words("Memory"), t["Energy"], strict=True) if re.match("LPDDR5X|HBM3\\b|HBM4\\b",
         w)))),
    ("tbl-tiles", "HBM needs a larger tile than one SM holds",
     lambda t: t.named("one SM")["From HBM"][0] < t.named("what the ridge")["From HBM"][0] == 989),
    ("tbl-range", "The last column counts the powers of two",
     lambda t: t.heads[-1] == "Powers of two"),
    ("tbl-fp8-recipes", "How much an outlier spoils depends on who shares its scale",
     lambda t: falls([t["Beside"][n] for n in (0, 2, 3, 5)])),
    ("tbl-loss-gaps", "The largest gaps that were reported are in four bits",
     lambda t: max(zip(t["Loss"], t.words("Factors"), strict=True), key=lambda p: -1 if isnan(p[0])
         else p[0])[1] in ("NVFP4", "MXFP4")),
    ("tbl-ridge-over-years", "Ridge points lie much closer together than peaks or bandwidths do",
     lambda t: 2 * max(t["Ridge"]) / min(t["Ridge"]) < min(max(t[c]) / min(t[c]) for c in ("TFLOP/s",
         "TB/s"))),
    ("tbl-bytes", "Training takes several times the memory of serving",
     lambda t: min(t["Model"][2:]) > 3 * max(t["Model"][:2])),
    ("tbl-cached", "depends on the design of attention, not on the number of parameters",
     lambda t: t.named("DeepSeek-V3")["Total"] > t.named("Llama 3.1 70B")["Total"] and t.named("DeepSeek-V3")["In BF16"]
         < t.named("Llama 3.1 70B")["In BF16"]),
    ("tbl-light", "Distance alone can use up the budget of a click",
     lambda t: max(t["Round"]) >= 100),
    ("tbl-other-flux", "Compiled, an image gets half of the peak; not compiled, far less",
     lambda t: t.named("measured, compiled")["Share"] == [50] and t.named("measured, not")["Share"][0]
         < 40),
    ("tbl-reported-failures", "fails where the mean outweighs the deviation by",
     lambda t: all(((m > lim) == (out != "right") for m, lim, out in zip(t["Mean"], t["Limit"], t.words("Outcome"),
         strict=True)))),
    ("tbl-measured-groups", "In the median, kernels and training are predicted best, serving least well",
     lambda t: max(t.named("kernels")["Error"] + t.named("training")["Error"]) < t.named("collectives")["Error"][0]
         < t.named("serving")["Error"][0]),
    ("tbl-by-software", "the slowest against the expectation stand first",
     lambda t: all(falls(t.where(Work=w)["Signed"]) for w in set(t.words("Work")))),
    ("tbl-by-device", "Rows of GB300 in serving and TPU v7 are few",
     lambda t: max((n for w, d, n in zip(t.words("Work"), [r[1] for r in t.rows], t["Rows"],
         strict=True) if (w, d) == ("serving", "GB300") or d == "TPU v7")) < 15),
    ("tbl-one-model", "batches of hundreds were faster than expected",
     lambda t: all(e < -10 for b, e in zip(t["Batch"], t["Error"], strict=True) if b > 400)
         and all(abs(e) < 10 for b, e in zip(t["Batch"], t["Error"], strict=True) if b < 400)),
    ("tbl-parts-decode", "Messages and the host, which the bound leaves out, are {PartsOfDecode.beside} of this step",
     lambda t, share: close((t.named("all-reduces")["Share"][0] + t.named("the host")["Share"][0])
         / 100, share)),
    ("tbl-parts-training", "GEMMs below their peak are most of this step",
     lambda t: t.words("Part")[0] == "GEMMs" and t["Share"][0] > 50),
    ("tbl-closed-loops", "Dense models under vLLM and TensorRT-LLM are predicted to within {ClosedLoops.of_dense} in the median on every device; mixtures under vLLM on H100s and H200s less well",
     lambda t, most: close(max((e for w, e in zip(t.words("Software"), t["Error"], strict=True) if
         w in ("vLLM", "TensorRT-LLM"))) / 100, most) and min((e for w, d, e in zip(t.words("Software"),
         t.words("Device"), t["Error"], strict=True) if w == "vLLM MoE" and d in ("H100", "H200"))) / 100 > most),
    ("tbl-peers", "On these rows `calc` is nearest",
     lambda t: all(abs(number(row[3]) - 1) <= min(abs(v - 1) for v in known(map(number, row[4:])))
         for row in t.rows)),
    ("tbl-peer-loops", "Nobody is nearest for every engine",
     lambda t: len({c <= a for c, a in pairs(t["calc, error"], t["aiconfigurator, error"])}) == 2),
    ("tbl-fitted-numbers", "A few fitted numbers are judged by many other rows",
     lambda t: max(t["Numbers"]) <= 5 and min(t["Other rows"]) > 10),
    ("tbl-schemes", "Rounding errors reach half a step and no further, and if all values have the same sign, the asymmetric step is half as large",
     lambda t: all((b <= a * 1.001 for a, b in pairs(t["Half"], t["Largest"]))) and abs(t["Step"][3]
         / t["Step"][2] - 0.5) < 0.01),
    ("tbl-measured-joules", "A token takes less energy the fuller the batch is, although each GPU then draws more",
     lambda t: all(falls(part["Energy"]) and rises(part["Power"])
         for part in (t.named("4 H100"), t.named("2 B200")))),
    ("tbl-groups", "Smaller groups buy accuracy with memory",
     lambda t: falls(t["Group"]) and rises(t["Memory"]) and rises(t["SQNR"])),
    ("tbl-bell", "The fewer bits there are, the more each is worth",
     lambda t: rises([(a - b) / (m - n) for (m, a), (n, b) in zip(pairs(t["Bits"], t["One"]),
         pairs(t["Bits"], t["One"])[1:], strict=False)])),
    ("tbl-released-weights", "those of Kimi K2 and DeepSeek-V3 also hold scales of blocks, and those of DeepSeek-V3 the module",
     lambda t: t.named("DeepSeek-V3")["Files"] > t.named("DeepSeek-V3")["Counted"]),
    ("tbl-published-perplexity", "Eight bits cost little",
     lambda t: every([r for r, b in zip(t["Rise"], t.words("Bits"), strict=True) if b.startswith("8/")],
         lambda r: abs(r) < 5)),
    ("tbl-todays-quality", "MXFP4 loses more than NVFP4 in every row that has both, and FP8 less than a point",
     lambda t: below(t["MXFP4"], t["NVFP4"]) and all(a - b < 1 for a, b in pairs(t["BF16"], t["FP8"]))),
    ("tbl-published-tasks", "higher is better",
     lambda t: middle([b - a for a, b in pairs(t["Before"], t["After"])]) < 0),
    ("tbl-integer-float", "With one scale for all, integers are better on Gaussian data and floats beside an outlier; in blocks the two are close",
     lambda t: t["Gaussian"][0] > t["Gaussian"][1] and t["Beside"][0] < t["Beside"][1] and (abs(t["Gaussian"][2]
         - t["Gaussian"][3]) < 2) and (abs(t["Beside"][2] - t["Beside"][3]) < 2)),
    ("tbl-format-by-batch", "both gain less than the bits promise",
     lambda t: all((a / b < 2 for a, b in pairs(t["H100, BF16"], t["H100, FP8"]))) and all((a / b
         < 32 / 9 for a, b in pairs(t["B200, BF16"], t["B200, NVFP4"])))),
    ("tbl-batch", "Intensity follows the batch until inputs and outputs matter",
     lambda t: every([f / w for w, f in pairs(t["By weights"], t["In full"])][:3], lambda x: x >
         0.95) and t["In full"][-1] < 0.5 * t["By weights"][-1]),
    ("tbl-quantized-roof", "If only the weights are narrow, a smaller batch reaches the ridge; if products are narrow too, the ridge returns to about where it was",
     lambda t: all(falls([t[d][n] for n in range(3)]) for d in ("Ridge as a batch", "B200",
         "MI355X")) and t["Ridge as"][3] == t["Ridge as"][0]),
    ("tbl-network-roof", "Inside the domain the all-reduce of the block can hide behind its products; in a ring all of whose bytes go through ports it cannot",
     lambda t: every(t["Slower"], lambda x: x <= 1) and every(t["over a port"], lambda x: x > 1)),
    ("tbl-fusion", "Fusion pays if memory binds",
     lambda t: t["Separate / fused"][1] > 2 > 1.2 > t["Separate / fused"][0] and falls(t["Intensity"])),
    ("tbl-two-laws", "matters little to Gustafson and, on a large machine, is nearly everything to Amdahl",
     lambda t: min(number(row[4]) for row in t.rows) > 90 and t["of ideal"][-1] < 5),
    ("tbl-part", "A part that takes {PartOfStep.usual} of a step is worth {PartOfStep.usual_most} at most, however fast it becomes",
     lambda t, share, most: close(t.named("20")["Part free"][0] - 1, most) and close(0.2, share)
         and below(t["Part twice"], t["Part free"])),
    ("tbl-fractions", "In two families of published runs the fraction did not grow with the machine",
     lambda t: len(set(t.words("Run"))) == 2 and all(falls(t.named(run)["Serial"]) for run in set(t.words("Run")))),
    ("tbl-loads", "Reasoning keeps a server writing, summaries keep it reading",
     lambda t: t.named("reasoning")["Prefill"][0] == min(t["Prefill"]) and t.named("offline")["Prefill"][0]
         == max(t["Prefill"])),
    ("tbl-slots", "Answers slow down long before the slots run out",
     lambda t: t["Answer"][1] > 1.5 * t["Answer"][0] and isnan(t["Find"][1])),
    ("tbl-hits", "More is found of coding agents' prompts than of a chat service's",
     lambda t: max((x for x, w in zip(t["Found"], t.words("Load"), strict=True) if w.startswith("chat")))
         < min((x for x, w in zip(t["Found"], t.words("Load"), strict=True) if not w.startswith("chat")))),
    ("tbl-designed-service", "B200s need the fewest GPUs of these four, as replicas that do both; on the others two pools need fewer",
     lambda t: t.named("B200")["GPUs"][0] == min(t["GPUs"]) and len(t.rows) == 4 and all((("," in
         w) == (d != "B200") for d, w in zip(t.words("GPU"), t.words("Replicas"), strict=True)))),
    ("tbl-review-service", "B200s in one pool take the fewest GPUs and the lowest rent; on H200s two pools take fewer GPUs than one",
     lambda t: t["GPUs"][2] == min(t["GPUs"]) and t["Rent"][2] == min(t["Rent"]) and t["GPUs"][1]
         < t["GPUs"][0] and t.words("Pools") == ["one", "two", "one", "two"]),
    ("tbl-published-goodput", "too hopeful for limits of `Interactive`, and on most NVIDIA GPUs too cautious for the rest",
     lambda t: middle(t.where(Scenario="Interactive")["Error, narrow"]) > 0 and middle([e for e, g,
         s in zip(t["Error, narrow"], t.words("GPUs"), t.words("Scenario"), strict=True) if "MI3"
         not in g and s != "Interactive"]) < 0),
    ("tbl-fewer-bytes", "Smaller weights help one request, smaller caches help many",
     lambda t: t["Gain"][1] > t["Gain"][2] and t["Gain of many"][2] > t["Gain of many"][1]),
    ("tbl-serving-machines", "The bound says little of any token, and least with one user of the mixture",
     lambda t: min(t.ratios("Expected", "Bound")) > 1.8 and min(t.where(Model="DeepSeek", Batch="1").ratios("Expected", "Bound"))
         > 1.2 * max([*t.named("Llama").ratios("Expected", "Bound"), *t.where(Model="DeepSeek", Batch="64").ratios("Expected", "Bound"),
         *t.where(Model="DeepSeek", Batch="256").ratios("Expected", "Bound")])),
    ("tbl-serving-loops", "Of {Loops.count} servers, {Loops.outside} lie outside their interval",
     lambda t, count, outside: len(t.rows) == count and outside == sum(not number(row[4].split(" to ")[0])
         < quantity(number(row[5]), "ms").m_as("s") < number(row[4].split(" to ")[1]) for row in
         t.rows)),
    ("tbl-tensor-degree", "Twice the GPUs make a token {TensorDegree.least_gain} to {TensorDegree.most_gain} faster, and each GPU writes less",
     lambda t, least, most: falls(t["Measured"]) and falls(t["Rate"]) and (0.2 < least < most <
         0.7)),
    ("tbl-small-times", "The vendor's library stays far below the roofline of a Cortex-M4",
     lambda t: every(t["Over"], lambda x: x > 3)),
    ("tbl-small-times", "the rate that it reaches on the first network predicts the second, and flatters the rest",
     lambda t: abs(t["Error"][1]) < 10 and every(t["Error"][2:], lambda e: e < -20)),
    ("tbl-phone-decode", "In decode, a phone reaches about half of its bandwidth, a Jetson more",
     lambda t: every(t.named("Snapdragon")["Share"], lambda s: 40 < s < 65) and t.named("Jetson")["Share"][0]
         > max(t.named("Snapdragon")["Share"])),
    ("tbl-memory-modes", "Training holds far more than the usual estimate counts",
     lambda t: t.named("training")["FP32"][0] > 3 * t.named("all")["FP32"][0]),
    ("tbl-published-peaks", "is a floor, lower than what programs take by {VisualWakeWords.least_error} to {VisualWakeWords.largest_error}; the sum of all layers is always too high, for most of them by several times",
     lambda t, least, most: close(-max(t["Peak against"]) / 100, least) and close(-min(t["Peak against"])
         / 100, most) and below(t["Published"], t["All layers"]) and sum(r > 3 for r in t.ratios("All layers", "Published"))
         > len(t.rows) / 2),
    ("tbl-mixture-plans", "rates published for {MixtureOnB200s.published_devices} B200s, carried over with the same failures, make the run {MixtureOnB200s.run_inside} with EP inside servers and {MixtureOnB200s.run_across} across them, both outside these intervals",
     lambda t, devices, inside, across: devices == 256 and inside.m_as("day") > float(t.words("80 %")[1].split("–")[1].split()[0]) and
         across.m_as("day") < float(t.words("80 %")[2].split("–")[0])),
    ("tbl-mixture-plans", "a rack, and servers of B200s with EP inside them, train a mixture about equally fast; EP across servers is expected to be far slower",
     lambda t: t.words("Machine")[1].startswith("DGX B200") and 0.87 < t["Step"][1] / t["Step"][0] < 1.15 and t["Step"][2] > 1.5 * t["Step"][1]),
    ("tbl-more-and-more", "From the second row on the rate of a GPU falls with the tokens that it has in a step, and the expectation falls less steeply",
     lambda t: rises(by(t["Tokens"][1:], t["Measured"][1:])) and rises(by(t["Tokens"][1:], t["Expected"][1:])) and t["Expected"][-1]
         / t["Expected"][1] > t["Measured"][-1] / t["Measured"][1]),
    ("tbl-checkpoint-storage", "Storage must be faster by the square of what is not to be lost",
     lambda t: close(t["Share"][1] / t["Share"][2], 2) and close(t["Storage"][2] / t["Storage"][1], 4)),
    ("tbl-training-runs", "Some runs took as long as the equation says, others longer, at worst half as long again",
     lambda t: 0.99 < min(known(t["Ratio"])) < 1.01 and 1.4 < max(known(t["Ratio"])) <= 1.5),
    ("tbl-lever-precision", "A 16-bit format is as fast as its instructions",
     lambda t: middle(t["BF16 with"]) > 1 and every([*t["BF16 without"], *t["FP16 without"]],
         lambda s: s < 1)),
    ("tbl-offloading", "The host's memory, not the link, is the lower roof of offloading",
     lambda t: t.named("memory of the host")["Time"] > t.named("link")["Time"]),
    ("tbl-run-work", "match the work that reports quote, to within a percent or so, unless the reports count attention or recomputation too",
     lambda t: all((abs(r - 1) < 0.015 or run.startswith("OPT") for run, r in zip(t.words("Run"),
         t["Ratio"], strict=True)))),
    ("tbl-published-steps", "the faster format reaches a smaller part of its larger peak",
     lambda t: all(t["Of the peak"][n + 1] < t["Of the peak"][n] and t["Useful"][n + 1] > t["Useful"][n] for n in range(len(t.rows) - 1)
         if t.rows[n][0] == t.rows[n + 1][0] and t.rows[n][2] == t.rows[n + 1][2])),
    ("tbl-tokens-to-hide", "rules plan by measured curves, with a rack below servers of B200s too",
     lambda t: (lambda r: r["GB300"][0] < r["DGX B200"][0])(table("tbl-cut-thresholds").named("DP, FSDP across"))),
    ("tbl-tokens-to-hide", "A faster device at the same ports needs more tokens to hide its gradients; a rack of GB300s, which is one domain, needs fewer than servers of B200s",
     lambda t: below(t.named("NVIDIA DGX H100")["Dense"], t.named("NVIDIA DGX B200")["Dense"]) and
         below(t.named("NVIDIA GB300")["Dense"], t.named("NVIDIA DGX B200")["Dense"])),
    ("tbl-model-parts", "Most of a transformer consists of feed-forward networks; of the hybrid in the last row they are less than attention and states",
     lambda t: every(t.ratios("Feed-forward", "Total")[:-1], lambda s: s > 0.5) and t["Feed-forward"][-1]
         < t["Attention"][-1]),
    ("tbl-matmuls", "prefill is compute-bound except for its scores and weighted values, and decode is memory-bound",
     lambda t: all(((p < 295) == w.startswith(("scores", "weighted")) for w, p in zip(t.words("Product"),
         t["Prefill"], strict=True))) and every([*t["One decode"], *t["Many decodes"]], lambda i:
         i < 295)),
    ("tbl-kv-cache", "The cache varies by a factor of {Caches.ratio} between these models, and does not follow their size",
     lambda t, ratio: close(max(t["Two bytes"]) / min(t["Two bytes"]), ratio)),
    ("tbl-cache-room", "Caches get less than weights leave, least where weights nearly fill the device, and the same model gets another room in another version",
     lambda t: (lambda shares: max(shares) < 1 and shares.index(min(shares)) == t["Without"].index(min(t["Without"])))(t.ratios("Logged", "Without"))
         and t.words("Model")[2] == t.words("Model")[3] and t["Logged"][2] < t["Logged"][3]),
    ("tbl-kept", "depends more on the kinds of layers than on the model's size",
     lambda t: t.named("DeepSeek-V3")["Long"] < t.named("Gemma 3 27B")["Long"]),
    ("tbl-activations", "whole layers are recomputed last",
     lambda t: t.words("What")[-1] == "recompute whole layers"),
    ("tbl-generations", "the ridge point nearly doubled from the A100 to the H100 and has risen little above that since, and the H200's faster memory lowered it; in the narrowest format it rose further",
     lambda t: 1.8 < t["Ridge, two"][2] / t["Ridge, two"][1] <= 2 and t["Ridge, two"][3] < t["Ridge, two"][2]
         and (max(t["Ridge, two"]) < 1.1 * t["Ridge, two"][2]) and (max(t["Ridge, narrowest"]) > t["Ridge, narrowest"][2])),
    ("tbl-conventions", "The divisor decides whether the largest value comes back",
     lambda t: rises(t["Divisor"]) and rises(t["Error"]) and (t["Error"][0] == 0)),
    ("tbl-sandia", "obey it, once the right fraction is used",
     lambda t: below([s / 100 for s in t["Serial, of the serial"]], [1 / x for x in t["Speedup"]])),
    ("tbl-sandia", "Three programs on the same machine",
     lambda t: len(t.rows) == 3),
    ("tbl-validation", "Kernels that stream or multiply square matrices run about as predicted; those that waste cache lines or make many short calls run far slower",
     lambda t: all(every(t.named(k)["Ratio"], lambda r: 0.75 < r < 1.25) for k in ("dot", "add", "scale",
         "sum", "ReLU", "GEMM 1024", "GEMM 256")) and all(every(t.named(k)["Ratio"], lambda r: r > 10)
         for k in ("transpose", "gather elements", "resolvent"))),
    ("tbl-memories-today", "Newer memories are faster and take less energy per bit",
     lambda t: all(rises(known(t.named(k)["Bandwidth"])) for k in ("HBM", "GDDR", "SSD")) and all(falls(t.named(k)["Energy"])
         for k in ("HBM", "GDDR"))),
    ("tbl-as-sold", "Links are rarely sold by the bandwidth that a message reaches",
     lambda t: sum(re.fullmatch(r"\S+ GB/s", w) is not None and number(w) == number(f"{m:g} GB/s") for w,
         m in zip(t.words("Printed"), t["One message"], strict=True)) == 0),
    ("tbl-intervals", "Intervals hold more or fewer rows of a new source than they say, by class",
     lambda t: min(t["Sources"]) < 80 < max(t["Sources"])),
    ("tbl-released-weights", "The formats of a model's groups of matrices explain the size of its files",
     lambda t: every(t.ratios("Files", "Counted"), lambda r: abs(r - 1) < 0.03)),
    ("tbl-recipes-that-ran", "mixtures mostly without TP, dense models with it, and with less of it in racks",
     lambda t: middle([number(w[2:]) for w in t.words("Layout")[:7]]) == 1 and t.words("Layout")[8]
         < t.words("Layout")[7] and t.words("Layout")[10] < t.words("Layout")[9]),
    ("tbl-sources-light", "What light allows is a matter of definition; cables and routes are estimates",
     lambda t: t.words("Source")[0].startswith("definition") and share(t, "estimate") > 0.9),
    ("tbl-sources-arithmetic", "All of these energies are from one paper",
     lambda t: all("@horowitz2014computing" in w for w in t.words("Source"))),
    ("tbl-sources-access", "Measured energies of an access stand beside the estimates that circulate",
     lambda t: min(share(t, "measured"), share(t, "estimate")) > 0.2),
    ("tbl-sources-newer-process", "Energies in the newer process are nearly all estimates; few were measured",
     lambda t: share(t, "estimate") > 0.8 and 0 < share(t, "measured") < 0.2),
    ("tbl-sources-bits", "seldom measured by others",
     lambda t: share(t, "measured") < 0.4),
    ("tbl-sources-anchors", "Nearly all of the anchors are estimates",
     lambda t: share(t, "estimate") > 0.8),
    ("tbl-sources-runs", "the MFU of GPT-3, Gopher and MT-NLG was calculated by the authors of PaLM",
     lambda t: sum(run.startswith("MFU ") and "@chowdhery2023palm" in source for run, source in t.rows) == 3),
    ("tbl-sources-other-devices", "One program measured half of these",
     lambda t: share(t, "measured @ernst2024benches") == 0.5),
    ("tbl-sources-link-latency", "Of links little is measured",
     lambda t: share(t, "measured") < 0.4),
    ("tbl-sources-bandwidth", "Most bandwidths of links and memories follow from the definitions of standards",
     lambda t: share(t, "definition") > 0.5),
    ("tbl-sources-hierarchy", "The machine is described by its maker, for the most part",
     lambda t: share(t, "datasheet") > 0.5),
    ("tbl-sources-budgets", "Budgets are conventions of those who build for people, and nearly all of them estimates",
     lambda t: 0.8 < share(t, "estimate") < 1),
    ("tbl-sources-bytes", "The bytes of a parameter follow from the formats and the optimiser",
     lambda t: share(t, "definition") == 1),
    ("tbl-sources-work", "The work of a parameter is counted, not measured; how many tokens it should see was measured",
     lambda t: all(w.startswith("definition" if "FLOP" in v else "measured") for v, w in zip(t.words("Value"),
         t.words("Source"), strict=True))),
    ("tbl-sources-speedups", "The speedups with which Gustafson answered Amdahl were measured",
     lambda t: all("measured @gustafson" in w for w in t.words("Source"))),
    ("tbl-sources-throughput", "What others measured",
     lambda t: share(t, "measured") == 1),
    ("tbl-sources-comparisons", "Losses and scores are measured, each by the authors of the recipe",
     lambda t: share(t, "measured") + share(t, "unpublished") == 1),
    ("tbl-mx", "The values within a block reach only from the smallest element to the largest",
     lambda t: all(close(r, a / b) for r, a, b in zip(t["Ratio"], t["Largest"], t["Smallest"], strict=True)
         if not isnan(b))),
    ("tbl-furthest", "Most of the largest errors have a known cause",
     lambda t: 2 * sum(w == "not known" for w in t.words("What is known")) < len(t.rows)),
    ("tbl-under-load", "first tokens are off by {UnderLoad.first} in the median, later ones by {UnderLoad.rest}",
     lambda t, first, rest: first > 1.5 * rest and number(t.named("closed loops").rows[0][4]) > 1.5 * number(t.named("closed loops").rows[0][6])),
    ("tbl-few-rows", "fewer bytes give at most the speed that they save",
     lambda t: max(known(t["FP8"]) + known(t["FP8, blocks"])) <= 2 and every(t["NVFP4"], lambda x: x <= 32
         / 9)),
    ("tbl-recipes", "With Adam in mixed precision, moments and master weights are most of what training keeps",
     lambda t: t.named("Mixed, Adam")["byte"][0] > 2 * (2 + 2)),
    ("tbl-decide-software", "where there are several pairs",
     lambda t: min(t["Pairs"]) > 1),
    ("tbl-decide-precision-measured", "alike in all else, several of each",
     lambda t: min(t["Pairs"]) > 1),
    ("tbl-budgets", "marked as the estimates that they are",
     lambda t: all(w.startswith("≈") for w in t.words("Less"))),
]
# fmt: on


FigureClaim = tuple[str, str, Callable[[Callable[[str], float]], bool]]

# Of figures: the module, words of its caption or alt text, and what the drawn values must hold.
# fmt: off
FIGURE_CLAIMS: list[FigureClaim] = [
    ("cache_tiers", "A session is expected back sooner from host memory than from disks, and from either much sooner than by computing",
     lambda v: all(v(f"0 dots green{n} x") < v(f"0 dots blue{n} x") < v(f"0 dots orange{n} x") / 5 for n in ("",
         ".2", ".3"))),
    ("cut_matrices", "Columns and then rows need one sum, and send less than columns twice",
     lambda v: v("“# MB”") == v("“columns, then rows: sends # MB”") < v("“columns twice: sends # MB”")),
    ("gain_by_length", "The more the batch fills the arithmetic, the fewer tokens a head should draft",
     lambda v: v("0 line green last y") == v("0 line green most y") and v("0 line orange first y") ==
         v("0 line orange most y")),
    ("hit_rate", "A few misses undo the cache of a CPU core, and slow a GPU by a far smaller factor",
     lambda v: v("0 dots orange y") > 5 and v("0 line orange first y") > 4 * v("0 line blue first y")),
    ("low_latency", "Bytes over the links and one start explain a decode's exchange on up to",
     lambda v: all(abs(v(f"0 dots {c} {n} y") / v(f"0 line {c} {n} y") - 1) < 0.055 for c in ("blue",
         "orange") for n in (1, 2, 3, 4))),
    ("step_of_formats", "A narrower format shortens the GEMMs alone",
     lambda v: v("0 bar blue.2 size x") < 0.7 * v("0 bar blue size x") and all(v(f"0 bar {c}.2 size x")
         >= 0.99 * v(f"0 bar {c} size x") for c in ("orange", "green", "purple"))),
    ("clipping", "With few bits a shorter range is better, with many nearly the whole",
     lambda v: v("0 dots orange x") < 80 < 95 < v("0 dots blue x")),
    ("batching", "A slot that is filled as soon as it is free ends the same answers sooner",
     lambda v: v("1 line red first x") < v("0 line red first x")),
    ("paged_cache", "Blocks leave a part of one block empty for each sequence, reserved contexts most of themselves",
     lambda v: v("“reserved: #% filled”") < 52 and v("“in blocks: #% filled”") > 85),
    ("tree_rounds", "A tree's rounds grow with the logarithm of the devices, a ring's steps with their number",
     lambda v: v("1 line blue last y") < 25 < 1000 < v("1 line orange last y")),
    ("step_memory", "The loss, at the end of the forward pass, makes the peak",
     lambda v: all(v(f"{p} line red most y") == v(f"{p} line red 3 y") > v(f"{p} line orange most y")
         for p in range(2))),
    ("cache_growth", "The fewer heads have keys and values of their own, the longer a context may be before its cache is as large as the weights",
     lambda v: v("0 dots orange x") < v("0 dots blue x") and v("0 line green last y") < v("0 line ink y")),
    ("layer_roofline", "A batch moves the weights of a decode along the roof, and leaves its scores where they are",
     lambda v: v("0 dots green last x") > 30 * v("0 dots orange first x") and v("0 dots green first x")
         == v("0 dots orange last x")),
    ("latent_work", "Absorb for few queries, expand for many",
     lambda v: v("0 line blue first y") < v("0 line orange first y") and v("0 line blue last y")
         > v("0 line orange last y")),
    ("read_by_context", "slow the growth of what a token reads; neither stops it",
     lambda v: max(v(f"0 line {c} last y") / v(f"0 line {c} first y") for c in ("green", "purple"))
         < min(v(f"0 line {c} last y") / v(f"0 line {c} first y") for c in ("blue", "orange")) and
         all(v(f"0 line {c} last y") > v(f"0 line {c} first y") for c in ("green", "purple"))),
    ("measured_all_reduce", "takes an array of tens or hundreds of megabytes (the dots)",
     lambda v: 10000.0 < v("0 dots least x") < v("0 dots most x") < 1000000.0),
    ("cost_per_token", "A larger batch makes a token cheaper",
     lambda v: all(v(f'0 line blue{n} last y') < v(f'0 line blue{n} first y') / 5 for n in ("",
         ".2", ".3"))),
    ("joules_by_batch", "The batch decides a token's energy, more than the GPU",
     lambda v: v("0 line blue.2 first y") > 5 * v("0 line blue.2 last y")
         and v("0 line blue.2 2 y") < 2 * v("0 line red.2 first y")),
    ("joules_by_batch", "Among the mixtures that of Qwen3 235B-A22B begins higher",
     lambda v: v("1 line blue.2 first y") > v("0 line blue.2 first y")),
    ("joules_by_batch", "falls more steeply",
     lambda v: v("1 line blue.2 last x") == v("0 line blue.2 4 x") and v("1 line blue.2 first y")
         / v("1 line blue.2 last y") > v("0 line blue.2 first y") / v("0 line blue.2 4 y")),
    ("cuts_together", "TP under FSDP lets fewer tokens suffice in a rack, and not over servers",
     lambda v: v("1 dots red x") < 0.5 * v("1 dots blue x") and v("0 line red first y")
         == v("0 line blue first y")),
    ("own_or_api", "Own devices cost less where their stair is below an API's line, which need not be everywhere above the first crossing",
     lambda v: v("0 line blue last y") < v("0 line orange.2 last y") and OwnOrApi.from_dearest < quantity("1 request/s")
         and own_is_dearer("1.2 request/s") and not own_is_dearer("1 request/s")),
    ("rent_or_buy", "Buying pays for machines that are busy, and that are kept for a long time",
     lambda v: 100 > v("0 dots ink x") > v("0 dots ink.2 x") > v("0 dots ink.3 x")),
    ("drafts_by_batch", "Time outside the kernels shrinks the gain long before arithmetic does",
     lambda v: v("0 dots blue first y") < 0.8 * v("0 line blue first y") and v("0 line blue last y") > 1),
    ("expert_width", "Published rates lie near the expected curves",
     lambda v: all(0.6 < v(f'0 dots red{n} y') / v("0 line blue.2 most y") < 1.25 for n in ("",
         ".2", ".3"))),
    ("working_set", "Bandwidth depends on how much memory you touch at once",
     lambda v: v("0 line ink first y") > 5 * v("0 line ink last y")),
    ("cost_of_distance", "Away from the arithmetic latency and energy rise and bandwidth falls",
     lambda v: v("0 line red first x") < v("0 line red last x") and v("1 line red first x") > v("1 line red last x")
         and (v("2 line red first x") < v("2 line red last x"))),
    ("long_sums", "Where a sum is kept decides its error, and so does how it is added",
     lambda v: v("0 line orange last y") > v("0 line green last y") > v("0 line purple last y") >
         v("0 line ink last y")),
    ("resolvent_error", "the textbook form fails in every format, and the ratio form is good in complex64 at any length",
     lambda v: max(v("0 line orange last x"), v("0 line purple last x")) < v("0 line ink.2 last x")
         == 4096),
    ("resolvent_error", "Up to that length the textbook form has about the errors of the scaled form",
     lambda v: all(abs(v(f"0 line {textbook} {n} y") / v(f"0 line {scaled} {n} y") - 1) < 0.15 for textbook, scaled, last in
         (("orange", "ink", 5), ("purple", "purple.2", 9)) for n in range(1, last + 1))),
    ("kernel_roofline", "A single row stays close below the roof of its chain, many rows below that of the divider; neither comes near the memory's",
     lambda v: 0.5 < v("0 dots purple.4 y") / v("0 line orange.2 first y") < 1 and 0.5 < v("0 dots purple.3 y")
         / v("0 line green first y") < 1 and (v("0 dots purple.3 y") < 0.65 * v("“memory, # GB/s”")
         / 2)),
    ("published_training", "what lies beyond the axis is drawn at its edge",
     lambda v: v("0 limit x low") < min(v(f"0 band #1f77b4{n} least x") for n in ("", ".2", ".3", ".4")) < max(v(f"0 band #1f77b4{n} most x")
         for n in ("", ".2", ".3", ".4")) < v("0 limit x high")),
    ("batch_size", "up to a dot where memory is full",
     lambda v: v("0 line red.2 last x") < v("0 line red last x")),
    ("waiting", "How busy a server may be depends on how many servers share its queue",
     lambda v: v("0 dots orange x") < v("0 dots blue x") < v("0 dots green x")),
    ("goodput_by_load", "Goodput follows the load, then collapses",
     lambda v: v("0 line blue last y") < 0.5 * v("0 line blue most y") and v("0 line orange last y")
         < 0.5 * v("0 line orange most y")),
    ("service_frontier", "Tighter limits cost GPU time, a millisecond of a short one far more than of a long one",
     lambda v: all((v(f'0 line {c} first y') - v(f'0 line {c} 3 y')) / (v(f'0 line {c} 3 x') - v(f'0 line {c} first x'))
         > 10 * (v(f'0 line {c} 9 y') - v(f'0 line {c} last y')) / (v(f'0 line {c} last x') - v(f'0 line {c} 9 x'))
         for c in ("orange", "blue", "green", "purple"))),
    ("step_parts", "Memory limits the batch before arithmetic binds, until the bytes are halved",
     lambda v: v("1 line red 2 x") < v("1 line red last x")),
    ("serving_frontier", "Four roofs bound the frontier",
     lambda v: v("0 line green most y") <= v("0 line ink.3 y") and all(v(f"0 line {c}.2 most y") < v(f"0 line {c} y") and v("0 line ink x")
         < v(f"0 line {c}.2 first x") < v(f"0 line {c}.2 last x") <= v("0 line ink.2 x") for c in ("blue", "orange"))),
    ("sparse_storage", "The smaller the element, the later sparse storage pays; a bitmask pays long before CSR",
     lambda v: v("0 dots orange x") < v("1 dots orange x") < v("2 dots orange x") and all(5 * v(f'{panel} dots blue x')
         < v(f'{panel} dots orange x') + 1 for panel in range(3))),
    ("sweep_accuracy", "Fine-tuning gives back nearly all that pruning took",
     lambda v: all(v(f'{p} line blue first y') - v(f'{p} line blue last y') < 0.1 * (v(f'{p} line orange first y')
         - v(f'{p} line orange last y')) for p in (0, 1))),
    ("training_time", "the batch is used up before the network becomes the limit",
     lambda v: v("0 line red last x") < v("0 dots blue x")),
    ("decode_intensity", "A batch lifts the weights to the ridge point, but never the cache",
     lambda v: v("0 dots ink x") > 295 and max(v(f'0 line red{n} last y') for n in ("", ".2",
         ".3")) < v("0 line blue y")),
    ("useful_time", "at scale, with fast storage, they cost most of the time that is lost",
     lambda v: 2 * (v("1 line green last y") - v("1 line blue last y")) > 100 - v("1 line blue last y")),
    ("memory_schedule", "Peak memory is decided near the start of a network",
     lambda v: v("0 bar blue end x") < 5 and v("0 bar blue end y") > v("0 bar orange.13 end y")),
    ("lever_memory", "once three levers are pulled",
     lambda v: v("0 bar orange.4 end x") < v("0 line red x") < v("0 bar orange.3 end x")),
    ("training_memory", "to make a model fit, divide both",
     lambda v: v("0 bar ink.4 end x") > v("0 line red x") > v("0 bar ink.8 end x")),
    ("batch_size", "weights alone, grows in proportion to the batch and crosses the ridge point",
     lambda v: v("0 line blue last y") > v("0 line ink y") > 100 * v("0 line blue first y")),
    ("batch_size", "Lines for decode with keys and values leave it early, level off below the ridge",
     lambda v: max(v("0 line red last y"), v("0 line red.2 last y")) < v("0 line ink y")),
    ("cost_per_token", "and flattens, the longer the context the earlier",
     lambda v: v("0 line blue last x") > v("0 line blue.2 last x") > v("0 line blue.3 last x")
         and v("0 line blue last y") < v("0 line blue.2 last y") < v("0 line blue.3 last y")),
    ("cover", "each rising with the operations that are done for each byte and then level at its peak",
     lambda v: all(v(f"0 line ink{n} last y") == v(f"0 line ink{n} most y") > 100 * v(f"0 line ink{n} first y")
         for n in ("", ".2", ".10", ".20", ".28"))),
    ("cover", "a dot far down its slope",
     lambda v: 100 * v("0 dots red.2 y") < v("0 dots red y") == v("0 line blue last y")),
    ("decode_intensity", "which all tokens use, rise in proportion to the sequences and cross the ridge point",
     lambda v: v("0 line ink last y") > v("0 line blue y") > 100 * v("0 line ink first y")),
    ("decode_intensity", "Lines for fused attention are level",
     lambda v: all(v(f"0 line red{n} last y") == v(f"0 line red{n} first y") for n in ("", ".2", ".3"))),
    ("devices", "the ridge points of all devices with matrix units lie within one decade",
     lambda v: (ridges := sorted(v(f"0 dots {dot} y") / v(f"0 dots {dot} x") for dot in ("blue", "green", "orange", "purple",
         "ink", *(f"ink.{n}" for n in range(2, 38)))))[-1] < 10 * ridges[4] and 2 * ridges[3] < ridges[4]),
    ("drafts_by_batch", "Measured dots lie far below",
     lambda v: all(v(f"0 dots {c} most y") < 0.8 * v(f"0 line {c} most y") for c in ("blue", "red"))),
    ("drafts_by_batch", "below the roofs",
     lambda v: all(v(f"0 line blue {n} y") < v(f"0 line ink {n} y") for n in range(2, 12))),
    ("effective_bandwidth", "every curve rises in proportion to the size; on the right it is level at the link's bandwidth",
     lambda v: all(v(f"0 line ink{n} last y") > 1000 * v(f"0 line ink{n} first y") for n in ("",
         ".2", ".3", ".4"))),
    ("effective_bandwidth", "Far below its half-performance size (the large dots) a link's bandwidth does not matter",
     lambda v: v("0 line ink.3 first y") > v("0 line ink first y") and v("0 line ink.3 last y")
         < v("0 line ink last y")),
    ("expert_width", "in tokens a second, lie near the solid curve of servers",
     lambda v: all(0.6 < v(f"0 dots red{n} y") / v("0 line blue.2 most y") < 1.25 for n in ("", ".2",
         ".3"))),
    ("expert_width", "lies near that of the rack",
     lambda v: 0.8 < v("0 dots red.4 y") / v("0 line purple.2 most y") < 1.25),
    ("gemm_sawtooth", "On the H100 they rise near the line of the best tile, with lesser dips",
     lambda v: 0.9 < v("1 dots ink most y") / v("1 line blue most y") < 1.1 and 0.75 < min(v(f"1 dots ink {n + 1} y")
         / v(f"1 dots ink {n} y") for n in range(27, 54)) < 0.9 and v("0 dots ink 26 y") < 0.6 * v("0 dots ink 25 y")),
    ("goodput_by_load", "Both follow the diagonal at first",
     lambda v: all(0.99 < v(f"0 line {c} first y") / v("0 line ink first y") <= 1 for c in ("blue",
         "orange"))),
    ("goodput_by_load", "beyond, both fall to nothing",
     lambda v: all(v(f"0 {kind} {c} last y") < 0.01 * v(f"0 {kind} {c} most y") for c in ("blue",
         "orange") for kind in ("line", "dots"))),
    ("kernel_roofline", "One row stands below its chain, the batch below the divider",
     lambda v: 0.5 < v("0 dots purple.4 y") / v("0 line orange.2 last y") < 1 and 0.5 < v("0 dots purple.3 y")
         / v("0 line green last y") < 1),
    ("lever_composition", "The last two parts are too thin to see",
     lambda v: max(v("0 bar purple size x"), v("0 bar red size x")) < 1),
    ("lever_memory", "Half the bits do not mean half the memory: they shrink activations alone",
     lambda v: v("0 bar orange.2 end x") > 0.5 * v("0 bar orange end x") and v("0 bar blue.2 end x")
         == v("0 bar blue end x") and v("0 bar orange.2 size x") < v("0 bar orange size x")),
    ("littles_law", "stairs of arrivals and, to their right, of departures climb",
     lambda v: v("0 line purple first y") > v("0 line green first y") and v("0 line purple last y")
         == v("0 line green last y")),
    ("littles_law", "the number in flight rises and falls between",
     lambda v: v("1 line ink first y") < v("1 line ink most y") > v("1 line ink last y")),
    ("long_sums", "The lines of BF16 and of 14 bits rise with the length",
     lambda v: all(v(f"0 line {c} last y") > 10 * v(f"0 line {c} first y") for c in ("orange", "red"))),
    ("long_sums", "those of Kahan's sum and of 14 bits that are promoted stay level",
     lambda v: all(v(f"0 line {c} most y") < 2 * v(f"0 line {c} least y") for c in ("purple", "blue"))),
    ("measured_all_reduce", "Each rises in proportion to the size and bends to its largest bandwidth",
     lambda v: all(v(f"0 line {c} last y") > 100 * v(f"0 line {c} first y") and v(f"0 line {c} last y")
         > 0.98 * v(f"0 line {c} most y") for c in ("blue", "ink", "ink.2", "orange", "purple"))),
    ("measured_all_reduce", "a dot marks half of that",
     lambda v: all(0.45 < v(f"0 dots red{n} y") / v(f"0 line {c} most y") < 0.75 for n, c in (("",
         "ink"), (".2", "ink.2"), (".3", "blue"), (".4", "purple"), (".5", "orange")))),
    ("measured_roofline", "Each roof rises along the memory's bandwidth and is flat right of its ridge point",
     lambda v: all(v(f"0 line {c} last y") == v(f"0 line {c} most y") > v(f"0 line {c} first y") for c
         in ("blue", "ink", "ink.2"))),
    ("measured_roofline", "so the core becomes compute-bound at a far lower intensity",
     lambda v: 10 * v("0 dots ink x") < v("0 dots blue x")),
    ("outlier_channel", "take most of the width, and all other rows crowd between",
     lambda v: v("0 line red last x") - v("0 line red first x") > 127 and v("0 line red last x") - v("0 line red first x") > 10 * (v("0 line ink last x") - v("0 line ink first x"))),
    ("outlier_channel", "One wide channel takes codes away from all others, unless each has its own scale",
     lambda v: v("0 line ink last x") < v("1 line ink last x") == v("0 line red last x")),
    ("overlap_timeline", "follows the backward pass, and the step takes",
     lambda v: v("0 bar orange start x") >= v("0 bar ink.2 end x")),
    ("overlap_timeline", "Begun with the backward pass it outlasts it",
     lambda v: v("0 bar orange.2 end x") > v("0 bar ink.4 end x")),
    ("overlap_timeline", "tokens both end together",
     lambda v: abs(v("0 bar blue.2 end x") / v("0 bar ink.6 end x") - 1) < 0.01),
    ("pareto_front", "The front rises in small steps",
     lambda v: v("0 line ink.5 first y") < v("0 line ink.5 last y") < v("0 line ink.5 first y") + 5),
    ("predicted_measured", "Farthest above it, slower than predicted",
     lambda v: v("0 dots red last y") > 10 * v("0 dots red last x")),
    ("prefill_timelines", "Whole prompts stop the other requests, chunks slow them",
     lambda v: v("0 bar orange size x") > 5 * v("0 bar orange.2 size x")),
    ("published_collectives", "Farthest above it",
     lambda v: v("0 line orange.2 most y") > max(v(f"0 line {c} most y") for c in ("blue", "blue.2",
         "blue.3", "green", "green.2", "green.3", "orange", "orange.3", "purple", "purple.2"))),
    ("rent_or_buy", "A falling curve for each lifetime of a machine that one owns crosses the level line of the rent",
     lambda v: all(v(f"0 line blue{n} first y") > v("0 line orange y") > v(f"0 line blue{n} last y")
         for n in ("", ".2", ".3"))),
    ("resolvent_error", "the lines of the other forms go on to the right end",
     lambda v: all(v(f"0 line {c} last x") == 4096 for c in ("ink", "ink.2", "purple.2", "purple.3"))),
    ("rollout_timeline", "One answer is still being generated long after the others have ended",
     lambda v: v("0 bar blue.16 end x") > 2 * v("0 bar blue.15 end x")),
    ("rollout_timeline", "Behind each bar that has ended a pale one waits for the longest",
     lambda v: all(v(f"0 bar ink{n} end x") == v("0 bar blue.16 end x") for n in ("", ".2", ".15"))),
    ("roofline", "A published roof rises along the memory's bandwidth and turns flat at its ridge point",
     lambda v: v("0 line blue last y") == v("0 line blue.2 last y") > v("0 line blue first y")),
    ("roofline", "Dashed beneath that of the H100 lie the rates that kernels reached",
     lambda v: v("0 line blue.3 first y") < v("0 line blue first y") and v("0 line blue.3 last y")
         < v("0 line blue last y")),
    ("roofline", "above it rises a roof",
     lambda v: v("0 line green first y") > v("0 line blue first y")),
    ("roofline", "Measured matrix products lie near the roof of the rates that kernels reached, or below it",
     lambda v: 0.9 < v("0 dots red most y") / v("0 line blue.3 last y") < 1.05),
    ("scaling", "Amdahl's bends away from the ideal line and flattens at its limit",
     lambda v: all(0.9 < v(f"2 line {line} last y") / v(f"2 line {limit} y") < 1 for line, limit in
         (("ink.2", "ink.3"), ("red", "red.2"), ("ink.4", "ink.5")))),
    ("scaling", "Gustafson's stays just below the ideal line",
     lambda v: all(0.7 < v(f"3 line {c} last y") / v("3 line ink last y") < 1 for c in ("ink.2",
         "ink.3", "red"))),
    ("scaling", "Fixed work runs up against its serial part; fixed time does not",
     lambda v: v("2 line red last y") < 0.01 * v("2 line ink last y") and v("3 line red last y") >
         0.9 * v("3 line ink last y")),
    ("service_frontier", "Dots above the curves are the designs of the table",
     lambda v: all(v(f"0 dots {c} y") > v(f"0 line {c} last y") for c in ("blue", "green", "orange",
         "purple"))),
    ("serving_frontier", "rises along the left wall with the batch, then bends and flattens until memory is full",
     lambda v: all(v(f"0 line {c} first x") >= v("0 line ink x") and v(f"0 line {c} last y") > 10
         * v(f"0 line {c} first y") for c in ("blue.2", "green", "orange.2"))),
    ("spacing", "FP32 and BF16 cross the whole axis",
     lambda v: all(v(f"0 line {c} first x") == v("0 limit x low") and v(f"0 line {c} last x") ==
         v("0 limit x high") for c in ("ink", "orange"))),
    ("spacing", "the other lines climb at the left to a gap as large as the value and end at the right at a wall",
     lambda v: all(v(f"0 line {c} first y") == 1 and v(f"0 line {c} last x") < v("0 limit x high") for c
         in ("blue", "purple", "red"))),
    ("sparse_storage", "Dense storage is a level line; CSR falls from above it to nearly nothing, and a bitmask from a little above it to a small rest",
     lambda v: all(v(f"{p} line ink first y") == v(f"{p} line ink last y") == 100 < v(f"{p} line blue first y")
         < 115 < v(f"{p} line orange first y") and v(f"{p} line orange last y") < 1 < v(f"{p} line blue last y")
         < 15 for p in range(3))),
    ("step_parts", "and arithmetic stays below",
     lambda v: v("0 line ink last y") < v("0 line red last y")),
    ("step_parts", "the line of arithmetic leaves the wedge behind",
     lambda v: v("1 line ink last y") == v("1 line red last y")),
    ("training_time", "before the dashed curve leaves the ideal, marks the end of the batch",
     lambda v: v("0 line ink.2 x") < v("0 dots blue x")),
    ("useful_time", "devices, falling curves",
     lambda v: all(v(f"1 line {c} last y") < v(f"1 line {c} first y") for c in ("blue", "green", "ink",
         "red"))),
    ("waiting", "turn up, the more servers the later and the more steeply",
     lambda v: v("0 dots orange x") < v("0 dots blue x") < v("0 dots green x")),
    ("working_set", "The bandwidth falls in steps",
     lambda v: v("0 line ink 3 y") > 2 * v("0 line ink 4 y") > 6 * v("0 line ink last y")),
]
# fmt: on
