"""What nbval compares: printed tables, not pictures, not the fields that a person saw
in JupyterLab.
"""


def pytest_collectstart(collector):
    if collector.fspath and collector.fspath.ext == ".ipynb":
        collector.skip_compare += (
            "text/html",
            "image/svg+xml",
            "application/pdf",
            "application/vnd.jupyter.widget-view+json",
        )
