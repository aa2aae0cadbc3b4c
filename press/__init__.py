"""press: renders a Quarto book project to HTML and PDF where Quarto is not installed.

It reads the subset of Quarto Markdown that a computed book needs and refuses the rest by file and
line. A build goes source → execute → weave → references → citations → html and pdf; `build` is the
one place that knows this order.
"""
