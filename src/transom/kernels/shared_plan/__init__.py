"""A plan for many queries: what one of them reads of it, where it is computed once for all."""
