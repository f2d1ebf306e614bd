import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from pages import page, page_count


class Pages(unittest.TestCase):
    def test_full_pages(self):
        self.assertEqual(page_count(20, 10), 2)

    def test_the_last_page_may_be_short(self):
        self.assertEqual(page_count(21, 10), 3)
        self.assertEqual(page(list("abcde"), 3, 2), ["e"])

    def test_nothing_takes_no_page(self):
        self.assertEqual(page_count(0, 10), 0)


if __name__ == "__main__":
    unittest.main()
