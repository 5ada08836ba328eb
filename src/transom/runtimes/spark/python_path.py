"""Where a worker looks for modules, without what only takes time.

Spark puts its own archives on the path: PySpark as a zip, and the jar of its core, which has no module of Python.
Where PySpark is installed beside them nothing is found there, and each task has Python read their directories anew, for
a twentieth of a second.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath


def without_archives(path: Sequence[str]) -> list[str]:
    """Leave out archives that lie within an installed PySpark.

    >>> without_archives(["/opt/spark/python/lib/pyspark.zip", "/usr/lib/python3", "/opt/spark/jars/spark-core_2.jar"])
    ['/opt/spark/python/lib/pyspark.zip', '/usr/lib/python3', '/opt/spark/jars/spark-core_2.jar']
    >>> without_archives(["/v/pyspark/python/lib/pyspark.zip", "/v", "/v/pyspark/jars/spark-core_2.jar", "/v/mine.zip"])
    ['/v', '/v/mine.zip']
    """

    def twin(entry: str) -> bool:
        archive = PurePath(entry)
        is_zip = archive.name == "pyspark.zip" and archive.parent.parts[-2:] == ("python", "lib")
        is_jar = archive.match("jars/spark-core_*.jar")
        if not is_zip and not is_jar:
            return False
        package = archive.parents[2 if is_zip else 1]
        return package.name == "pyspark" and str(package.parent) in path

    return [entry for entry in path if not twin(entry)]


def forget_other_paths() -> None:
    """What Python knows of archives that are not on the path: it would look at them anew, too."""
    for path in sys.path_importer_cache.keys() - set(sys.path):
        if ".zip" in path or ".jar" in path:
            del sys.path_importer_cache[path]
