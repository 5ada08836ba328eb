"""Transom: standing SQL questions over streams, answered as the data arrives."""
