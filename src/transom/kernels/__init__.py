"""Logic without memory: what each operator does to a batch, over Arrow columns and flat arrays."""
