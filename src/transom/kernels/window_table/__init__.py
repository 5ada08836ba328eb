"""TUMBLE, HOP and SESSION as tables: rows with the bounds of their windows, which enter when the window is over."""
