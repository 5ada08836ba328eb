"""What `transom bench` runs: measurements, in a checkout alone. The harness is `benchmarks.harness`."""
