"""Seconds and bytes as a person says them."""

GB = 1e9
MINUTE = 60
HOUR = 3600
# Below so many seconds a time is said in minutes.
TWO_HOURS = 2 * HOUR


def duration(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds < MINUTE:
        return "under a minute"
    if seconds < 1.5 * MINUTE:
        return "1 minute"
    if seconds < TWO_HOURS:
        return f"{seconds / MINUTE:.0f} minutes"
    return f"{seconds / HOUR:.1f} hours"


def gigabytes(size: float) -> str:
    """Return a size in 10^9 bytes."""
    return f"{size / GB:.1f} GB"
