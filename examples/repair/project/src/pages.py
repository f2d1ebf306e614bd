"""Splits a list into pages."""


def page_count(items, per_page):
    """How many pages `items` entries take, `per_page` to a page."""
    if per_page < 1:
        raise ValueError("a page holds at least one entry")
    return items // per_page


def page(entries, number, per_page):
    """The entries of page `number`, counted from 1."""
    if not 1 <= number <= page_count(len(entries), per_page):
        raise IndexError(f"there is no page {number}")
    start = (number - 1) * per_page
    return entries[start : start + per_page]
