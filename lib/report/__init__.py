"""What a profile measured, answered and showed as one HTML page, in a folder that can
be published as it is.

    page        the page itself: `write_report`
    publish     what stands on it and beside it from files that the repository keeps
    templates   the page's HTML, prose, style and code, and the frame of a notebook
"""
