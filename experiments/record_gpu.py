"""Take the record of a GPU into the project's data, and hold it to what `calc` predicts of it.

    python -m experiments.record_gpu FOLDER [--device h200]

FOLDER is what `calc measure --gpu --all FOLDER` wrote, or `--minutes 9 FOLDER`. Its tables go to
calc/data/measured/gpu/KEY, and the rates that kernels reached to calc/data/machines.toml, as a
machine of that one GPU whose key is KEY-1-measured. Then the predictions are printed beside the
measurements: the kernels', the products' shares of the peak, the decode loop's, and the
resolvent's. Nothing is written where a part is missing or was a trial without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
from pathlib import Path
from typing import Any

import tomli_w

from calc import Quantity, hardware, inference, machines, models, quantity, roofline
from calc.catalog.hardware import DTYPES, Accelerator
from calc.core.errors import InputError
from calc.core.files import write_text
from calc.core.formatting import columns
from calc.core.records import DATA, read_rows
from calc.measure import error, median_error
from calc.measure.gpu.parts import CONDITIONS, NAMES, names_of
from experiments.tables import write_rows

TABLES = DATA / "measured" / "gpu"
SOURCE = "calc-measure"
Rows = list[dict[str, str]]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.record_gpu")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", help="its key in the data, where its name does not tell")
    options = parser.parse_args(arguments)
    try:
        conditions, tables = read(options.folder)
        device = device_of(conditions, options.device)
        write(device, conditions, tables, TABLES / device.key, machines.FILE)
    except InputError as wrong:
        raise SystemExit(str(wrong)) from None
    machine = machines.load(machines.FILE)[f"{device.key}-1-measured"]
    print(*report(device, tables, machine), sep="\n")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Rows]]:
    """The conditions and all tables of a record that is whole."""
    path = folder / CONDITIONS
    conditions = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    names = names_of(conditions.get("brief", False))
    missing = [name for name in names if not (folder / f"{name}.csv").exists()]
    if missing or not conditions:
        asked = f"--minutes 9 {folder}" if names != NAMES else f"--all {folder}"
        raise InputError(
            f"{folder} has no {', '.join(missing) or CONDITIONS};"
            f" `calc measure --gpu {asked}` measures what is missing"
        )
    if conditions["small"] or not conditions["gpus"]:
        raise InputError(f"{folder} is a trial without a GPU: none of its times are of one")
    return conditions, {name: list(read_rows(folder / f"{name}.csv")) for name in names}


def device_of(conditions: dict[str, Any], key_or_name: str | None) -> Accelerator:
    key = hardware.key_of(key_or_name or conditions["gpu"])
    if key is None:
        raise InputError(
            f"no device of the data is called {key_or_name or conditions['gpu']!r}: name its key by"
            " --device (`calc list devices` prints them), or add it first, as"
            " docs/adding-a-device.md says"
        )
    return hardware.get(key)


def write(
    device: Accelerator,
    conditions: dict[str, Any],
    tables: dict[str, Rows],
    folder: Path,
    file: Path,
) -> None:
    """The tables as they are, and the machine in place of an earlier record of the same GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        write_rows(folder / f"{name}.csv", rows[0], (row.values() for row in rows))
    heading = "# How the tables beside this file were measured; times are medians in seconds.\n"
    write_text(folder / "conditions.toml", heading + tomli_w.dumps(conditions))
    key = f"{device.key}-1-measured"
    # The text cut before each table's heading.
    blocks = re.split(r"^(?=\[)", file.read_text("utf-8"), flags=re.MULTILINE)
    others = [block for block in blocks if not block.startswith((f"[{key}]", f"[{key}."))]
    mine = tomli_w.dumps({key: entry(device, conditions, tables)})
    write_text(file, "".join(others).rstrip() + "\n\n" + mine)


def entry(
    device: Accelerator, conditions: dict[str, Any], tables: dict[str, Rows]
) -> dict[str, Any]:
    """The GPU by itself as a machine, with the best that each kind of kernel reached."""
    how = f"torch {conditions['torch']}, {conditions['runtime']}"
    reached: dict[str, dict[str, Any]] = {kind: {} for kind in machines.REACHED}

    def keep(kind: str, name: str, value: float, unit: str, note: str) -> None:
        best = reached[kind].get(name)
        if best is None or (value < best["value"] if kind == "launch" else value > best["value"]):
            reached[kind][name] = {
                "value": float(f"{value:.4g}"),
                "unit": unit,
                "source": SOURCE,
                "note": f"{note}; {how}.",
            }

    for row in timed(tables["gemms"]):
        shape = " × ".join(row[side] for side in "mnk")
        if (dtype := hardware.dtype_of(row["dtype"])) is not None:
            unit = DTYPES[dtype]
            keep("gemm", dtype, rate(row, "flop") / 1e12, f"T{unit}/s", f"Best of all, {shape}")
    for row in timed(tables["attention"]):
        if row["pass"] != "decode":
            note = f"{row['kernel']}, {row['tokens']} tokens, causal"
            keep("attention", row["pass"], rate(row, "flop") / 1e12, "TFLOP/s", note)
    largest = max(float(row["array_bytes"]) for row in tables["bandwidth"])
    for row in timed(tables["bandwidth"]):
        if float(row["array_bytes"]) == largest:
            note = f"An array of {largest / 2**20:.0f} MiB"
            keep("memory", row["kernel"], rate(row, "moved_bytes") / 1e9, "GB/s", note)
    for row in timed(tables.get("host_copies", [])):
        if row["way"] in machines.NAMES["host_link"]:
            note = f"{row['pages']} pages, {float(row['bytes']) / 2**20:.0f} MiB"
            keep("host_link", row["way"], rate(row, "bytes") / 1e9, "GB/s", note)
    for row in timed(tables["launches"]):
        if (name := LAUNCHES.get(row["way"])) is not None:
            note = f"One of {row['kernels']} in a row"
            keep("launch", name, float(row["seconds"]) * 1e6, "us", note)
    return {
        "name": f"{device.name}, one, as measured",
        "device": device.key,
        "domain": 1,
        "fabric": "none",
        "kind": "measured",
        "source": SOURCE,
        "checked": datetime.date.fromisoformat(conditions["measured"]),
        "reached": {kind: most for kind, most in reached.items() if most},
    }


LAUNCHES = {"a launch in a row": "a launch", "a graph": "a graph"}


def timed(rows: Rows) -> Rows:
    """Return the rows that have a time."""
    return [row for row in rows if row["seconds"]]


def rate(row: dict[str, str], what: str) -> float:
    return float(row[what]) / float(row["seconds"])


def report(device: Accelerator, tables: dict[str, Rows], machine: machines.Machine) -> list[str]:
    """Return the predictions beside the measurements, in the words of the goals."""
    lines: list[tuple[str, ...]] = [("", "measured", "predicted", "error")]
    ratios = []
    for row in timed(tables.get("kernels", [])):
        work = roofline.Workload(quantity(row["flop"] + " FLOP"), quantity(row["bytes"] + " byte"))
        rated = row["dtype"] in device.dtypes  # of some GPUs no vector rate is published
        predicted = (
            work.on(device, row["dtype"]).lower if rated else work.traffic / device.memory_bandwidth
        )
        ratios.append(float(row["seconds"]) / float(predicted.m_as("s")))
        lines.append(_line(row["kernel"], float(row["seconds"]), predicted))
    for row in timed(tables["loops"]):
        if row["loop"] == "decode" and row["layers"] == LAYERS:
            sizes = float(row["context"]), float(row["batch"])
            step = inference.decode(models.LLAMA_3_8B, machine, *sizes)
            label = f"decode, {row['way']}, {row['batch']} × {row['context']}"
            lines.append(_line(label, float(row["seconds"]), step.expected))
    return [
        *columns(lines),
        "",
        *(
            [f"half of {len(ratios)} kernels are within {median_error(ratios):.0%} of the roofline"]
            if ratios
            else []
        ),
        *_shares(device, tables["gemms"]),
        *_speedups(tables["resolvents"]),
    ]


LAYERS = str(models.LLAMA_3_8B.layers)


def _line(name: str, measured: float, predicted: Quantity | None) -> tuple[str, ...]:
    shown = f"{quantity(measured, 's').to('us'):.4g}"
    if predicted is None:
        return name, shown, "–", "–"
    off = error(measured / float(predicted.m_as("s")))
    return name, shown, f"{predicted.to('us'):.4g}", f"{off:.0%}"


def _shares(device: Accelerator, rows: Rows) -> list[str]:
    """The best product in each format as a share of the dense peak."""
    best: dict[str, float] = {}
    for row in timed(rows):
        dtype = hardware.dtype_of(row["dtype"])
        if dtype in device.dtypes:
            best[dtype] = max(best.get(dtype, 0.0), rate(row, "flop"))
    peaks = {dtype: device.peak(dtype).m_as(f"{DTYPES[dtype]}/s") for dtype in best}
    return [
        f"{dtype} products reach {most / float(peaks[dtype]):.0%} of the dense peak"
        for dtype, most in best.items()
    ]


def _speedups(rows: Rows) -> list[str]:
    """Our kernel beside a loop of torch's and beside the dense solver, at each size."""
    seconds = {
        (row["dtype"], row["batch"], row["n"], row["way"]): float(row["seconds"])
        for row in timed(rows)
    }
    return [
        f"resolvent {dtype}, {batch} × {n}: {time / ours:.3g} times the speed of {way}"
        for (dtype, batch, n, way), time in seconds.items()
        if way != "triton" and (ours := seconds.get((dtype, batch, n, "triton")))
    ]


if __name__ == "__main__":
    main()
