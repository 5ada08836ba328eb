"""The Spark runtime: the same plan, hosted in stateful stages of Structured Streaming.

Nothing is imported here: the worker daemon sets its path in order before PySpark is first imported.
"""
