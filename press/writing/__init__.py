"""What a reader gets: the site, the PDF and the notebooks."""
