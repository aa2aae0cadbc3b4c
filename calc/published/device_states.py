"""States of devices beside a run: what `nvidia-smi` and `amd-smi` list of power, clocks and links.

`nvidia-smi --query-gpu=… --format=csv` and `amd-smi metric --csv` print a table, a reading of a
device in each row. What slows a run shows in it: heat or a limit of power that lowers the clock, a
link with fewer lanes than it could have, and devices that wait for the host.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

from calc.core.errors import InputError
from calc.core.files import read_text

Reading = Mapping[str, str]
COLUMNS = {  # what is read, by the names of NVIDIA's tool and of AMD's, without units
    "use": ("utilization.gpu", "gfx_activity"),
    "power": ("power.draw", "power.draw.instant", "power.draw.average", "socket_power"),
    "limit": ("power.limit", "enforced.power.limit"),
    "clock": ("clocks.current.sm", "clocks.sm", "gfx_0_clk"),
    "most": ("clocks.max.sm", "gfx_0_max_clk"),
    "lanes": ("pcie.link.width.current",),
    "all_lanes": ("pcie.link.width.max",),
    "speed": ("pcie.link.gen.current",),
    "best_speed": ("pcie.link.gen.max",),
}
REASONS = {  # that lower a clock, by how their column ends
    "hw_thermal_slowdown": "heat",
    "sw_thermal_slowdown": "heat",
    "sw_power_cap": "its limit of power",
    "hw_power_brake_slowdown": "the power supply",
    "hw_slowdown": "heat or the power supply",
}
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
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        table = list(csv.reader(lines, skipinitialspace=True))
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV: {error}") from None
    titles = [re.sub(r"\s*\[.*\]$", "", title.strip()) for title in table[0]] if table else []
    known = {name for names in COLUMNS.values() for name in names}
    if not known.intersection(titles) and not any(map(_reason, titles)):
        raise InputError(
            f"{path}: has no column of power, clocks, links or use: it must be what nvidia-smi"
            " --query-gpu=… --format=csv or amd-smi metric --csv prints, with its first line"
        )
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
    return REASONS.get(title.partition(".")[2])


def _slowed(rows: Sequence[Reading]) -> Iterator[str]:
    """Yield by what clocks are lowered."""
    counts: dict[str, int] = {}
    for row in rows:
        active = {_reason(title) for title, cell in row.items() if cell == "Active"}
        for reason in active - {None}:
            counts[str(reason)] = counts.get(str(reason), 0) + 1
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
