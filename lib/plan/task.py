"""A task: what is computed on one model for one purpose, in prompts, tokens and
operations, and what of it is stored already.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from lib.plan.speed import Workload
from lib.plan.weights import Shape
from lib.profiles import PARTS, Profile
from lib.prompts.problems import Problem, sampling_order


@dataclass(frozen=True)
class Task:
    """What is computed on one model for one purpose."""

    # Of MEASURED_PARTS, main, check, one of PARTS, likelihood, draws or draw_scores.
    name: str
    model: str  # its spec
    prompts: int
    stored: int  # of these prompts
    tokens: int  # at most, of all prompts and answers
    work: Workload  # what is left to do
    layers: int | None = None  # that are loaded; None: all
    head: bool = True  # whether the output head is loaded too
    dtype: str = "auto"
    # How many answers grow at once where this project's engine keeps their caches, and
    # how long each may get.
    batch_size: int = 0
    longest: int = 0

    @property
    def kind(self) -> str:
        """What the task shares its overhead with."""
        if self.name in ("main", "check", "draws", *PARTS):
            return "answers"
        return "likelihood" if self.name == "draw_scores" else self.name

    @property
    def left(self) -> int:
        """How many prompts are not stored yet."""
        return self.prompts - self.stored


@dataclass(frozen=True)
class TaskInputs:
    """A profile with what its steps are counted from."""

    profile: Profile
    shapes: dict[str, Shape]  # of the models that are known, by spec
    problems: dict[str, list[Problem]]  # all of each source
    fresh: bool = False  # whether a run starts over, whatever is stored

    def sample(
        self, source: str, limit: int | None, levels: Collection[int] | None = None
    ) -> list[Problem]:
        """Return the problems that a section with this limit draws."""
        problems = self.problems[source]
        if levels is not None:
            problems = [problem for problem in problems if problem.level in levels]
        return sampling_order(problems, self.profile.seed)[:limit]

    def multiplied(self, spec: str, layers: int | None = None) -> int:
        """Return the parameters that a token is multiplied with, 0 if not known."""
        shape = self.shapes.get(spec)
        return shape.multiplied(layers) if shape else 0


def as_stored(task: Task, rows: int) -> Task:
    """Return a task of which the repository has so many rows: nothing is left to do,
    even where these are fewer than the profile names.
    """
    return replace(task, prompts=rows, stored=rows, work=Workload())


def operations(tokens: float, multiplied: int) -> float:
    """Return the 10^9 operations of so many tokens through so many parameters."""
    return 2 * tokens * multiplied / 1e9
