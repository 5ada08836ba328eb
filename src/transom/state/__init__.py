"""Memory without logic: slots, holders, and the codec that turns any state into Arrow IPC."""
