"""By which phrases books, data and laws name what readers ask for by another word."""

import tomllib

from calc.core.records import DATA

SYNONYMS: dict[str, list[str]] = tomllib.loads((DATA / "synonyms.toml").read_text(encoding="utf-8"))
