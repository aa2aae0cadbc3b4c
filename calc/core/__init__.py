"""Foundations of laws, data and plans: units, their parser, the decorator of a law, provenance.

Nothing in here knows a device, a model or a law; everything else in `calc` may import it.
"""
