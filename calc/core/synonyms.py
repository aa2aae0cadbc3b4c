"""Phrases by which books, data and laws name what readers ask for by another word."""

from calc.core.records import DATA, read_toml

SYNONYMS: dict[str, list[str]] = read_toml(DATA / "synonyms.toml")
