# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""form_test.py - comments in their parts, and what is refused."""

import unittest

from tree import form

FULL = """/**
 * rbx_read(), rbx_write() - move bytes.
 * @buf: borrowed,
 *	and given back
 * @length: bytes
 *
 * One paragraph
 * of two lines.
 *
 * Another, and a list:
 *	one	the first
 *	two:N	the second,
 *		which is longer
 * And more.
 *
 * Returns 0, or:
 *	-EINVAL, -EIO: it is bad,
 *		very bad
 *	-E...: as rbx_submit()
 * Context: any thread;
 *	blocks.
 * Paper: section II.
 */"""


class Form(unittest.TestCase):
    """parse()"""

    def refuses(self, text, word, line=None):
        """A comment of these lines is refused with that word."""
        comment = "/**\n" + "".join(f" * {each}\n" for each in text.split("\n")) + " */"
        with self.assertRaises(form.Fault) as caught:
            form.parse(comment.replace(" * \t", " *\t"), 10)
        self.assertIn(word, caught.exception.what)
        if line:
            self.assertEqual(caught.exception.line, line)

    def test_comment_with_all_parts_is_taken_apart(self):
        comment = form.parse(FULL, 7)
        self.assertEqual(comment.line, 7)
        self.assertEqual(comment.names, ["rbx_read", "rbx_write"])
        self.assertEqual(comment.brief, "move bytes.")
        self.assertEqual(comment.params, [("buf", "borrowed, and given back"),
                                          ("length", "bytes")])
        self.assertEqual(comment.blocks, [
            ("text", "One paragraph of two lines."),
            ("text", "Another, and a list:"),
            ("list", [("one", "the first"), ("two:N", "the second, which is longer")]),
            ("text", "And more."),
        ])
        self.assertEqual(comment.returns, "0")
        self.assertEqual(comment.errors, [("-EINVAL", "it is bad, very bad"),
                                          ("-EIO", "it is bad, very bad")])
        self.assertEqual(comment.errors_as, ["rbx_submit"])
        self.assertEqual(comment.context, "any thread; blocks.")
        self.assertEqual(comment.lifetime, "")
        self.assertEqual(comment.paper, "section II.")

    def test_returns_without_errors_is_a_sentence(self):
        comment = form.parse("/**\n * rbx_x() - does it.\n *\n * Returns a number,\n"
                             " * of bytes.\n */")
        self.assertEqual(comment.returns, "a number, of bytes")
        self.assertEqual(comment.errors, [])

    def test_first_line_without_name_or_full_stop_is_refused(self):
        self.refuses("opens a thing.", "first line")
        self.refuses("rbx_open() - opens a thing", "first line")
        self.refuses("rbx_open - opens a thing.", "first line")

    def test_parameter_without_words_is_refused(self):
        self.refuses("rbx_x() - does it.\n@buf", "parameter", 13)

    def test_error_without_code_or_words_is_refused(self):
        self.refuses("rbx_x() - does it.\n\nReturns 0, or:\n\tEINVAL: bad", "an error is")
        self.refuses("rbx_x() - does it.\n\nReturns 0, or:\n\t-EINVAL", "an error is")

    def test_list_of_errors_that_is_announced_and_missing_is_refused(self):
        self.refuses("rbx_x() - does it.\n\nReturns 0, or:\nContext: any; blocks.", "list of errors")

    def test_returns_that_does_not_end_is_refused(self):
        self.refuses("rbx_x() - does it.\n\nReturns 0", "full stop")

    def test_parts_in_another_order_are_refused(self):
        self.refuses("rbx_x() - does it.\n\nContext: any; blocks.\nReturns 0.", "last, in this order")
        self.refuses("rbx_x() - does it.\n\nPaper: II.\nContext: any; blocks.", "last, in this order")
        self.refuses("rbx_x() - does it.\n\nReturns 0.\n\nMore prose.", "last, in this order")


if __name__ == "__main__":
    unittest.main()
