"""Configuration of Sphinx."""

from __future__ import annotations

import re
from typing import Any

import gfucb

project = "gfucb"
author = "The gfucb developers"
project_copyright = author
version = release = gfucb.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as a code host makes them
source_suffix = {".md": "markdown"}

# Docstrings: Google's style, and names and code in single backticks.
default_role = "py:obj"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
# Aliases of long unions are shown by their names.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "Forgetting", "ValueRange")}
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
copybutton_exclude = ".linenos, .gp, .go"
pygments_style = "tango"

html_theme = "pydata_sphinx_theme"
html_title = f"gfucb {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "gfucb"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars: dict[str, list[str]] = {"index": []}


def escape_formulas(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings use stars and bars literally: products, axes such as *input, and norms."""
    lines[:] = [
        "".join(p if p.startswith("`") else re.sub(r"([*|])", r"\\\1", p) for p in parts)
        for parts in (re.split(r"(`+[^`]*`+)", line) for line in lines)
    ]


def name_aliases(
    app: Any, what: str, name: str, value: Any, options: Any, signature: Any, returned: Any
) -> None:
    """Show an alias by its name also in unions, where Sphinx shows how it stores the alias."""
    annotations = app.env.current_document.autodoc_annotations.get(name, {})
    for argument, text in annotations.items():
        annotations[argument] = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)


def setup(app: Any) -> None:
    """Connect the hooks."""
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)
    app.connect("autodoc-process-signature", name_aliases, priority=900)  # after the types are read
