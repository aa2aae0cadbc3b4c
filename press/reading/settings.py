"""YAML with line numbers: for `_quarto.yml`, front matter and the `#|` options of cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from press.problems import BookError, Problem

if TYPE_CHECKING:
    import yaml

Lines = dict[tuple[str | int, ...], int]

LARGEST = 1_000_000  # characters
DEEPEST = 50  # levels of one thing in another
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def read_yaml(text: str, file: str, first_line: int = 1) -> tuple[dict[str, Any], Lines]:
    """The mapping in `text`, and the line of each key and list item by its path."""
    import yaml

    lines: Lines = {}

    def fail(line: int, sentence: str) -> BookError:
        return BookError([Problem(file, first_line + line, sentence)])

    def check() -> None:
        """Refuses what would grow without end, or deeper than Python can follow, before it does."""
        if len(text) > LARGEST:
            raise fail(0, f"this is larger than {LARGEST} characters.")
        depth = 0
        event: Any
        for event in yaml.parse(text, Loader=kind):
            line = event.start_mark.line if event.start_mark else 0
            if isinstance(event, yaml.AliasEvent):
                raise fail(line, f"press reads no alias; write what `*{event.anchor}` stands for.")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise fail(line, f"this nests deeper than {DEEPEST} levels.")

    def value(node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        lines[path] = first_line + node.start_mark.line
        if isinstance(node, yaml.SequenceNode):
            return [value(item, (*path, i)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            settings: dict[str, Any] = {}
            for key, item in node.value:
                name = str(key.value)
                if name in settings:
                    raise fail(key.start_mark.line, f"the key `{name}` is given twice.")
                settings[name] = value(item, (*path, name))
                lines[*path, name] = first_line + key.start_mark.line
            return settings
        scalar = loader.construct_object(node)
        if isinstance(scalar, str) and (sign := CONTROL.search(scalar)):
            raise fail(node.start_mark.line, f"this text holds the character U+{ord(sign[0]):04X}.")
        return scalar

    kind: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = kind(text)
    try:
        check()
        node = loader.get_single_node()
        result = {} if node is None else value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise fail(mark.line if mark else 0, f"this is not valid YAML: {error.problem}.") from None
    except (yaml.YAMLError, ValueError) as error:
        raise fail(0, f"this is not valid YAML: {' '.join(str(error).split())}.") from None
    finally:
        loader.dispose()
    if not isinstance(result, dict):
        raise fail(0, "a mapping of keys to values is needed here.")
    return result, lines
