"""Write the results of a profile as one HTML page, in a folder that can be published
unchanged.

    page        the page with its figures and notebooks: `write_report`
    templates   the page's HTML, prose, style and code, and the frame of a notebook
"""
