"""Aggregates that change at arrivals and at expiry."""
