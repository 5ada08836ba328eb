"""What Spark says when a query fails: the cause is found in it, and damage is reported as damage only where it is."""

from __future__ import annotations

import pytest

from transom.core.errors import EvaluationError
from transom.runtimes.spark.checkpoint import damage
from transom.runtimes.spark.worker_errors import cause, marked, read_back

FOLDER = "/data/checkpoint/pairs"

PLAN = f"""
=== Streaming Query ===
Identifier: pairs-3f37bc1c [id = 80a2f599-77bd-418a-ab6a-cad4c07dab2e, runId = 7030cb6d-9633-400c-9794-c0443f36c9ef]
Current Committed Offsets: {{}}
Current Available Offsets: {{org.apache.spark.sql.execution.datasources.v2.python.PythonStream@69db: {{}}}}

Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink, [queryName=pairs, checkpointLocation={FOLDER}/spark], Append
+- ~TransformWithStateInPySpark transformWithStateUDF(label#1657, fragment#1658)#1662, 1, Append, NoTime, pandas
   +- LocalRelation <empty>
"""
"""What every text of a query that has failed ends with."""

STORE = (
    "[UNSUPPORTED_FEATURE.STORE_BACKEND_NOT_SUPPORTED_FOR_TWS] The feature is not supported: Store backend x.Y is"
    " not supported by TransformWithState operator. Please use RocksDBStateStoreProvider. SQLSTATE: 0A000"
)

PROXY = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/env/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/env/pyspark/errors/exceptions/captured.py", line 262, in deco
    raise converted from None
"""

ANALYSIS = f"""{PROXY}pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] `x` cannot be resolved.
'Project ['x]
+- StateStoreRestore [checkpoint = file:{FOLDER}/spark/state, runId = 7030cb6d, CANNOT_LOAD_STATE_STORE]

"""

JAVA = f"""{PROXY}py4j.protocol.Py4JJavaError: An error occurred while calling o275.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:56)
"""

UNCATEGORIZED = (
    "Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during"
    " loading state.  SQLSTATE: 58030\n\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(Errors.scala:1)\n"
)

GONE = f"File file:{FOLDER}/spark/state/0/1/2_821dd210.changelog does not exist"
SPOILT = f"Checksum error: file:{FOLDER}/spark/state/0/1/2_821dd210.changelog at 3072 exp: -342878897 got: 1966019334"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (STORE, STORE),
        (ANALYSIS, "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] `x` cannot be resolved."),
        (f"{JAVA}Caused by: java.lang.NullPointerException\n\tat x.Y", "java.lang.NullPointerException"),
        (f"{JAVA}{UNCATEGORIZED}Caused by: java.io.IOException: stopped", "java.io.IOException: stopped"),
        (
            f"{JAVA}Caused by: java.nio.file.FileAlreadyExistsException: {FOLDER}/spark/commits/3",
            f"java.nio.file.FileAlreadyExistsException: {FOLDER}/spark/commits/3",
        ),
        (
            f"{JAVA}Caused by: java.io.FileNotFoundException: {FOLDER}/spark/state/0/1/2.zip (Too many open files)",
            f"java.io.FileNotFoundException: {FOLDER}/spark/state/0/1/2.zip (Too many open files)",
        ),
    ],
)
def test_a_failure_that_is_no_damage_is_reported_by_its_cause(text: str, reported: str) -> None:
    assert damage(text + PLAN, FOLDER) is None
    assert cause(text + PLAN) == reported


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (SPOILT, SPOILT),
        (f"{JAVA}{UNCATEGORIZED}Caused by: org.apache.hadoop.fs.ChecksumException: {SPOILT}", SPOILT),
        (f"{JAVA}Caused by: java.io.FileNotFoundException: {GONE}", GONE),
        (
            f"{JAVA}Caused by: org.apache.spark.SparkException: [CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED] Checksum"
            " verification failed, the file may be corrupted.",
            "[CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED] Checksum verification failed, the file may be corrupted.",
        ),
    ],
)
def test_what_is_lost_or_spoilt_is_damage(text: str, reported: str) -> None:
    found = damage(text + PLAN, FOLDER)
    assert found is not None and found.what == f"the checkpoint cannot be resumed: {reported}"
    assert found.remedy is not None and "empty checkpoint folder" in found.remedy


def test_a_row_that_looks_like_one_of_our_errors_is_not_taken_for_one() -> None:
    fake = marked(EvaluationError("all is well")).partition("\n")[2]
    found = read_back(marked(EvaluationError(f"'{fake}' is no number")))
    assert found is not None and found.what == f"'{fake}' is no number"
