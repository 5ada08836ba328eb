"""Operators under negative tuples (paper 1): every row passes twice, when it arrives and when it departs."""
