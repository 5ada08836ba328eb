"""A page for a browser that shows queries while they run; nothing imports this room but who opens the page."""
