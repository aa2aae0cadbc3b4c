"""States of devices beside a run: what `nvidia-smi` and `amd-smi` list of power, clocks and links.

`nvidia-smi --query-gpu=… --format=csv` and `amd-smi metric --csv` print a table, a reading of a
device in each row; `nvidia-smi` alone draws one, `nvidia-smi dmon` adds a line each second, and
`nvidia-smi -q` and `amd-smi metric` print an outline, which amd-smi's JSON is too. What slows a run
shows in it: heat or a limit of power that lowers the clock, a link with fewer lanes than it could
have, and devices that wait for the host.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

from calc.core.errors import InputError
from calc.core.files import parse_json, read_text

Reading = Mapping[str, str]
LINK, POWER = "pci.gpu_link_info", ("power_readings", "gpu_power_readings")
DRAWS = ("power_draw", "instantaneous_power_draw", "average_power_draw")
COLUMNS = {  # what is read, by the names of NVIDIA's tool and of AMD's, without units
    "use": ("utilization.gpu", "sm", "gfx_activity", "usage.gfx_activity"),
    "power": (
        *("power.draw", "power.draw.instant", "power.draw.average", "pwr"),
        *(f"{power}.{draw}" for power in POWER for draw in DRAWS),
        *("socket_power", "power.socket_power"),
    ),
    "limit": (
        *("power.limit", "enforced.power.limit"),
        *(f"{power}.current_power_limit" for power in POWER),
    ),
    "clock": ("clocks.current.sm", "clocks.sm", "pclk", "gfx_0_clk", "clock.gfx_0.clk"),
    "most": ("clocks.max.sm", "max_clocks.sm", "gfx_0_max_clk", "clock.gfx_0.max_clk"),
    "lanes": ("pcie.link.width.current", f"{LINK}.link_width.current"),
    "all_lanes": ("pcie.link.width.max", f"{LINK}.link_width.max"),
    "speed": ("pcie.link.gen.current", f"{LINK}.pcie_generation.current"),
    "best_speed": ("pcie.link.gen.max", f"{LINK}.pcie_generation.max"),
}
REASONS = {  # that lower a clock, by how their column ends
    "hw_thermal_slowdown": "heat",
    "sw_thermal_slowdown": "heat",
    "sw_power_cap": "its limit of power",
    "hw_power_brake_slowdown": "the power supply",
    "hw_slowdown": "heat or the power supply",
}
KNOWN = {name for names in COLUMNS.values() for name in names}
LACKS = "no column of power, clocks, links or use"
NEEDED = (
    "nvidia-smi, nvidia-smi dmon, nvidia-smi -q, nvidia-smi --query-gpu=… --format=csv or"
    " amd-smi metric prints"
)
BUSY, IDLE = 50, 50.0
"""Per cent: from where a device works in a reading, and below which mean it waits."""
NEAR_LIMIT, LOW_CLOCK = 0.97, 0.8


def read(path: Path | str) -> list[str]:
    """Return what in the readings of a file slows a run, a clause each; none where nothing does.

    Parameters
    ----------
    path
        the table that nvidia-smi or amd-smi printed while the run was under way
    """
    rows = _rows(read_text(path), path)
    loaded = [row for row in rows if (_number(row, "use") or 0.0) >= BUSY] or rows
    return [*_slowed(loaded), *_links(rows, loaded), *_waiting(rows)]


def _rows(text: str, path: Path | str) -> list[Reading]:
    """The readings of a file, in whichever of its forms a tool printed them."""
    if re.match(r"\s*[\[{]", text):
        document = parse_json(text, path)
        gpus = document.get("gpu_data", [document]) if isinstance(document, dict) else document
        outlines: list[Reading] = [dict(_leaves(gpu)) for gpu in gpus if isinstance(gpu, dict)]
        return _known(outlines, path)
    if drawn := re.findall(r"(\d+)W */ *(\d+)W *\|.*?\|\s*(\d+)%", text):
        return [
            {"power.draw": power, "power.limit": limit, "utilization.gpu": use}
            for power, limit, use in drawn
        ]
    if titles := re.search(r"(?m)^# *gpu\b(.*)$", text):  # of dmon
        lines = re.findall(r"(?m)^[ \t]*\d+((?:[ \t]+[\d-]+)+)[ \t]*$", text)
        cells = (dict(zip(titles[1].split(), line.split(), strict=False)) for line in lines)
        return _known(list(cells), path)
    if re.search(r"(?m)^GPU\b.*$\n\s+\w", text):
        return _known(list(_outlines(text)), path)
    return _table(text, path)


def _known(rows: list[Reading], path: Path | str) -> list[Reading]:
    """The readings that have something of what is read; there must be one."""
    if told := [row for row in rows if not KNOWN.isdisjoint(row) or any(map(_reason, row))]:
        return told
    raise InputError(f"{path}: has {LACKS}: it must be what {NEEDED}")


def _leaves(part: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what an outline in JSON holds, by the names of all above it but of its value."""
    for name, value in part.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield (before + name).removesuffix(".value"), str(value)


def _outlines(text: str) -> Iterator[Reading]:
    """Yield of each device what is indented below it, by the names of all above it."""
    for device in re.split(r"(?m)^GPU\b.*$", text)[1:]:
        above: list[tuple[int, str]] = []
        said: dict[str, str] = {}
        for line in filter(str.strip, device.splitlines()):
            name, _, value = line.strip().partition(":")
            depth = len(line) - len(line.lstrip())
            above = [*(one for one in above if one[0] < depth), (depth, name.strip().lower())]
            if value.strip():
                said[".".join(one for _, one in above).replace(" ", "_")] = value.strip()
        yield said


def _table(text: str, path: Path | str) -> list[Reading]:
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        table = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV: {error}") from None
    titles = [re.sub(r"\s*\[.*\]$", "", title.strip()) for title in table[0]] if table else []
    if KNOWN.isdisjoint(titles) and not any(map(_reason, titles)):
        raise InputError(f"{path}: has {LACKS}: it must be what {NEEDED}, with its first line")
    if not table[1:]:
        raise InputError(f"{path}: has titles and no reading of a device")
    for number, cells in enumerate(table[1:], 2):
        if len(cells) < len(titles):
            raise InputError(
                f"{path}, line {number}: has {len(cells)} of {len(titles)} cells: was it cut?"
            )
    return [dict(zip(titles, map(str.strip, cells), strict=False)) for cells in table[1:]]


def _number(row: Reading, name: str) -> float | None:
    """The number of a reading, without its unit; None where the device has none."""
    for column in COLUMNS[name]:
        if match := re.match(r"-?\d+(?:\.\d+)?", row.get(column, "")):
            return float(match[0])
    return None


def _reason(title: str) -> str | None:
    if not re.match(r"clocks_(?:event|throttle)_reasons\.", title):
        return None
    return REASONS.get(title.rpartition(".")[2])


def _slowed(rows: Sequence[Reading]) -> Iterator[str]:
    """Yield by what clocks are lowered."""
    counts: dict[str, int] = {}
    for row in rows:
        active = (_reason(title) for title, cell in row.items() if cell == "Active")
        for reason in dict.fromkeys(filter(None, active)):
            counts[reason] = counts.get(reason, 0) + 1
    for reason, count in counts.items():
        yield f"{reason} lowers the clock in {count} of {len(rows)} readings under load"
    if "its limit of power" not in counts:
        pairs = [(_number(row, "power"), _number(row, "limit")) for row in rows]
        near = sum(bool(power and limit and power > NEAR_LIMIT * limit) for power, limit in pairs)
        if near > len(rows) / 2:
            yield f"its limit of power is reached in {near} of {len(rows)} readings under load"
    shares = [
        clock / most
        for clock, most in ((_number(row, "clock"), _number(row, "most")) for row in rows)
        if clock and most
    ]
    if shares and mean(shares) < LOW_CLOCK:
        yield f"clocks are {mean(shares):.0%} of the highest under load"


def _links(rows: Sequence[Reading], loaded: Sequence[Reading]) -> Iterator[str]:
    """Yield where a link to the host is narrower or slower than it could be."""
    for several, now, best, what in (
        (rows, "lanes", "all_lanes", "lanes"),
        (loaded, "speed", "best_speed", "generation"),  # an idle link is slowed on purpose
    ):
        pairs = {(_number(row, now), _number(row, best)) for row in several}
        for current, most in sorted(pair for pair in pairs if None not in pair):
            if current and most and current < most:
                told = f"{current:.0f} of {most:.0f} lanes"
                if what == "generation":
                    told = f"generation {current:.0f} where {most:.0f} is possible"
                yield f"a link of PCIe has {told}"


def _waiting(rows: Sequence[Reading]) -> Iterator[str]:
    """Yield that devices wait, where they are busy for less than half of the time."""
    used = [use for row in rows if (use := _number(row, "use")) is not None]
    if used and mean(used) < IDLE:
        share = f"devices are busy {mean(used):.0f} % of the time"
        yield f"{share}: the host or the load keeps them waiting"
