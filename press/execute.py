"""Runs the cells and inline values of chapters: one kernel per chapter, chapters side by side."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BookError
from .source import Cell, Prose, Source

KERNEL_SETUP = Path(__file__).with_name("kernel_setup.py")

# What a chapter may see of the author's shell. Nothing else can change a result.
ENVIRONMENT = ["PATH", "HOME", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"]

CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1

Outputs = list[dict[str, Any]]


@dataclass
class Result:
    """What a chapter's pieces gave, in order, and the modules that it took from elsewhere."""

    pieces: list[Outputs]
    outside_modules: list[str]


def environment() -> dict[str, str]:
    fixed = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    fixed["MATPLOTLIBRC"] = str(KERNEL_SETUP.with_name("matplotlibrc"))
    return {key: os.environ[key] for key in ENVIRONMENT if key in os.environ} | fixed


def execute(sources: list[Source], root: Path, in_project: bool) -> dict[str, Result | BookError]:
    """Runs every source, one a core at most; each chapter's result or first failure, by file."""
    return asyncio.run(_execute_all(sources, root, in_project))


async def _execute_all(
    sources: list[Source], root: Path, in_project: bool
) -> dict[str, Result | BookError]:
    places = asyncio.Semaphore(CORES)

    async def run(source: Source) -> Result | BookError:
        if not any(isinstance(piece, Cell) or piece.inline_values() for piece in source.pieces):
            return Result([[] for _ in source.pieces], [])
        async with places:
            try:
                return await _execute(
                    source, root, root if in_project else (root / source.file).parent
                )
            except BookError as error:
                return error

    outcomes = await asyncio.gather(*map(run, sources))
    return {source.file: outcome for source, outcome in zip(sources, outcomes, strict=True)}


async def _execute(source: Source, root: Path, folder: Path) -> Result:
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from nbformat import v4

    manager = AsyncKernelManager(transport="tcp")
    # Always this Python: a kernel installed elsewhere on the machine could be another.
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="press",
        language="python",
    )
    notebook = v4.new_notebook()
    client = NotebookClient(
        notebook, km=manager, timeout=None, resources={"metadata": {"path": str(folder)}}
    )

    async def run(code: str, line: int) -> Outputs:
        cell = v4.new_code_cell(code)
        notebook.cells.append(cell)
        try:
            await client.async_execute_cell(cell, len(notebook.cells) - 1)
        except CellExecutionError as error:
            sentence = f"this cell fails with {_last_line(error.ename, error.evalue)}"
            raise BookError.of(source.file, line, sentence) from None
        except DeadKernelError:
            sentence = "this cell ended its Python process."
            raise BookError.of(source.file, line, sentence) from None
        return [dict(output) for output in cell.outputs]

    async def values(expressions: list[tuple[int, str]]) -> Outputs:
        if not expressions:
            return []
        outputs = await run(f"__press__.values({[e for _, e in expressions]!r})", expressions[0][0])
        found: Outputs = outputs[-1]["data"]["application/json"]
        for (line, expression), value in zip(expressions, found, strict=True):
            if value["status"] == "error":
                sentence = (
                    f"`{expression}` fails with {_last_line(value['ename'], value['evalue'])}"
                )
                raise BookError.of(source.file, line, sentence)
        return found

    async with client.async_setup_kernel(
        cleanup_kc=True,
        env=environment(),
        stderr=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    ):
        # nbclient would take a Ctrl-C for the kernel alone; it means the build.
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
        await run(KERNEL_SETUP.read_text(encoding="utf-8"), 1)
        pieces: list[Outputs] = []
        for piece in source.pieces:
            if isinstance(piece, Prose):
                pieces.append(await values(piece.inline_values()))
            elif isinstance(piece, Cell):
                pieces.append(await run(piece.code, piece.line) if piece.options["eval"] else [])
        outside = await run(f"__press__.outside_modules({str(root)!r})", 1)
    return Result(pieces, outside[-1]["data"]["application/json"])


def _last_line(name: str, value: str) -> str:
    lines = str(value).strip().splitlines()
    return f"{name}: {lines[-1]}" if lines else f"{name}."
