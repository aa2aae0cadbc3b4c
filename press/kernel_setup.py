"""Runs first in every chapter's kernel: stable figures, and the two questions that press asks.

It also notes which files the chapter reads, so that its results count no longer than they do.
Quarto's own set-up likewise reaches into the kernel; a chapter sees one name of it, `__press__`.
"""


class __press__:  # noqa: N801
    # What the chapter opened, and its digest just before; None for what it wrote itself.
    opened: dict[str, str | None] = {}  # noqa: RUF012

    @staticmethod
    def digest(path: str) -> str:
        import hashlib

        try:
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "unreadable"

    @classmethod
    def watch(cls) -> None:
        """Notes every file that this process opens from now on, in Python."""
        import os
        import sys

        not_read = (".pyc", ".ttf", ".ttc", ".otf", ".afm")  # a module's source counts; no font
        homes = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev")
        skipped = tuple(os.path.realpath(home) + os.sep for home in homes)

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
                return
            flags = arguments[2] if isinstance(arguments[2], int) else 0
            try:
                path = os.path.realpath(os.fsdecode(arguments[0]))
            except (OSError, ValueError):
                return
            if path in cls.opened or path.startswith(skipped) or path.endswith(not_read):
                return
            if flags & (os.O_TRUNC | os.O_EXCL):
                cls.opened[path] = None
            elif flags & os.O_ACCMODE == os.O_WRONLY:
                return
            elif os.path.isfile(path) or not os.path.exists(path):
                cls.opened[path] = None  # for the opening that the digest needs
                cls.opened[path] = cls.digest(path)

        sys.addaudithook(hook)

    @staticmethod
    def tell(value: object) -> None:
        from IPython.display import display

        display({"application/json": value}, raw=True)

    @classmethod
    def values(cls, expressions: list[str]) -> None:
        """Evaluates inline expressions as Quarto does: with the kernel's `user_expressions`."""
        from IPython import get_ipython

        found = get_ipython().user_expressions(dict(enumerate(expressions)))
        cls.tell([found[i] for i in range(len(expressions))])

    @classmethod
    def read(cls, root: str, memory: str) -> None:
        """The digest of each file that the chapter read and each module from outside `root`.

        Not what an installation or `memory` holds, nor the list of fonts that matplotlib keeps.
        """
        import sys
        import sysconfig
        from pathlib import Path

        own = dict(cls.opened)
        homes = {Path(home).resolve() for home in (sys.prefix, *sysconfig.get_paths().values())}
        homes.add(Path(memory).resolve())
        if drawing := sys.modules.get("matplotlib"):
            homes.add(Path(drawing.get_cachedir()).resolve())
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        modules = {Path(file).resolve() for file in files if isinstance(file, str)}
        for path in modules:
            if not path.is_relative_to(Path(root).resolve()):
                own.setdefault(str(path), cls.digest(str(path)))
        cls.tell(
            [
                [path, value]
                for path, value in sorted(own.items())
                if value and not any(Path(path).is_relative_to(home) for home in homes)
            ]
        )

    @staticmethod
    def narrow() -> None:
        """Until this cell ends, a new figure is as wide as a phone's page, not a book's."""
        import sys

        from IPython import get_ipython

        if drawing := sys.modules.get("matplotlib"):
            events, before = get_ipython().events, drawing.rcParams["figure.figsize"]

            def widen() -> None:
                drawing.rcParams["figure.figsize"] = before
                events.unregister("post_execute", widen)

            drawing.rcParams["figure.figsize"] = [3.5, 2.6]  # inches; what is tight adds a margin
            events.register("post_execute", widen)

    @staticmethod
    def draw_svg(figure: object) -> object:
        from IPython.core.pylabtools import print_figure

        return print_figure(figure, "svg", bbox_inches="tight", metadata={"Date": None})

    @classmethod
    def set_up(cls) -> None:
        import logging

        from IPython import get_ipython

        # On a new machine matplotlib reports that it lists the fonts: not a matter for the page.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        shell = get_ipython()
        svg = shell.display_formatter.formatters["image/svg+xml"]
        svg.for_type_by_name("matplotlib.figure", "Figure", cls.draw_svg)
        # The inline backend, once a chapter imports pyplot, sets its own printer from these.
        backend = shell.config.InlineBackend
        backend.figure_formats = {"svg"}
        backend.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None}}


__press__.set_up()
__press__.watch()
