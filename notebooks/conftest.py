"""What nbval compares: printed tables, not pictures and not warnings on stderr."""


def pytest_collectstart(collector):
    if collector.fspath and collector.fspath.ext == ".ipynb":
        collector.skip_compare += (
            "text/html",
            "image/svg+xml",
            "application/pdf",
            "stderr",
        )
