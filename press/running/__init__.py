"""Runs the cells of chapters, each chapter in a process of its own."""
