# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mdoc_test.py - prose becomes mdoc."""

import unittest

from tree import header, mdoc


class Mdoc(unittest.TestCase):
    """text_lines(), block_lines(), synopsis()"""

    def lines(self, text, *names):
        """A paragraph, on a page of these functions."""
        return mdoc.text_lines(text, names)

    def test_call_of_the_page_and_of_another_differ(self):
        self.assertEqual(self.lines("rbx_a() comes before rbx_b().", "rbx_a"),
                         [".Fn rbx_a", "comes before", ".Xr rbx_b 3 ."])

    def test_words_with_a_meaning_have_their_macro(self):
        self.assertEqual(self.lines("see rdmabox-tune(1), readv(2) and memcpy()"),
                         ["see", ".Xr rdmabox-tune 1 ,", ".Xr readv 2", "and", ".Fn memcpy"])
        self.assertEqual(self.lines("@buf or NULL: -EIO of struct rbx_x is RBX_ONE"),
                         [".Fa buf", "or", ".Dv NULL :", ".Fl Ns Er EIO", "of",
                          '.Vt "struct rbx_x"', "is", ".Dv RBX_ONE"])
        self.assertEqual(self.lines("the option `queue pairs`."),
                         ["the option", '.Li "queue pairs" .'])

    def test_marks_around_a_word_stay_with_it(self):
        self.assertEqual(self.lines("ends (RBX_ONE), or so"),
                         ["ends", ".Pf ( Dv RBX_ONE ) ,", "or so"])
        self.assertEqual(self.lines("one (RBX_ONE or more)"),
                         ["one", ".Pf ( Dv RBX_ONE", "or more)"])
        self.assertEqual(self.lines("RBX_ONE's life"), [".Dv RBX_ONE Ns \\&'s", "life"])

    def test_each_sentence_begins_a_line(self):
        self.assertEqual(self.lines("It is here. It is there. 7 are e.g. gone."),
                         ["It is here.", "It is there.", "7 are e.g. gone."])

    def test_text_is_nothing_but_text_to_groff(self):
        self.assertEqual(self.lines("'tis \\n of"), ["\\&'tis \\en of"])
        self.assertEqual(self.lines(".5 or -1"), ["\\&.5 or \\-1"])

    def test_list_stands_between_paragraphs(self):
        self.assertEqual(mdoc.block_lines([("text", "One."), ("list", [("a b", "it"), ("c", "")]),
                                           ("text", "Two.")], ()),
                         ["One.", ".Bl -tag -width Ds -compact", '.It Li "a b"', "it",
                          ".It Li c", ".El", ".Pp", "Two."])

    def test_synopsis_has_type_name_and_parameters(self):
        function = header.Function("rbx_x", "h", 1, "const char *", [("int a", "a")])
        self.assertEqual(mdoc.synopsis(function),
                         ['.Ft "const char *"', ".Fo rbx_x", '.Fa "int a"', ".Fc"])
        function.params = []
        self.assertEqual(mdoc.synopsis(function)[1], ".Fn rbx_x void")


if __name__ == "__main__":
    unittest.main()
