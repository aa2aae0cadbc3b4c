"""Files that commands read are never written over, and half-written rows are taken back."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calc import InputError
from calc.commands import main
from calc.core.files import append_line, write_text
from calc.core.row_file import RowFile

PLAN = "plan llama-3-8b {own} --prompt 10 --generated 10"
SERVICE = "plan-service llama-3-8b h100 --trace {own} --ttft 1s --tpot 50ms --percentile 90"
SWEEP = "sweep --seeds 1 --pruning 0 --precisions fp32 --repeats 3 --epochs 1 --resume {own}"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (f"{PLAN} --write-config {{file}}", "own.toml"),
        (f"{PLAN.replace('{own}', 'h100,{own}')} --write-config {{file}}", "own.toml"),
        (f"{PLAN} --csv {{file}}", "own.csv"),
        ("compare llama-3-8b --machines h100,{own} --prompt 9 --generated 9 --write-config {file}",
         "own.toml"),
        (f"{SERVICE} --write-config {{file}}", "trace.csv"),
        (f"{SERVICE} --csv {{file}}", "trace.csv"),
        ("plan --config {own} --write-config {file}", "plan.toml"),
        (f"{SWEEP} --csv {{file}}", "rows.csv"),
        (f"{SWEEP} --parquet {{file}}", "rows.parquet"),
        ("training {own} --html {file}", "run.html"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["itself", "by a detour", "hard link", "link"])
def test_no_file_that_is_read_is_written_over(
    command: str, name: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / name
    source.write_text('prompt = 10\ngenerated = 10\nmodel = "llama-3-8b"\nhardware = "h100"\n')
    before, file = source.read_bytes(), tmp_path / "other" / name
    file.parent.mkdir()
    if way == "itself":
        file = source
    elif way == "by a detour":
        file = tmp_path / "other" / ".." / name
    elif way == "link":
        file.symlink_to(source)
    else:
        file.hardlink_to(source)
    assert main(shlex.split(command.format(own=source, file=file))) == 1
    said = capsys.readouterr().err
    assert said.startswith("calc: --")
    assert f"would overwrite {file}, which is given as" in said
    assert said.count("\n") == 1
    assert source.read_bytes() == before


@pytest.mark.parametrize("name", ["plan.csv", "other/../plan.csv", "link/plan.csv"])
def test_two_outputs_are_two_files(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.csv"
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    outputs = f"--csv {tmp_path / name} --write-config {file}"
    assert main(f"plan llama-3-8b h100 --prompt 1 --generated 1 {outputs}".split()) == 1
    assert "--csv would overwrite" in capsys.readouterr().err
    assert not file.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB; skipped where no one may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a disk of 1 MB needs Linux and the right to mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path, but: int = 0) -> None:
    """Fill a disk, but for so many bytes."""
    free = os.statvfs(disk)
    (disk / "full").write_bytes(b"x" * (free.f_bavail * free.f_frsize - but))


WRITING = {
    "rows.csv": "plan llama-3-8b h100 --prompt 10 --generated 10 --batch 1,2 --csv {file}",
    "plan.toml": "plan llama-3-8b h100 --prompt 10 --generated 10 --write-config {file}",
    "plan.svg": "compare llama-3-8b --machines t4,h100 --prompt 9 --generated 9 --draw {file}",
    "rows.jsonl": SWEEP.replace("{own}", "{file}"),
    "rows.parquet": SWEEP.replace("--resume {own}", "--parquet {file}"),
    "run.html": "training calc/data/measured/training_run.jsonl --html {file}",
}


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_is_a_sentence(
    name: str, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = small_disk / name
    fill(small_disk)
    assert main(shlex.split(WRITING[name].format(file=file))) == 1
    assert capsys.readouterr().err == f"calc: cannot write {file}: No space left on device\n"
    assert {path.name for path in small_disk.iterdir()} <= {"full", "rows.jsonl"}
    assert not file.exists() or not file.read_bytes()  # an empty one is a sweep that begins


def test_a_file_is_kept_when_its_successor_does_not_fit(small_disk: Path) -> None:
    file = small_disk / "plan.toml"
    write_text(file, "old")
    fill(small_disk)
    with pytest.raises(InputError, match="No space left"):
        write_text(file, "new" * 5000)
    assert file.read_text() == "old"
    assert sorted(path.name for path in small_disk.iterdir()) == ["full", "plan.toml"]


def test_a_row_that_the_disk_took_in_part_is_none(small_disk: Path) -> None:
    """A file goes on once there is room again, and holds each row once."""
    file = RowFile(small_disk / "rows.jsonl", {"of": "numbers"}, {"number": int, "text": str})
    long = "x" * 3000
    with file.open():
        file.append({"number": 1, "text": long})
        fill(small_disk)
        (small_disk / "full").write_bytes((small_disk / "full").read_bytes()[:-4096])
        file.append({"number": 2, "text": "x" * 900})
        with pytest.raises(InputError, match="No space left on device"):
            file.append({"number": 2, "text": 2 * long})
        whole = file.path.read_text()
        assert whole.endswith('"}\n')
        (small_disk / "full").unlink()
        file.append({"number": 3, "text": "room again"})
    with file.open() as rows:
        assert [row["number"] for row in rows][-1] == 3
        assert file.path.read_text().startswith(whole)


def test_a_line_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that stops halfway is taken back, tried where nobody may mount a disk."""
    file = tmp_path / "rows.jsonl"
    file.write_text("one\n")
    write = os.write

    def nearly_full(handle: int, line: bytes) -> int:
        if len(line) < 5:
            raise OSError(28, "No space left on device")
        return write(handle, line[:3])

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(InputError, match="No space left on device"):
        append_line(file, "two, which is longer")
    assert file.read_text() == "one\n"


HOLDING = """
import sys, time
from calc.core.row_file import RowFile
with RowFile(sys.argv[1], {"of": "numbers"}, {"number": int}).open():
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_sweep_at_a_time_writes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout
            assert other.stdout.readline() == "held\n"
            file = RowFile(path, {"of": "numbers"}, {"number": int})
            written = pytest.raises(InputError, match="is being written by another sweep: wait for")
            with written, file.open():
                pass
        finally:
            other.kill()
    with file.open() as rows:  # the lock ended with its process
        assert rows == []
        with pytest.raises(InputError, match="another sweep"), file.open():
            pass
    with file.open():
        pass


@pytest.mark.parametrize(
    "command",
    [
        "simulate --plan",
        "plan --help",
        pytest.param("completion bash", marks=pytest.mark.slow),
        pytest.param("show training.mfu", marks=pytest.mark.slow),
        pytest.param("sweep --help", marks=pytest.mark.slow),
        pytest.param("search ring all-reduce", marks=pytest.mark.slow),
        pytest.param("plan llama-3-8b h100 --prompt 9 --generated 9", marks=pytest.mark.slow),
    ],
)
def test_commands_need_no_docstrings(command: str) -> None:
    """Python of `-OO` keeps none, and options get their meanings from them."""
    said = [
        subprocess.run(
            [sys.executable, *flags, "-m", "calc", *command.split()],
            capture_output=True, text=True, check=True,
        ).stdout
        for flags in ([], ["-OO"])
    ]  # fmt: skip
    assert said[0] == said[1]
