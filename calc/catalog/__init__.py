"""Catalogue read from data: constants, devices, machines, software, models and training runs."""
