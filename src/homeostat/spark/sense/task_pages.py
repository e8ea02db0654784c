"""The tasks of a large stage, read in pages, so that neither the driver nor this process holds all of them at once."""

from __future__ import annotations

from homeostat.spark.sense.rest_answers import StageAttempt
from homeostat.spark.sense.status_source import StatusSource
from homeostat.spark.sense.task_answers import TaskList

# The tasks of a job with no more than this many are read in one request for each stage: an answer has 2 kB for each
# task, and a page costs a request of its own. A choice.
WHOLE_TASKS = 2_000
# The tasks in a page. A choice: an answer of 2 MB, well within the time limit of a request.
PAGE_TASKS = 1_000
# The most tasks that are read of one attempt. A larger attempt is sampled: this takes 20 requests and 10 MB, however
# many tasks it has. A choice: about 2 s for the driver, once for each batch of such a stage, which itself takes
# minutes.
MOST_TASKS = 20_000


def read_attempt(status: StatusSource, attempt: StageAttempt) -> TaskList:
    """The tasks of an attempt; if there are too many, pages that are spread evenly over them."""
    tasks = TaskList()
    for offset in _offsets(attempt.tasks):
        count, page = status.tasks(attempt.id, attempt.attempt, offset, PAGE_TASKS)
        tasks += page
        if count < PAGE_TASKS:
            break
    return tasks


def _offsets(tasks: int) -> list[int]:
    """Where the pages begin. After failures the list is longer than the stage has tasks: the last page may be short."""
    pages = MOST_TASKS // PAGE_TASKS
    if tasks <= MOST_TASKS:
        return list(range(0, MOST_TASKS, PAGE_TASKS))
    return [round(page * (tasks - PAGE_TASKS) / (pages - 1)) for page in range(pages)]
