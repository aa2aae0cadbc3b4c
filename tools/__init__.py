"""What the project is made and kept with; no part of the library or of the book."""
