"""For tests of your own queries: streams written as text, a clock that the test holds, and answers that are compared
by what they mean, not by how they were cut into batches or lifetimes.

>>> answer = run_query('''
...     CREATE STREAM readings (ts TIMESTAMP, room VARCHAR, celsius INTEGER, WATERMARK FOR ts AS ts)
...     WITH (connector = 'files', path = 'readings/');
...     SELECT room, celsius FROM readings [RANGE 10 SECONDS] WHERE celsius > 50
... ''', {"readings": '''
...     0 hall 20
...     4 lab 84
... '''})
>>> answer.expect('''
...      4 + lab 84
...     14 - lab 84
... ''')

A row is a line: first its time, then the values of the other columns in their order. `#` begins a remark.

| written | meaning |
| --- | --- |
| `4`, `4.5` | a time: seconds since 1970 |
| `10:00`, `10:00:04.5` | a time: a time of `day` |
| `2024-05-01T10:00:00` | a time |
| `hall`, `'room 1'`, `'it''s'` | texts; quotes are needed where there is a space, a `;`, a quote or nothing |
| `NULL` | no value |
| `4 + hall 20`, `9 - hall 20` | a row enters or leaves: in a table with a change column, and in what is expected |
| `at 7: hall 20; lab 24`, `at 8: nothing` | the expected snapshot at an instant |
"""

from transom.testing.answer import Answer
from transom.testing.difference import difference
from transom.testing.run_query import run_query
from transom.testing.trial import Trial

__all__ = ["Answer", "Trial", "difference", "run_query"]
