"""The command line: `python -m press render`, `watch` and `audit`, in or with a FOLDER."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from press import build
from press.problems import BookError
from press.watch import watch as keep_rendering


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="press", description="Renders a Quarto book project.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    render = commands.add_parser(
        "render", help="make the HTML site, the PDF and the EPUB in _book/"
    )
    watch = commands.add_parser("watch", help="do it again whenever a file changes, until Ctrl+C")
    for command in (render, watch):
        command.add_argument("--to", choices=["html", "pdf", "epub"], help="make one alone")
    render.add_argument(
        "--no-runtime", action="store_true", help="leave out Python for the browser"
    )
    audit = commands.add_parser(
        "audit", help="list the numbers typed in prose, and what else is known to be wrong"
    )
    for command in (render, watch, audit):
        command.add_argument("folder", nargs="?", default=".", type=Path, help="the book's folder")
    chosen = parser.parse_args(arguments)
    root = chosen.folder.resolve()
    try:
        if chosen.command != "audit":
            only = {"pdf": "typst"}.get(chosen.to, chosen.to)
            if chosen.command == "watch":
                keep_rendering(root, only)
            print(build.render(root, only, not chosen.no_runtime))
            return 0
        build.check_parts()
        from press.audit import NAMES, PHRASES, audit as typed_numbers
        from press.running.scripts import told_by_script

        typed = typed_numbers(root)
        print(*typed, sep="\n", end="\n" if typed else "", flush=True)
        if typed:
            mend = f"Compute each of these, or list what none can be in {NAMES} or {PHRASES}."
            print(mend, file=sys.stderr)
        printed_lines = told_by_script(root)
        print(*printed_lines, sep="\n", end="\n" if printed_lines else "")
        if not typed and not printed_lines:
            print("No number is typed in prose, and nothing is known to be wrong.", file=sys.stderr)
        return 1 if typed or printed_lines else 0
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        sys.stderr.close()
        return 1
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        of_book = "; the last good book is as it was" if chosen.command != "audit" else ""
        print(f"Stopped{of_book}.", file=sys.stderr)
        return 130
    finally:
        build.end()


def run() -> NoReturn:
    """Ends with the command: threads that set a page may go on for long, and nobody waits."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = main()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
