"""Outputs for readers: the site, the PDF and the notebooks."""
