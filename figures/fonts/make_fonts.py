"""Cut the book's fonts from the full families that npm publishes.

Run once, when a family is updated (press/theme/vendor/README.md says with which versions):

    npm install inter-ui jetbrains-mono
    pip install --no-deps --target site ziamath
    python figures/fonts/make_fonts.py node_modules site   # needs fonttools and brotli

One source for every medium, so that a figure measured by matplotlib fits on the page and in the
PDF to the last unit: woff2 for the page (variable, two weights and the optical size), static TTF
for matplotlib and typst, which open neither woff2 nor variable fonts. All hold the same glyphs.
"""

import sys
from io import BytesIO
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

HERE = Path(__file__).parent
VENDOR = HERE.parents[1] / "press" / "theme" / "vendor"

# Latin, Greek, and the marks, numerals, arrows and operators that technical prose writes.
TEXT = (
    *range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x218, 0x21C), 0x2BC, 0x2C6, 0x2DA, 0x2DC,
    *range(0x300, 0x30D), *range(0x370, 0x400), *range(0x2000, 0x20A0), 0x20AC, 0x2113, 0x2116,
    0x2122, 0x2126, *range(0x2150, 0x215F), *range(0x2190, 0x219A), *range(0x21D0, 0x21D6),
    *range(0x2200, 0x2300), *range(0x2308, 0x230C), *range(0x25A0, 0x2600), 0x2713, 0x2717,
)  # fmt: skip
BOX_DRAWING = tuple(range(0x2500, 0x25A0))
# What formulas write: upright, italic and double-struck letters, Greek, operators and brackets.
MATHEMATICS = (
    *range(0x20, 0x7F), 0xA0, 0xAC, 0xB1, 0xB7, 0xD7, 0xF7, *range(0x300, 0x309), 0x338,
    *range(0x391, 0x3CA), 0x3D1, 0x3D5, 0x3F5, *range(0x2010, 0x2015), 0x2016, 0x2026, 0x2032,
    0x2033, 0x203E, *range(0x2061, 0x2065), 0x20D7, 0x2102, 0x210E, 0x2113, 0x2115, 0x211D, 0x2124,
    *range(0x2190, 0x2196), 0x21A6, *range(0x21D0, 0x21D5), *range(0x2200, 0x2214),
    *range(0x2216, 0x2235), *range(0x223C, 0x2240), 0x2243, 0x2245, 0x2248, *range(0x2260, 0x2270),
    *range(0x2282, 0x228C), *range(0x2295, 0x229A), 0x22A4, 0x22A5, 0x22C0, 0x22C1, 0x22C5,
    *range(0x22EE, 0x22F2), *range(0x2308, 0x230C), 0x23B4, 0x23B5, *range(0x23DC, 0x23E0),
    0x27E8, 0x27E9, *range(0x1D400, 0x1D468), 0x1D53C,
    *range(0x1D6E2, 0x1D71C),
)  # fmt: skip
INTER_FEATURES = [
    "calt", "case", "ccmp", "dnom", "frac", "kern", "locl", "mark", "mkmk", "numr", "ss03",
    "subs", "sups", "tnum", "zero",
]  # fmt: skip
CODE_FEATURES = ["ccmp", "locl", "mark", "mkmk", "zero"]  # no calt: `/=` must stay itself


def write(font: TTFont, target: Path, codepoints: tuple[int, ...], features: list[str]) -> None:
    settled = BytesIO()  # an instanced font can be subset only once it has been written and read
    font.flavor, font.recalcTimestamp = None, False
    font.save(settled)
    font = TTFont(settled, recalcTimestamp=False)
    options = Options(layout_features=features, name_IDs=["*"])
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=codepoints)
    subsetter.subset(font)
    font.flavor = "woff2" if target.suffix == ".woff2" else None
    target.parent.mkdir(parents=True, exist_ok=True)
    font.save(target)


def name_as(font: TTFont, style: str) -> None:
    """Give an instance of the variable font the plain names by which programs look it up."""
    names = font["name"]
    names.names = [record for record in names.names if record.platformID == 3]
    for stale in (16, 17, 21, 22, 25):
        names.removeNames(nameID=stale)
    plain = {1: "Inter", 2: style, 3: f"Inter {style}", 4: f"Inter {style}"}
    for name_id, text in {**plain, 6: "Inter-" + style.replace(" ", "")}.items():
        names.setName(text, name_id, 3, 1, 0x409)
    if "STAT" in font:
        del font["STAT"]


def main(node_modules: Path, site: Path) -> None:
    for slope, upright in (("", True), ("-Italic", False)):
        source = node_modules / "inter-ui/variable" / f"InterVariable{slope}.woff2"
        axes = {"wght": (400, 700)} | ({} if upright else {"opsz": 14})
        variable = instantiateVariableFont(TTFont(source), axes)
        write(variable, VENDOR / "inter" / f"Inter{slope}.woff2", TEXT, INTER_FEATURES)
        for weight, bold in ((400, False), (700, True)):
            style = {(0, 1): "Regular", (1, 1): "Bold", (0, 0): "Italic"}.get(
                (bold, upright), "Bold Italic"
            )
            static = instantiateVariableFont(TTFont(source), {"wght": weight, "opsz": 14})
            name_as(static, style)
            target = HERE / f"Inter-{style.replace(' ', '')}.ttf"
            write(static, target, TEXT, INTER_FEATURES)
    for style in ("Regular", "Bold", "Italic"):
        source = node_modules / f"jetbrains-mono/fonts/webfonts/JetBrainsMono-{style}.woff2"
        for target in (VENDOR / f"jetbrains-mono/JetBrainsMono-{style}.woff2",
                       HERE / f"JetBrainsMono-{style}.ttf"):  # fmt: skip
            write(TTFont(source), target, TEXT + BOX_DRAWING, CODE_FEATURES)
    stix = TTFont(site / "ziamath/fonts/STIXTwoMath-Regular.ttf")
    write(stix, VENDOR / "stix-two/STIXTwoMath.woff2", MATHEMATICS, ["ssty"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
