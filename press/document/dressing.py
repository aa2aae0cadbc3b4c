"""Common part of all outputs: a walk over a page's nodes, which makes its own of each kind."""

from __future__ import annotations

from typing import ClassVar

from press.document.page import Page
from press.document.pandoc import Node, attribute, walk

Dressed = Node | list[Node] | None  # None leaves a node as it is and goes on inside it


class Dresser:
    """An output says what it makes of a node by a method `on_` and its type, if anything."""

    without: ClassVar[str]  # the format whose own blocks this output leaves out

    def __init__(self, page: Page) -> None:
        self.page = page

    def dress(self, nodes: list[Node]) -> list[Node]:
        dressed: list[Node] = walk(nodes, self.change)
        return dressed

    def change(self, node: Node) -> Dressed:
        change = getattr(self, f"on_{node['t'].lower()}", None)
        return change(node) if change else None

    def on_div(self, node: Node) -> Dressed:
        identifier, classes, values = attribute(node)
        blocks = node["c"][1]
        if f"press-only-{self.without}" in classes:
            return []
        if "press-figure" in classes:
            return self.figure(identifier, values, caption_of(blocks), blocks[1]["c"][0])
        if "press-table" in classes:
            return self.table(identifier, values["label"], caption_of(blocks), blocks[1])
        if "press-equation" in classes:
            return self.equation(identifier, values["number"], blocks[0]["c"])
        if "press-callout" in classes:
            title, body = (block["c"][1] for block in blocks)
            return self.callout(classes[1], "collapse" in values, title[0]["c"], body)
        if "press-cell" in classes:
            return self.cell(int(values["number"]), blocks)
        return self.block(identifier, classes, blocks)

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> Dressed:
        raise NotImplementedError

    def table(self, identifier: str, label: str, caption: list[Node], table: Node) -> Dressed:
        raise NotImplementedError

    def equation(self, identifier: str, number: str, math: list[Node]) -> Dressed:
        raise NotImplementedError

    def callout(self, kind: str, folded: bool, title: list[Node], body: list[Node]) -> Dressed:
        raise NotImplementedError

    def cell(self, number: int, blocks: list[Node]) -> Dressed:
        return self.dress(blocks)

    def block(self, identifier: str, classes: list[str], blocks: list[Node]) -> Dressed:
        """Any other Div."""
        raise NotImplementedError


def caption_of(blocks: list[Node]) -> list[Node]:
    """The words of the caption of a figure or a table that holds these blocks."""
    caption: list[Node] = blocks[0]["c"][1][0]["c"]
    return caption
