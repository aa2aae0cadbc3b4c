"""Runs the cells and inline values of chapters: one kernel per chapter, chapters side by side."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from .errors import BookError
from .source import Cell, Prose, Source

if TYPE_CHECKING:
    from nbclient import NotebookClient

KERNEL_SETUP = Path(__file__).with_name("kernel_setup.py")

# What a chapter may see of the author's shell. Nothing else can change a result.
ENVIRONMENT = ["PATH", "HOME", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"]

CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1

Outputs = list[dict[str, Any]]
NARROW = "image/svg+xml;page=narrow"  # beside a figure, the same one drawn for a narrow page


@dataclass
class Result:
    """What a chapter's pieces gave, in order, and each file that it read with its digest."""

    pieces: list[Outputs]
    read: list[tuple[str, str]]


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
    from nbformat import v4

    manager = AsyncKernelManager(transport="tcp")
    # Always this Python: a kernel that is installed on the machine could be another's.
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="press",
        language="python",
    )
    # None of the author's IPython settings and start-up files.
    settings = {"IPYTHONDIR": str(root / ".press-cache" / "ipython")}
    with TemporaryFile() as errors:
        await manager.start_kernel(
            cwd=str(folder), env=environment() | settings, stdout=errors, stderr=errors
        )
        talk = manager.client()
        talk.start_channels()
        talk.allow_stdin = False
        try:
            await talk.wait_for_ready(timeout=60)
            client = NotebookClient(v4.new_notebook(), km=manager, timeout=None)
            client.kc = talk
            return await _Chapter(source, client).run(root)
        except RuntimeError:  # jupyter_client's word for a kernel that does not come up
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            sentence = f"no Python kernel starts for this chapter: {lines[-1] if lines else '?'}"
            raise BookError.of(source.file, 0, sentence) from None
        finally:
            talk.stop_channels()
            await manager.shutdown_kernel(now=True)


class _Chapter:
    """One chapter and the client of its kernel."""

    def __init__(self, source: Source, client: NotebookClient) -> None:
        self.source = source
        self.client = client

    async def run(self, root: Path) -> Result:
        await self.cell(KERNEL_SETUP.read_text(encoding="utf-8"), 1)
        pieces: list[Outputs] = []
        for piece in self.source.pieces:
            if isinstance(piece, Prose):
                pieces.append(await self.values(piece.inline_values()))
            else:
                pieces.append(await self.outputs(piece) if piece.options["eval"] else [])
        folders = f"{str(root)!r}, {str(root / '.press-cache')!r}"
        read = await self.cell(f"__press__.read({folders})", 1)
        return Result(pieces, read[-1]["data"]["application/json"])

    async def outputs(self, cell: Cell) -> Outputs:
        """What a cell gives; a figure is drawn once more, for a page as narrow as a phone's."""
        outputs = await self.cell(cell.code, cell.line)
        if any("image/svg+xml" in output.get("data", {}) for output in outputs):
            again = await self.cell("__press__.narrow()\n" + cell.code, cell.line)
            for output, twin in zip(outputs, again, strict=False):
                if svg := twin.get("data", {}).get("image/svg+xml"):
                    output["data"][NARROW] = svg
        return outputs

    async def cell(self, code: str, line: int) -> Outputs:
        from nbclient.exceptions import CellExecutionError, DeadKernelError
        from nbformat import v4

        cell = v4.new_code_cell(code)
        self.client.nb.cells.append(cell)
        try:
            await self.client.async_execute_cell(cell, len(self.client.nb.cells) - 1)
        except CellExecutionError as error:
            raise self.failure(line, "this cell", error.ename, error.evalue) from None
        except DeadKernelError:
            sentence = "this cell ended its Python process."
            raise BookError.of(self.source.file, line, sentence) from None
        return [dict(output) for output in cell.outputs]

    async def values(self, expressions: list[tuple[int, str]]) -> Outputs:
        if not expressions:
            return []
        asked = [expression for _, expression in expressions]
        outputs = await self.cell(f"__press__.values({asked!r})", expressions[0][0])
        found: Outputs = outputs[-1]["data"]["application/json"]
        for (line, expression), value in zip(expressions, found, strict=True):
            if value["status"] == "error":
                raise self.failure(line, f"`{expression}`", value["ename"], value["evalue"])
        return found

    def failure(self, line: int, what: str, name: str, value: str) -> BookError:
        lines = str(value).strip().splitlines()
        said = f"{name}: {lines[-1]}" if lines else f"{name}."
        return BookError.of(self.source.file, line, f"{what} fails with {said}")
