"""What every room stands on: instants, types, errors, and the delta that moves between operators."""
