"""A chapter as a document: woven with its results, parsed, numbered, its references answered."""
