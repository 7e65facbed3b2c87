"""Where the project is on the web, and how an estimator links to its page."""

DOCUMENTATION = "https://kmargin.github.io/kmargin/"
PAGE = DOCUMENTATION + "api/kmargin.{name}.html"  # of a public name


class Documented:
    """What scikit-learn's diagram of an estimator asks for, to link to its documentation."""

    _doc_link_module = "kmargin"
    _doc_link_template = PAGE

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"name": type(self).__name__}
