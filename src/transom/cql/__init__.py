"""From text to plan: the CQL dialect, and the binder that gives names and types their meaning."""
