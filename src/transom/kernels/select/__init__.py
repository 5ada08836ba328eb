"""Selections, projections and unions: what passes rows on and keeps nothing."""
