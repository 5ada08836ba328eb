"""Which work of a shared join is done first, when not all of it can be: policies, their measurements, a simulation."""
