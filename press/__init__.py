"""press: renders a Quarto book project to HTML and PDF where Quarto is not installed.

It reads the subset of Quarto Markdown that a computed book needs and refuses the rest by file and
line. `stages` is the whole of a build as one table: what makes what, and of what. `driver` takes a
book's chapters through it, and alone remembers, collects problems and runs work side by side. What
the stages do stands in four rooms, as functions of what they take: `reading` (what an author has
written), `running` (the chapters' cells), `document` (a chapter as a numbered page) and `writing`
(the site, the PDF, the notebooks).
"""
