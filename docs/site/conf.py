"""Sphinx's configuration; docs/site/build.py puts it beside the sources that it gathers."""

import zerostride

project = "zerostride"
author = "the zerostride authors"
release = version = zerostride.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
language = "en"
nitpicky = True

# Pages are Markdown as the repository shows it.
myst_enable_extensions = ["attrs_block", "html_image"]
myst_heading_anchors = 4
# Text that a highlighter cannot parse is shown without colours.
suppress_warnings = ["misc.highlighting_failure"]
# Console blocks are shown without colours: the highlighter needs prompts of its own form.
highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# Docstrings: Google's style, types in the signature, `words` between single backticks are code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
# Attributes of an error, say, are a list, not entries of their own beside the class's.
napoleon_use_ivar = True
# Names in docstrings without a page in the reference: internals, and names of other projects.
nitpick_ignore_regex = [
    ("py:.*", r"(?!zerostride\.[A-Za-z_]+$).*"),
]

html_theme = "furo"
html_title = "zerostride"
html_static_path = ["_static"]
html_css_files = ["drawings.css", "site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
# No index of names: the search and the reference list them.
html_use_index = False
html_domain_indices = False
html_theme_options = {
    "sidebar_hide_name": False,
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0a58a8", "color-brand-content": "#0a58a8"},
    "dark_css_variables": {"color-brand-primary": "#7ab7ff", "color-brand-content": "#7ab7ff"},
}
