# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""checks_test.py - faults that somebody may plant in a header or in the code are found."""

import os
import unittest

from tree import GOOD, checks, faults, page, read, sources, written

CODE = """static int helper(void)
{
	return -EPERM;
}

int rbx_thing_open(struct rbx_context *ctx, struct rbx_thing **thing)
{
	/* never -EIO */
	if (err == -EBUSY)
		return 0;
	return ctx ? -ENOMEM : -EINVAL;
}
"""


class Headers(unittest.TestCase):
    """header_faults()"""

    def test_good_header_has_no_fault(self):
        self.assertEqual(faults(GOOD), [])

    def test_function_without_comment_is_found(self):
        self.assertEqual(faults("int rbx_x(void);\n"), ["rbx_x has no comment of the form"])
        self.assertEqual(faults(GOOD.replace("/**", "/*")),
                         ["rbx_thing_open has no comment of the form"])

    def test_call_without_errors_is_found(self):
        text = GOOD.replace(" * Returns 0, or:\n *\t-EINVAL: an argument is NULL\n"
                            " *\t-ENOMEM: memory ran out\n", " * Returns 0.\n")
        self.assertEqual(faults(text), ["rbx_thing_open: no error is listed, and Returns does "
                                        "not say \"never fails\""])
        self.assertEqual(faults(text.replace("Returns 0.", "Returns 1; never fails.")), [])

    def test_call_without_returns_is_found(self):
        start, end = GOOD.index(" * Returns"), GOOD.index(" * Context")
        self.assertEqual(faults(GOOD[:start] + GOOD[end:]),
                         ["rbx_thing_open: what does it return? Returns ..."])

    def test_returns_of_a_function_that_returns_nothing_is_found(self):
        self.assertEqual(faults(GOOD.replace("int rbx", "void rbx")),
                         ["rbx_thing_open returns nothing"])

    def test_parameter_that_the_declaration_lacks_is_found(self):
        self.assertEqual(faults(GOOD.replace("@thing:", "@thong:")),
                         ["@thong: rbx_thing_open() has no such parameter"])

    def test_error_that_is_none_is_found(self):
        self.assertEqual(faults(GOOD.replace("-ENOMEM", "-ENOMEN")), ["-ENOMEN is no error"])

    def test_missing_or_vague_context_is_found(self):
        self.assertEqual(faults(GOOD.replace(" * Context: any thread; blocks.\n", "")),
                         ["rbx_thing_open: which threads may call it, and does it block? "
                          "Context:"])
        self.assertEqual(faults(GOOD.replace("; blocks", "")),
                         ["rbx_thing_open: Context does not say whether it blocks"])

    def test_option_without_default_and_field_without_words_are_found(self):
        self.assertEqual(faults("struct rbx_x_options {\n\tint mode; /* how. Default: 1. */\n"
                                "\tint depth; /* how deep */\n};\n"
                                "struct rbx_y {\n\tint bare;\n};\n"),
                         ["struct rbx_x_options: depth has no \"Default: ...\"",
                          "struct rbx_y: what is bare?"])

    def test_fault_names_file_and_line(self):
        header = read("\n\nint rbx_x(void);\n")
        self.assertEqual(list(checks.header_faults(header)),
                         [f"{header.path}:3: rbx_x has no comment of the form"])

    def test_function_on_no_page_or_two_is_found(self):
        api = page.Api([read(GOOD)])
        for pages, count in (([], 0), ([("a", ["rbx_thing_open"]), ("b", ["rbx_thing_open"])], 2)):
            fault, = checks.page_faults(api, pages)
            self.assertIn(f"rbx_thing_open is on {count} pages", fault)
        self.assertEqual(list(checks.page_faults(api, [("a", ["rbx_thing_open"])])), [])


class Sources(unittest.TestCase):
    """source_faults()"""

    def of(self, code, text=GOOD):
        """What is found in a source against a header, without the path."""
        path = written(code, ".c")
        try:
            return [fault.split(":", 1)[1] for fault in
                    sources.source_faults(page.Api([read(text)]), [path])]
        finally:
            os.unlink(path)

    def test_code_that_does_what_the_comment_says_has_no_fault(self):
        self.assertEqual(self.of(CODE), [])

    def test_error_that_no_comment_knows_is_found(self):
        self.assertEqual(self.of(CODE.replace("-ENOMEM", "-ENOSPC")),
                         ["6: rbx_thing_open may return -ENOSPC, and its comment does not say so"])

    def test_guard_counts_as_what_it_returns(self):
        guarded = CODE.replace("\tif (err", "\terr = rbx_guard_wait(ctx, \"x\");\n\tif (err")
        self.assertEqual(self.of(guarded),
                         ["6: rbx_thing_open may return -EDEADLK, and its comment does not say so"])
        self.assertEqual(self.of(guarded.replace("guard_wait", "guard_use")), [])


if __name__ == "__main__":
    unittest.main()
