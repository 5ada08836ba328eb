"""The driver: kernels built from a physical plan, stepped in order, with progress, ledgers and counters."""
