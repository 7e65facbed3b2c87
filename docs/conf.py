"""The site: `make docs` builds it, without the network, and any warning ends the build."""

import os
import sys
from pathlib import Path

import kmargin

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(ROOT)]
os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "kmargin"
author = "The kmargin developers"
copyright = f"{author}. BSD-3-Clause"
version = release = kmargin.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "repository",
]
exclude_patterns = ["_build", "_ext", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
nitpicky = True
default_role = "code"
# functions of other modules in the configuration, which cannot be compared with those of the last build
suppress_warnings = ["config.cache"]

# pages: Markdown with formulas between dollars
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"

# the notebook is stored without output and run in the build
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_ipywidgets_js = {}  # else each page would ask a server for them

# every public name has a page
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True

# pictures that explain, drawn in the build
plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]
plot_rcparams = {"figure.constrained_layout.use": True, "font.size": 10, "svg.fonttype": "none"}
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "doc_module": ("kmargin",),
    "reference_url": {"kmargin": None},
    "backreferences_dir": "gallery/backreferences",
    "inspect_global_variables": False,
    "within_subsection_order": "gallery_order.GalleryOrder",
    "ignore_pattern": r"^(?!plot_)",  # the others take too long for a build
}

html_theme = "pydata_sphinx_theme"
html_title = "kmargin"
html_favicon = "_static/kmargin.svg"
html_static_path = ["_static"]
# the page of the full run of the paper, and the files it links to
html_extra_path = [
    str(file) for file in sorted((ROOT / "results" / "paper").iterdir()) if file.suffix != ".md"
]
html_css_files = ["kmargin.css", "cheat_sheet.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "kmargin", "image_light": "_static/kmargin.svg", "image_dark": "_static/kmargin.svg"},
    "github_url": "https://github.com/kmargin/kmargin",
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_nav_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "article_footer_items": [],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}
html_context = {"default_mode": "auto"}
