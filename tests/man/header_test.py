# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""header_test.py - declarations, structs and tables are found as they stand."""

import unittest

from tree import GOOD, header, read

STRUCT = """struct rbx_thing_options {
	size_t size_bytes; /* of this struct */
	/* The mode:
	 *	fast	quick
	 *	slow	not so quick
	 * Default: "fast" (it is quick). */
	char mode[16];
	uint32_t a, b; /* two of them. Default: 7. */
	/* Called at the end. Default: NULL. */
	void (*done)(struct rbx_thing *thing, int status,
		     void *user);
	int bare;
};

enum rbx_thing_flags {
	RBX_ONE = 1, /* the first */
	/* The second. */
	RBX_TWO = 2,
};

#define RBX_NUMBERS(X) \\
	X(requests, "requests completed") \\
	X(bytes, "their bytes")
"""


class Header(unittest.TestCase):
    """read()"""

    def test_declaration_has_its_comment_and_prototype(self):
        function, = read(GOOD).functions
        self.assertEqual(function.prototype, "int rbx_thing_open(struct rbx_context *ctx, "
                                             "struct rbx_thing **thing)")
        self.assertEqual([name for _, name in function.params], ["ctx", "thing"])
        self.assertEqual(function.comment.brief, "opens a thing.")
        self.assertEqual((function.line, function.comment.line), (11, 1))
        self.assertEqual(function.header, "rdmabox/thing.h")

    def test_declarations_of_all_shapes_are_found(self):
        found = read("const char *rbx_name(void);\n"
                     "struct ibv_qp *rbx_qp(const struct rbx_x *x);\n"
                     "const void *\nrbx_data(struct rbx_x *x,\n\t size_t *length);\n"
                     "uint64_t rbx_size(const struct rbx_x x[], unsigned int count);\n"
                     "void rbx_do(void (*done)(int status, void *user), void *user);\n"
                     "static inline void rbx_inline(struct rbx_x *x)\n{\n\trbx_do(x);\n}\n"
                     ).functions
        self.assertEqual([each.prototype for each in found], [
            "const char *rbx_name(void)",
            "struct ibv_qp *rbx_qp(const struct rbx_x *x)",
            "const void *rbx_data(struct rbx_x *x, size_t *length)",
            "uint64_t rbx_size(const struct rbx_x x[], unsigned int count)",
            "void rbx_do(void (*done)(int status, void *user), void *user)",
            "void rbx_inline(struct rbx_x *x)",
        ])
        self.assertEqual([name for _, name in found[3].params], ["x", "count"])
        self.assertEqual([name for _, name in found[4].params], ["done", "user"])
        self.assertTrue(found[5].is_inline)
        self.assertFalse(found[4].is_inline)

    def test_what_stands_in_comments_and_macros_is_no_declaration(self):
        found = read("/* int rbx_gone(void); */\n#define RBX_X(a) \\\n\trbx_gone(a)\n"
                     "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                     "struct rbx_s {\n\tint (*rbx_field)(void); /* it */\n};\n").functions
        self.assertEqual(found, [])

    def test_one_comment_serves_all_that_it_names(self):
        two = read("/**\n * rbx_a(), rbx_b() - do it.\n */\nvoid rbx_a(void);\nvoid rbx_b(void);\n"
                   "void rbx_c(void);\n")
        self.assertEqual(two.faults, [])
        self.assertIs(two.functions[0].comment, two.functions[1].comment)
        self.assertIsNone(two.functions[2].comment)

    def test_comment_of_another_function_is_a_fault(self):
        fault, = read(GOOD.replace("* rbx_thing_open()", "* rbx_thing_close()")).faults
        self.assertIn("does not stand above it", fault.what)
        fault, = read(GOOD.replace(" */\nint", " */\nstruct rbx_x;\nint")).faults
        self.assertIn("does not stand above it", fault.what)

    def test_field_has_words_list_and_default(self):
        fields = read(STRUCT).structs["struct rbx_thing_options"]
        self.assertEqual([each.name for each in fields],
                         ["size_bytes", "mode", "a", "b", "done", "bare"])
        self.assertEqual(fields[1].blocks, [("text", "The mode:"),
                                            ("list", [("fast", "quick"), ("slow", "not so quick")])])
        self.assertEqual(fields[1].default, '"fast" (it is quick)')
        self.assertEqual((fields[3].default, fields[3].blocks), ("7", [("text", "two of them.")]))
        self.assertEqual(fields[4].declaration,
                         "void (*done)(struct rbx_thing *thing, int status, void *user)")
        self.assertEqual((fields[5].blocks, fields[5].default), ([], ""))
        self.assertEqual(fields[1].line, 7)

    def test_values_of_an_enum_and_rows_of_a_table_are_found(self):
        found = read(STRUCT)
        values = found.structs["enum rbx_thing_flags"]
        self.assertEqual([(each.name, each.blocks) for each in values],
                         [("RBX_ONE", [("text", "the first")]),
                          ("RBX_TWO", [("text", "The second.")])])
        self.assertEqual(found.tables["RBX_NUMBERS"],
                         [("requests", "requests completed"), ("bytes", "their bytes")])

    def test_parameters_are_split_at_their_own_commas(self):
        self.assertEqual(header.split_params("void"), [])
        self.assertEqual(header.split_params("int a, int (*f)(int b, int c), char d[2]"),
                         [("int a", "a"), ("int (*f)(int b, int c)", "f"), ("char d[2]", "d")])


if __name__ == "__main__":
    unittest.main()
