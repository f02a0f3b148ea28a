/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a trace: what a real program read and wrote, as a list of blocks.
 *
 * The format is that of the ARC traces. A line `START COUNT 0 NUMBER` names COUNT pages
 * of 4 KiB from page START; the last two fields are not used. A line becomes one entry
 * for each block that it touches, so neighbours in the trace are neighbouring requests. A
 * block beyond the end of the volume wraps around. Lines that begin with # and empty
 * lines are skipped.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"

#define TRACE_PAGE_BYTES 4096
#define LINE_BLOCKS_MAX (1u << 20) /* 4 GiB of 4 KiB blocks in one request */
#define ENTRIES_MAX (1ull << 28) /* 1 GiB of memory */
#define LINES_MAX ENTRIES_MAX /* with comments: a pipe that never ends has to be refused too */

struct trace {
	uint32_t *blocks;
	uint64_t count;
	uint64_t room;
};

static int append(struct trace *trace, uint32_t block)
{
	if (trace->count == trace->room) {
		uint64_t room = trace->room ? trace->room * 2 : 1 << 16;
		uint32_t *blocks;

		if (room > ENTRIES_MAX)
			return -EFBIG;
		blocks = realloc(trace->blocks, room * sizeof(*blocks));
		if (!blocks)
			return -ENOMEM;
		trace->blocks = blocks;
		trace->room = room;
	}
	trace->blocks[trace->count++] = block;
	return 0;
}

static int append_line(struct trace *trace, const char *line,
		       uint64_t volume_blocks, uint32_t block_bytes)
{
	uint64_t start, count, first, last;
	int used = 0;

	if (line[strspn(line, " \t\r\n")] == 0 || *line == '#')
		return 0;
	if (strchr(line, '-') ||
	    sscanf(line, "%" SCNu64 " %" SCNu64 " %*u %*u%n", &start, &count,
		   &used) != 2 || !used || line[used + strspn(line + used,
							      " \t\r\n")])
		return -EINVAL;
	if (!count || count > UINT64_MAX / TRACE_PAGE_BYTES ||
	    start > UINT64_MAX / TRACE_PAGE_BYTES - count)
		return -EINVAL;
	first = start * TRACE_PAGE_BYTES / block_bytes;
	last = ((start + count) * TRACE_PAGE_BYTES - 1) / block_bytes;
	if (last - first >= LINE_BLOCKS_MAX)
		return -EINVAL;
	for (uint64_t block = first; block <= last; block++) {
		int err = append(trace, block % volume_blocks);

		if (err)
			return err;
	}
	return 0;
}

/* zstd and gzip files begin with these bytes. They get their own error text. */
static bool is_compressed(const char *line)
{
	return !strncmp(line, "\x28\xb5\x2f\xfd", 4) ||
	       !strncmp(line, "\x1f\x8b", 2);
}

/* False if it is too long or has a zero byte, as the data of a device that never ends. */
static bool is_whole(const char *line, FILE *file)
{
	return strchr(line, '\n') || feof(file);
}

static int read_lines(struct trace *trace, FILE *file, const char *path,
		      uint64_t volume_blocks, uint32_t block_bytes,
		      char *reason, size_t reason_bytes)
{
	uint64_t line_number = 0;
	char line[256];
	int err;

	while (fgets(line, sizeof(line), file)) {
		if (!line_number++ && is_compressed(line)) {
			snprintf(reason, reason_bytes,
				 "trace %s is compressed; unpack it first "
				 "(unzstd, gunzip)", path);
			return -EINVAL;
		}
		if (line_number > LINES_MAX)
			err = -EFBIG;
		else if (!is_whole(line, file))
			err = -EINVAL;
		else
			err = append_line(trace, line, volume_blocks,
					  block_bytes);
		if (!err)
			continue;
		snprintf(reason, reason_bytes, err == -EINVAL ?
			 "trace %s, line %" PRIu64 " is not `START COUNT 0 "
			 "NUMBER` of 4 KiB pages; mend or remove it" :
			 "trace %s, line %" PRIu64 ": the trace is too large; "
			 "cut it", path, line_number);
		return err;
	}
	if (trace->count && !ferror(file))
		return 0;
	snprintf(reason, reason_bytes, "trace %s %s; give another file", path,
		 ferror(file) ? "cannot be read" : "has no request");
	return -EINVAL;
}

int bench_trace_read(const char *path, uint64_t volume_blocks,
		     uint32_t block_bytes, uint32_t **blocks, uint64_t *count,
		     char *reason, size_t reason_bytes)
{
	struct trace trace = { 0 };
	FILE *file = fopen(path, "r");
	int err;

	if (!file) {
		err = -errno;
		snprintf(reason, reason_bytes,
			 "cannot open trace %s: %s; give a file that can be "
			 "read", path, strerror(-err));
		return err;
	}
	err = read_lines(&trace, file, path, volume_blocks, block_bytes, reason,
			 reason_bytes);
	fclose(file);
	if (err) {
		free(trace.blocks);
		return err;
	}
	*blocks = trace.blocks;
	*count = trace.count;
	return 0;
}
