# ruff: noqa: F821
"""Runs first in every chapter's kernel: figures become stable SVG, and press gets its two questions."""


class __press__:  # noqa: N801
    @staticmethod
    def values(expressions: list[str]) -> None:
        """Evaluates inline expressions as Quarto does: with the kernel's `user_expressions`."""
        from IPython.display import display

        found = get_ipython().user_expressions(dict(enumerate(expressions)))
        display({"application/json": [found[i] for i in range(len(expressions))]}, raw=True)

    @staticmethod
    def outside_modules(root: str) -> None:
        """The files of loaded modules that neither the project nor an installation holds."""
        import sys
        import sysconfig
        from pathlib import Path

        from IPython.display import display

        kept = [Path(root), *map(Path, sysconfig.get_paths().values()), Path(sys.prefix)]
        kept = [str(folder.resolve()) for folder in kept]
        files = {
            str(Path(module.__file__).resolve())
            for module in list(sys.modules.values())
            if isinstance(getattr(module, "__file__", None), str)
        }
        outside = [f for f in sorted(files) if not any(Path(f).is_relative_to(k) for k in kept)]
        display({"application/json": outside}, raw=True)

    @staticmethod
    def draw_svg(figure: object) -> str:
        from IPython.core.pylabtools import print_figure

        return print_figure(figure, "svg", bbox_inches="tight", metadata={"Date": None})

    @classmethod
    def set_up(cls) -> None:
        shell = get_ipython()
        svg = shell.display_formatter.formatters["image/svg+xml"]
        svg.for_type_by_name("matplotlib.figure", "Figure", cls.draw_svg)
        # The inline backend, once a chapter imports pyplot, sets its own printer from these.
        shell.config.InlineBackend.figure_formats = {"svg"}
        shell.config.InlineBackend.print_figure_kwargs = {
            "bbox_inches": "tight",
            "metadata": {"Date": None},
        }


__press__.set_up()
