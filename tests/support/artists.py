"""What a figure's artists say."""


def texts(labels) -> list[str]:
    return [label.get_text() for label in labels]


def extents(ax, area) -> list[float]:
    """Return the left, bottom, right and top of an area in numbers of the axes."""
    return area.get_datalim(ax.transData).extents.tolist()
