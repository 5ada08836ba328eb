"""ISTREAM, DSTREAM and RSTREAM: a relation becomes a stream."""
