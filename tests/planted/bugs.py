"""The bugs to plant: one mistake each, in one place, of the kind that an engineer really makes.

`old` occurs exactly once in its file below `src/transom`. Short texts from the middle of the code, so that a new
wording of a comment does not touch them.
"""

from __future__ import annotations

from typing import Final

from tests.planted.bugs_of_aggregates import AGGREGATES
from tests.planted.bugs_of_checkpoints import CHECKPOINTS
from tests.planted.bugs_of_databases import DATABASES
from tests.planted.bugs_of_files import FILES
from tests.planted.bugs_of_joinagg import JOINAGG
from tests.planted.bugs_of_kafka import KAFKA
from tests.planted.bugs_of_negative_tuples import NEGATIVE
from tests.planted.bugs_of_nested_values import NESTED
from tests.planted.bugs_of_operators import AGGREGATE, COUNTING, JOIN
from tests.planted.bugs_of_outer_joins import OUTER_JOINS
from tests.planted.bugs_of_over import OVER
from tests.planted.bugs_of_partitions import EXCHANGES, GATES, STEPS
from tests.planted.bugs_of_processes import PROCESSES
from tests.planted.bugs_of_ranks import RANKS
from tests.planted.bugs_of_sharing import SHARING
from tests.planted.bugs_of_slides import SLIDES
from tests.planted.bugs_of_spark import SPARK
from tests.planted.bugs_of_the_console import CONSOLE
from tests.planted.bugs_of_the_rest import GROWTH, KEYS, PLAN, SCALAR, TABLES
from tests.planted.bugs_of_time import LIFETIMES, PROGRESS, RESTART, WINDOW_TABLES, WINDOWS
from tests.planted.bugs_of_trials import TRIALS

BUGS: Final = (
    *WINDOWS,
    *WINDOW_TABLES,
    *PROGRESS,
    *LIFETIMES,
    *RESTART,
    *COUNTING,
    *RANKS,
    *OVER,
    *JOIN,
    *OUTER_JOINS,
    *AGGREGATE,
    *AGGREGATES,
    *JOINAGG,
    *KEYS,
    *NESTED,
    *TABLES,
    *PLAN,
    *GROWTH,
    *SCALAR,
    *EXCHANGES,
    *GATES,
    *NEGATIVE,
    *SHARING,
    *SLIDES,
    *STEPS,
    *CHECKPOINTS,
    *FILES,
    *DATABASES,
    *CONSOLE,
    *KAFKA,
    *SPARK,
    *PROCESSES,
    *TRIALS,
)
