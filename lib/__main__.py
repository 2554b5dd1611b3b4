"""Name the command that replaces `python -m lib`."""

import sys

sys.exit(
    "error: the commands moved: type python -m reproduction instead of python -m lib"
)
