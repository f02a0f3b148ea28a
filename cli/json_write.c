/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the JSON of a command goes: to stdout or, whole or not at all, to a
 * file. Seven digits of a real number are more than any measurement has.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static int write_stream(json_t *json, FILE *stream)
{
	errno = EIO;
	if (json_dumpf(json, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(7)) ||
	    fputc('\n', stream) == EOF || fflush(stream))
		return -errno;
	return 0;
}

static int write_file(json_t *json, const char *path)
{
	FILE *stream = fopen(path, "w");
	int rc;

	if (!stream)
		return -errno;
	rc = write_stream(json, stream);
	if (fclose(stream) && !rc)
		rc = -errno;
	if (rc)
		remove(path);
	return rc;
}

int cli_json_write(const struct cli_command *command, json_t *json,
		   const char *path)
{
	bool to_stdout = !strcmp(path, "-");
	int rc;

	if (!json)
		rc = -ENOMEM;
	else
		rc = to_stdout ? write_stream(json, stdout) :
				 write_file(json, path);
	json_decref(json);
	if (rc)
		cli_fail(command, "cannot write JSON to %s: %s",
			 to_stdout ? "stdout" : path, strerror(-rc));
	return rc;
}
