/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tls_hog.c - a library that takes of the block of static thread-local storage,
 * as OpenMP's, OpenGL's and others do; for loading_test.c. */

static _Thread_local volatile char hog[64]
	__attribute__((tls_model("initial-exec")));

char tls_hog(void);

char tls_hog(void)
{
	return hog[0]++;
}
