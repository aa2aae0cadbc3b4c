"""Many plans, on any executor: models × machines × loads, a row for each, resumable."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from itertools import product
from pathlib import Path

from calc.core.arguments import as_list
from calc.core.errors import InputError, abbreviated
from calc.core.row_file import Row, RowFile
from calc.core.tasks import Tasks, check_executor

PLAIN = (str, int, float, bool, type(None))
COLUMNS: dict[str, type] = {"point": dict, "row": dict}


def grid(**axes: Iterable[object]) -> list[Row]:
    """Every combination of the values of some arguments, the last changing first.

    >>> grid(devices=[8, 16], length=[4096])
    [{'devices': 8, 'length': 4096}, {'devices': 16, 'length': 4096}]
    """
    values = [as_list(f"grid(): {name}", axis) for name, axis in axes.items()]
    return [dict(zip(axes, point, strict=True)) for point in product(*values)]


def run_plans(
    row_of: Callable[..., Row],
    points: Sequence[Row],
    executor: Executor | None = None,
    *,
    resume: Path | str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """A row for each point: its arguments, and what `row_of` makes of them.

    `row_of` is a function of a module, such as `calc.planning.training_row`, which an executor's
    workers can import; points are its arguments by name, and rows are what it returns: words and
    plain numbers both. A point that has no plan has the sentence that says why as its `error`.

    With an `executor` of `concurrent.futures`, such as a ProcessPoolExecutor or that of a Dask
    cluster (`Client.get_executor()`), rows are made by its workers; a task that it loses is given
    to it once more. The file of `resume` takes each row as it is finished, and a later call goes on
    from there. `on_progress` is told how many rows there are and how many there will be.

    >>> from calc.planning import training_row
    >>> same = {"model": "llama-3-8b", "hardware": "dgx-h100", "tokens": "1T", "length": 8192}
    >>> same |= {"sequences": 64, "layout": {"context": 1, "pipeline": 1}}
    >>> rows = run_plans(training_row, [same | point for point in grid(devices=[1, 64])])
    >>> [(row["devices"], row.get("cut"), row.get("error", "")[:15]) for row in rows]
    [(1, None, 'no layout of Ll'), (64, 'DP64 ZeRO2', '')]
    """
    check_executor(executor)
    if not callable(row_of) or not hasattr(row_of, "__qualname__"):
        raise InputError(
            "run_plans() needs a function of a module as row_of, such as"
            f" calc.planning.training_row; got {abbreviated(row_of)}"
        )
    keys = list(map(_checked, as_list("points", points)))
    settings = {"plans": f"{row_of.__module__}.{row_of.__qualname__}"}
    file = None if resume is None else RowFile(resume, settings, COLUMNS)
    with nullcontext(list[Row]()) if file is None else file.open() as lines:
        finished = {json.dumps(line["point"]): line["row"] for line in lines}
        rows = {key: finished[key] for key in keys if key in finished}

        def tell() -> None:
            if on_progress is not None:
                on_progress(len(rows), len({*keys}))

        def finish(key: str, row: Row) -> None:
            if file is not None:
                file.append({"point": json.loads(key), "row": row})
            rows[key] = row
            tell()

        tell()
        missing = [key for key in dict.fromkeys(keys) if key not in rows]
        if executor is None:
            for key in missing:
                finish(key, _row(row_of, key))
        else:
            tasks = Tasks(executor)
            try:
                for key in missing:
                    tasks.submit(key, _row, row_of, key)
                for key, row in tasks:
                    finish(key, row)
            finally:
                for key, row in tasks.cancel():
                    finish(key, row)
    return [{**json.loads(key), **rows[key]} for key in keys]


def _checked(point: object) -> str:
    """A point as text, which names it in the file of finished rows."""
    if not isinstance(point, Mapping) or not all(isinstance(name, str) for name in point):
        raise InputError(f"a point is arguments by their names; got {abbreviated(point)}")
    for name, value in point.items():
        parts = value.values() if isinstance(value, Mapping) else [value]
        if not all(isinstance(part, PLAIN) for part in parts):
            raise InputError(
                f"{name} of a point must be a word or a plain number, so that it can be kept in a"
                f" file; got {abbreviated(value)}"
            )
    return json.dumps(dict(point))


def _row(row_of: Callable[..., Row], key: str) -> Row:
    try:
        return row_of(**json.loads(key))
    except InputError as error:
        return {"error": str(error)}
