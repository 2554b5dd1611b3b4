"""What a profile computes, task by task.

A task is what `lib.reproduce` computes on one model before a notebook starts.
"""

from collections.abc import Collection

from lib.measurement.plan import MEASURED_PARTS
from lib.plan.answer_tasks import answer_tasks, draw_tasks
from lib.plan.measuring_tasks import measuring_tasks
from lib.plan.score_tasks import draw_score_tasks, likelihood_tasks
from lib.plan.task import Task, TaskInputs
from lib.profiles import PARTS

OF_PART = {
    "likelihood": likelihood_tasks,
    "draws": draw_tasks,
    "draw_scores": draw_score_tasks,
}
# What a run computes, in its order.
EVERY_PART = (*MEASURED_PARTS, "main", *PARTS, *OF_PART)


def tasks_of(inputs: TaskInputs, parts: Collection[str] = ()) -> list[Task]:
    """Return the tasks of a profile that these parts name, all for none."""
    tasks: list[Task] = []
    for part in parts or EVERY_PART:
        if part in MEASURED_PARTS:
            tasks += measuring_tasks(inputs, part)
        elif part in OF_PART:
            tasks += OF_PART[part](inputs)
        else:
            tasks += answer_tasks(inputs, part)
    return tasks
