"""Every part of the record of a GPU, tried on the CPU and in Triton's interpreter.

TRITON_INTERPRET=1 python -m pytest tests/calc/measure/gpu
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from itertools import chain as chain_of, count, repeat
from pathlib import Path
from typing import Any

import pytest

from calc import InputError
from calc.measure.gpu.parts import BRIEF, CONDITIONS, NAMES
from calc.measure.latency import chain

torch: Any = pytest.importorskip("torch")

from calc.measure.gpu import Bench, gpu_memory, gpu_power, llama, record, recording  # noqa: E402
from calc.measure.gpu.gpu_gemms import multiply  # noqa: E402
from tests.calc.command import Command  # noqa: E402

pytestmark = pytest.mark.slow
NOT_HERE = {  # what a CPU or this machine has not: everything else must have a time
    "a CPU has no graphs",
    "no meter: nvidia-smi is not here or tells no power",
    "torch finds no GPU, and Triton's interpreter is off",
    "No viable backend for scaled_dot_product_attention was found.",
    "triton is not installed",
    "too noisy",  # the chase, whose hops the clock of a trial does not see
    "No module named 'triton'",
}


class Trial(Bench):
    """A CPU whose clock goes on by a second whenever it is read: no machine is too noisy for it."""

    def __init__(self) -> None:
        super().__init__("cpu", small=True)
        object.__setattr__(self, "ticks", count())

    def clock(self) -> float:
        return float(next(self.ticks))  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A whole record, made once."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("gpu") / "record"
    assert record(path, Trial()) == list(NAMES)
    yield path
    torch.set_num_threads(threads)


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", NAMES)
def test_each_part_has_a_time_or_a_reason_in_each_row(folder: Path, name: str) -> None:
    for row in rows(folder, name):
        assert bool(row["seconds"]) != bool(row["why"]), row
        if row["why"]:
            absent_here = any(row["why"].startswith(each) for each in NOT_HERE)
            assert absent_here or (name == "collectives" and row["operation"] != "all-reduce"), row
        else:
            assert float(row["seconds"]) > 0


def test_a_record_is_resumed_part_by_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    parts = {name: (lambda bench, name=name: asked.append(name) or iter(())) for name in NAMES}
    kept = (folder / "gemms.csv").read_bytes()
    (folder / "kernels.csv").unlink()
    progress: list[tuple[int, int, str]] = []
    with monkeypatch.context() as patched:
        patched.setattr(recording, "PARTS", parts | {"kernels": recording.PARTS["kernels"]})
        record(folder, Trial(), lambda *step: progress.append(step))
    assert asked == []  # those that are there were not made again
    assert {part for _, _, part in progress} == {"kernels"}
    assert progress[0][:2] == (0, len(rows(folder, "kernels")))
    assert (folder / "gemms.csv").read_bytes() == kept


def test_a_brief_record_goes_on_where_its_minutes_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = tmp_path / "brief"
    seconds = count()
    monkeypatch.setattr(recording.time, "monotonic", lambda: float(next(seconds)))
    assert record(brief, Trial(), minutes=0.25) == ["bandwidth"]  # fifteen looks at the clock
    begun = rows(brief, "gemms.begun")
    assert begun
    progress: list[tuple[int, int, str]] = []
    whole = record(brief, Trial(), lambda *step: progress.append(step), minutes=1e4)
    assert tuple(whole) == BRIEF
    assert progress[0] == (len(begun), progress[0][1], "gemms")
    assert list(dict.fromkeys(part for *_, part in progress)) == list(BRIEF[1:])
    assert not (brief / "gemms.begun.csv").exists()
    assert rows(brief, "gemms")[: len(begun)] == begun
    assert {row["kernel"] for row in rows(brief, "bandwidth")} == {"copy"}
    assert {row["dtype"] for row in rows(brief, "gemms")} == {"bf16", "fp8-e4m3"}
    with pytest.raises(InputError, match="which differs in brief; give another folder"):
        record(brief, Trial())


def test_the_record_of_another_machine_is_refused(folder: Path) -> None:
    path = folder / CONDITIONS
    original = path.read_text(encoding="utf-8")
    try:
        path.write_text(json.dumps(json.loads(original) | {"gpu": "another"}), encoding="utf-8")
        with pytest.raises(InputError, match="of another machine, which differs in gpu; give"):
            record(folder, Trial())
        path.write_text("{", encoding="utf-8")
        with pytest.raises(InputError, match=r"conditions\.json: ends in the middle of line 1$"):
            record(folder, Trial())
    finally:
        path.write_text(original, encoding="utf-8")


def test_what_cannot_be_measured_is_told(tmp_path: Path, command: Command) -> None:
    if not torch.cuda.is_available():
        assert "torch finds no GPU here, CUDA or ROCm" in command.refuses(
            "measure", "--gpu", "--all", str(tmp_path / "gpu")
        )
        assert not (tmp_path / "gpu").exists()
    assert "--all is the record of a GPU: give --gpu too" in command.refuses(
        "measure", "--all", str(tmp_path / "gpu")
    )
    brief = "measure", "--minutes", "9"
    assert "give --gpu, and no --all" in command.refuses(*brief, str(tmp_path / "gpu"))
    assert "writes tables into a folder: name it" in command.refuses(*brief, "--gpu")
    assert "writes tables into" in command.refuses(
        "measure", "mine.toml", "--gpu", "--all", str(tmp_path)
    )

    def broken() -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nand more")

    assert Trial().time(broken, "a case")["why"] == "out of memory"


def test_the_chase_visits_every_line_once() -> None:
    table = chain(37 * gpu_memory.LINE, gpu_memory.LINE)
    step, at, seen = gpu_memory.LINE // 8, 0, set()
    for _ in range(37):
        at = int(table[at])
        seen.add(at)
    assert at == 0
    assert seen == {line * step for line in range(37)}


def test_the_chase_follows_the_table() -> None:
    chase: Any = pytest.importorskip("calc.measure.gpu.chase")
    if chase.unusable():
        pytest.skip(chase.unusable())
    table, at = chain(16 * gpu_memory.LINE, gpu_memory.LINE), 0
    result = torch.zeros(1, dtype=torch.int64)
    chase.chase(torch.from_numpy(table), result, 5)
    for _ in range(5):
        at = int(table[at])
    assert int(result) == at


def test_power_is_that_of_the_half_of_the_time_that_has_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All work runs while a meter is read that tells 50 W first, and then 300 W."""
    for case in gpu_power.cases(Trial()):
        readings = chain_of([(50.0, 200.0)] * 2, repeat((300.0, 900.0)))
        monkeypatch.setattr(
            gpu_power, "reading", lambda readings_left=readings: next(readings_left)
        )
        monkeypatch.setattr(gpu_power, "READS", 1e-3)
        row = case.run()
        if row["why"]:
            assert any(row["why"].startswith(each) for each in NOT_HERE), row
            continue
        assert (row["watts"], row["clock_mhz"]) == (300, 900)
        assert row["spread"] == 0
        idle = case.labels["work"] == "idle"
        assert idle == (row["runs_per_second"] == "")
        assert idle or row["seconds"] * row["runs_per_second"] == pytest.approx(1)


def test_work_is_done_though_the_meter_had_its_time_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that is busy may wake the work after the meter has read all that it needs."""

    class Late(Trial):
        def clock(self) -> float:
            time.sleep(0.05)
            return super().clock()

    monkeypatch.setattr(gpu_power, "reading", lambda: (300.0, 900.0))
    monkeypatch.setattr(gpu_power, "READS", 1e-3)
    idle, *_ = gpu_power.cases(Late())
    assert idle.run()["repeats"] >= 2


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp8-e4m3", "int8"])
def test_products_are_products(dtype: str) -> None:
    """The second matrix is transposed: n × k, as a layer's weights are stored."""
    product: Any = multiply(Trial(), dtype, 32, 64, 16)()
    assert product.shape == (32, 64)
    assert torch.isfinite(product.double()).all()


def test_decode_with_a_cache_is_the_last_token_of_a_prefill() -> None:
    """The block's two ways of attending agree, so that the loop does what a model does."""
    torch.manual_seed(0)
    bench, shape = Trial(), llama.Shape(small=True)
    block = llama.Block(shape, bench, torch.float32)
    tokens = 12
    x = torch.randn(1, tokens, shape.width)
    angles = llama._angles(shape, tokens, bench, torch.float32)
    cache = [torch.zeros(1, shape.kv_heads, tokens, shape.head_width) for _ in range(2)]
    with torch.no_grad():
        whole = block(x, angles)
        for at in range(tokens):
            turned = tuple(each[at : at + 1] for each in angles)
            seen = [each[:, :, : at + 1] for each in cache]
            last = block(x[:, at : at + 1], turned, seen, at)
            torch.testing.assert_close(last[:, 0], whole[:, at], rtol=1e-4, atol=1e-5)


def test_parameters_are_the_models() -> None:
    shape = llama.Shape(small=False)
    matrices = [each for each in llama.MODEL.matrices if each.name != "vocabulary"]
    assert shape.layer_parameters == sum(each.inputs * each.outputs for each in matrices)
