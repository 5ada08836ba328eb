"""Answers asked by SQL from outside, while their queries run: by Arrow Flight SQL, which ADBC and JDBC speak."""
