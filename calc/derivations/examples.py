"""The running examples of the book: the same models, machines and loads in every chapter.

A chapter that needs a model, a machine or a load takes it from here, so that its numbers can be
laid beside those of another chapter. What a sum in the head needs is `HAND`.
"""

from __future__ import annotations

from dataclasses import dataclass

from calc import machines, models
from calc.core.units import quantity
from calc.derivations.ledger import Claims

DENSE = models.get("llama-3-1-70b")
"""A dense model with grouped queries; Llama 3.3 70B has the same shape."""
MIXTURE = models.get("deepseek-v3")
"""A mixture with latents, the class of DeepSeek, Kimi and GLM; R1 has the same shape."""
HYBRID = models.get("nemotron-nano-9b-v2")
"""A small model most of whose layers keep a state in place of a cache."""
HAND = models.get("llama-3-8b")
"""The model for sums in the head."""

MACHINES = tuple(
    machines.get(key) for key in ("dgx-h200", "dgx-b200", "gb300-nvl72", "mi355x-8", "tpu-v7-pod")
)
"""Hopper and Blackwell in servers, Blackwell in a rack, AMD's and Google's of the same years."""


@dataclass(frozen=True)
class Load:
    """Load of a service: tokens that a request reads and writes."""

    name: str
    prompt: int
    generated: int


CHAT = Load("chat", 1024, 1024)
REASONING = Load("reasoning", 1024, 8192)
SUMMARY = Load("offline summaries", 8192, 1024)


@dataclass(frozen=True)
class Agent(Load):
    """Agent that comes back: each turn reads all that was said, and what a tool has added."""

    turns: int
    shared: int
    """Tokens that all sessions begin with: the system prompt and its tools."""

    @property
    def context(self) -> int:
        """Tokens of a session at its last turn."""
        return self.shared + self.turns * (self.prompt + self.generated)


class ExpectedInterval(Claims):
    """An expectation stands beside an interval: between its ends lie four of five rows like it."""

    level = quantity(80, "%")  # of published rows


AGENT = Agent("agent", 1024, 256, turns=30, shared=8192)
