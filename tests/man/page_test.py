# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""page_test.py - templates become pages; and make_pages --json of the real headers."""

import json
import os
import subprocess
import unittest

from tree import GOOD, TOP, form, page, read

CLOSE = """/**
 * rbx_thing_close() - closes a thing.
 *
 * Returns 0, or:
 *	-EBUSY: it is in use
 *	-E...: as rbx_thing_open()
 * Context: any thread; blocks.
 */
int rbx_thing_close(struct rbx_thing *thing);
struct rbx_thing_options {
	int mode; /* how. Default: 1. */
};
#define RBX_THINGS(X) \\
	X(opened, "things opened")
"""


class Page(unittest.TestCase):
    """Page.text(), Api.errors()"""

    def setUp(self):
        self.api = page.Api([read(GOOD + CLOSE)])

    def made(self, *lines):
        """A page of a template of these lines, without those of @calls."""
        template = "@calls rbx_thing_open\n@calls rbx_thing_close\n" + "\n".join(lines)
        return page.Page(self.api, template).text().split("\n")

    def test_lines_by_hand_stay(self):
        self.assertEqual(self.made(".Sh NAME", "prose"), [".Sh NAME", "prose"])

    def test_names_and_synopsis_are_of_the_calls_in_order(self):
        self.assertEqual(self.made("@names"), [".Nm rbx_thing_open ,", ".Nm rbx_thing_close"])
        synopsis = self.made("@synopsis")
        self.assertEqual(synopsis[:3], [".In rdmabox/thing.h", ".Ft int", ".Fo rbx_thing_open"])
        self.assertEqual(sum(line.startswith(".In") for line in synopsis), 1)

    def test_description_has_all_that_the_comment_says(self):
        lines = self.made("@descriptions")
        self.assertEqual(lines[:4], [".Ss rbx_thing_open()", ".Fn rbx_thing_open",
                                     "opens a thing.", ".Bl -tag -width Ds"])
        for line in (".It Fa thing", "receives it", "any thread; blocks.", ".Em Lifetime :"):
            self.assertIn(line, lines)

    def test_returns_are_grouped_by_their_words(self):
        self.assertEqual(self.made("@returns"),
                         [".Fn rbx_thing_open", "and", ".Fn rbx_thing_close", "return",
                          "0, or a negative error number."])

    def test_errors_are_grouped_by_code_and_words(self):
        self.assertEqual(self.made("@errors"), [
            ".Bl -tag -width Er",
            ".It Bq Fl Ns Er EINVAL",
            ".Fn rbx_thing_open", "and", ".Fn rbx_thing_close :", "an argument is",
            ".Dv NULL .",
            ".It Bq Fl Ns Er ENOMEM",
            ".Fn rbx_thing_open", "and", ".Fn rbx_thing_close :", "memory ran out.",
            ".It Bq Fl Ns Er EBUSY",
            ".Fn rbx_thing_close :", "it is in use.",
            ".El"])

    def test_fields_and_tables_are_lists(self):
        self.assertEqual(self.made("@fields struct rbx_thing_options"),
                         [".Bl -tag -width Ds", ".It Va mode", "how.", "Default: 1.", ".El"])
        self.assertIn("things opened", self.made("@table RBX_THINGS"))

    def test_what_no_header_has_is_refused(self):
        for line in ("@calls rbx_gone", "@fields struct rbx_gone", "@table RBX_GONE", "@gone"):
            with self.assertRaises(form.Fault):
                self.made(line)

    def test_same_code_of_two_functions_stands_once(self):
        api = page.Api([read(GOOD + CLOSE.replace("-EBUSY: it is in use", "-EINVAL: it is in use"))])
        self.assertEqual(api.errors("rbx_thing_close"),
                         [("-EINVAL", "it is in use; or an argument is NULL"),
                          ("-ENOMEM", "memory ran out")])

    def test_errors_that_go_round_in_a_circle_are_refused(self):
        api = page.Api([read(GOOD.replace("-ENOMEM: memory ran out",
                                          "-E...: as rbx_thing_close()") + CLOSE)])
        with self.assertRaises(form.Fault):
            api.errors("rbx_thing_close")


class Json(unittest.TestCase):
    """make_pages --json"""

    def test_all_of_a_call_is_there_for_other_programs(self):
        out = subprocess.run([os.path.join(TOP, "man", "make_pages"), "--json"],
                             check=True, stdout=subprocess.PIPE).stdout
        api = json.loads(out)
        calls = {call["name"]: call for call in api["functions"]}
        self.assertEqual(calls["rbx_size_parse"]["header"], "rdmabox/rdmabox.h")
        self.assertEqual(calls["rbx_size_parse"]["prototype"],
                         "int rbx_size_parse(const char *text, uint64_t *bytes)")
        self.assertEqual([error["code"] for error in calls["rbx_size_parse"]["errors"]], ["-EINVAL"])
        self.assertEqual(calls["rbx_size_parse"]["returns"], "0")
        for key in ("brief", "text", "context"):
            self.assertTrue(calls["rbx_size_parse"][key])
        self.assertIn("-EACCES", [error["code"] for error in calls["rbx_volume_open"]["errors"]])
        self.assertRegex(api["strings"]["RBX_VERSION"], r"^\d+\.\d+\.\d+$")
        self.assertIn({"name": "requests", "text": "requests completed"}, api["tables"]["RBX_STATS"])
        self.assertEqual([field["default"] for field in api["structs"]["struct rbx_volume_options"]
                          if field["name"] == "replicas"], ["1"])


if __name__ == "__main__":
    unittest.main()
