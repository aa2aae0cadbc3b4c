"""Runs first in every chapter's kernel: stable figures, and the two questions that press asks.

Quarto's own set-up likewise reaches into the kernel; a chapter sees one name of it, `__press__`.
"""


class __press__:  # noqa: N801
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
    def outside_modules(cls, root: str) -> None:
        """The files of loaded modules that neither the project nor an installation holds."""
        import sys
        import sysconfig
        from pathlib import Path

        homes = [
            Path(home).resolve() for home in (root, sys.prefix, *sysconfig.get_paths().values())
        ]
        files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        paths = sorted(Path(file).resolve() for file in files if isinstance(file, str))
        cls.tell([str(p) for p in paths if not any(p.is_relative_to(home) for home in homes)])

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
