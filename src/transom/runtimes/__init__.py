"""Where queries run. Every runtime is a room of its own and gives the same answer."""
