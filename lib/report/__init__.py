"""What a profile measured, answered and showed as one HTML page, in a folder that can
be published as it is.

    page        the page with its figures and notebooks: `write_report`
    templates   the page's HTML, prose, style and code, and the frame of a notebook
"""
