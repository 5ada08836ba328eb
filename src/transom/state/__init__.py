"""Memory without logic: slots, open row ids, and the codec that turns any state into Arrow IPC."""
