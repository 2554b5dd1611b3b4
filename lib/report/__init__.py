"""A profile's claims, figures, heads and answers as one HTML page.

    page           all of it: `write_report`
    answers        what is stored of answers, read once, and what the page shows of it
    heads          λ of every head of the first layer, and of every layer
    prompt         one prompt that a reader explores
    forest_plots   intervals by model, and the problems behind each
    courses        what other numbers, places and depths of the slashes give
    claim_rows     the claims in groups, one row each
    axis           where an interval, a range and the paper's number stand in a row
    facts          what the page says of its run
    gallery        the figures beside the page, and their captions
    publish        notebooks and the short report as HTML, beside the page
    glossary       words that are explained where they first stand
    formulas       the formulas in problems and answers, as MathML
    templates      the page's HTML, style and code

Its sentences are `lib.sentences.page_sections`.
"""
