/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a trace: which memory was used, request by request. Its first line says in which of three
 * formats it is:
 *
 *	START COUNT 0 NUMBER   the ARC traces: pages of 4 KiB from page START; the last two
 *	                       fields are not used
 *	ADDRESS LENGTH         bytes, decimal or 0x...
 *	a log of a web server  common or combined format: each URL is a buffer (urls.c), and a
 *	                       response uses as many of its bytes. One without bytes is no request.
 *
 * Lines that begin with # and empty lines are skipped. A line that is something else ends the run,
 * with its number: a guess would be a wrong result.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/registration/registration.h"

#define REQUESTS_MAX (1ull << 26) /* 1 GiB of memory */
#define LINES_MAX (1ull << 28) /* a pipe that never ends has to be refused too */
#define LENGTH_MAX (1ull << 40)
#define ADDR_MAX (1ull << 62)

struct format {
	const char *expected;
	/* Returns 1, 0 if the line is no request, or -EINVAL, -ENOMEM. */
	int (*parse)(const char *line, struct registration_urls *urls,
		     struct registration_request *request);
	bool has_urls; /* an address is the number of a URL at first */
};

/* ---- Lines ----------------------------------------------------------------------*/

/* A number, and the spaces behind it. */
static bool take_number(const char **text, int base, uint64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*number = strtoull(*text, &end, base);
	if (errno || !strchr(" \t\r\n", *end))
		return false;
	*text = end + strspn(end, " \t\r\n");
	return true;
}

/* The same, decimal or 0x. A 0 in front does not make it octal. */
static bool take_bytes(const char **text, uint64_t *number)
{
	bool is_hex = (*text)[0] == '0' && ((*text)[1] == 'x' || (*text)[1] == 'X');

	return take_number(text, is_hex ? 16 : 10, number);
}

static bool is_possible(const struct registration_request *request)
{
	return request->length && request->length <= LENGTH_MAX && request->addr <= ADDR_MAX;
}

static int parse_pages(const char *line, struct registration_urls *urls,
		       struct registration_request *request)
{
	uint64_t start, count, unused;

	(void)urls;
	if (!take_number(&line, 10, &start) || !take_number(&line, 10, &count) ||
	    !take_number(&line, 10, &unused) || !take_number(&line, 10, &unused) || *line)
		return -EINVAL;
	if (start > ADDR_MAX / REGISTRATION_PAGE_BYTES ||
	    count > LENGTH_MAX / REGISTRATION_PAGE_BYTES)
		return -EINVAL;
	request->addr = start * REGISTRATION_PAGE_BYTES;
	request->length = count * REGISTRATION_PAGE_BYTES;
	return is_possible(request) ? 1 : -EINVAL;
}

static int parse_bytes(const char *line, struct registration_urls *urls,
		       struct registration_request *request)
{
	(void)urls;
	if (!take_bytes(&line, &request->addr) || !take_bytes(&line, &request->length) || *line)
		return -EINVAL;
	return is_possible(request) ? 1 : -EINVAL;
}

/* The end of a text in quotation marks, in which \" stands for one. */
static const char *quote_end(const char *text)
{
	for (; *text && *text != '"'; text++)
		if (*text == '\\' && text[1])
			text++;
	return *text ? text : NULL;
}

/* ... "GET /url HTTP/1.1" 200 1234 ... */
static int parse_log(const char *line, struct registration_urls *urls,
		     struct registration_request *request)
{
	const char *asked = strchr(line, '"'), *end, *url, *rest;
	uint64_t status, bytes = 0;
	uint32_t number;

	end = asked ? quote_end(asked + 1) : NULL;
	if (!end || end[1] != ' ')
		return -EINVAL;
	rest = end + 2;
	if (!take_number(&rest, 10, &status) || status < 100 || status > 999)
		return -EINVAL;
	if (!strncmp(rest, "-", 1) && strchr(" \t\r\n", rest[1]))
		return 0;
	if (!take_number(&rest, 10, &bytes) || bytes > LENGTH_MAX)
		return -EINVAL;
	url = asked + 1 + strcspn(asked + 1, " \"");
	url += *url == ' ';
	number = registration_urls_note(urls, url, strcspn(url, " \""), bytes);
	if (number == UINT32_MAX)
		return -ENOMEM;
	*request = (struct registration_request){ number, bytes };
	return bytes != 0;
}

static const struct format formats[] = {
	{ "`START COUNT 0 NUMBER`, in pages of 4 KiB", parse_pages, false },
	{ "`ADDRESS LENGTH`, in bytes", parse_bytes, false },
	{ "a line of a web server's log, `... \"GET /URL HTTP/1.1\" STATUS BYTES`", parse_log,
	  true },
};
#define FORMATS (sizeof(formats) / sizeof(*formats))

/* ---- All of them ----------------------------------------------------------------*/

struct reading {
	struct registration_trace *trace;
	struct registration_urls *urls;
	const struct format *format; /* NULL: no line was seen */
	uint64_t room;
	uint64_t line_number;
};

static bool is_empty(const char *line)
{
	return *line == '#' || !line[strspn(line, " \t\r\n")];
}

static int append(struct reading *reading, const struct registration_request *request)
{
	struct registration_trace *trace = reading->trace;

	if (trace->count == reading->room) {
		uint64_t room = reading->room ? reading->room * 2 : 1 << 16;
		struct registration_request *larger;

		if (room > REQUESTS_MAX)
			return -EFBIG;
		larger = realloc(trace->requests, room * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		trace->requests = larger;
		reading->room = room;
	}
	trace->requests[trace->count++] = *request;
	return 0;
}

static int read_line(struct reading *reading, const char *line)
{
	struct registration_request request;
	int rc = -EINVAL;

	if (++reading->line_number > LINES_MAX)
		return -EFBIG;
	if (is_empty(line))
		return 0;
	if (reading->format)
		rc = reading->format->parse(line, reading->urls, &request);
	else
		for (size_t i = 0; i < FORMATS && rc == -EINVAL; i++) {
			rc = formats[i].parse(line, reading->urls, &request);
			reading->format = rc == -EINVAL ? NULL : &formats[i];
		}
	return rc > 0 ? append(reading, &request) : rc;
}

static void explain(const struct reading *reading, int err, const char *path, char *reason,
		    size_t reason_bytes)
{
	if (err == -ENOMEM)
		snprintf(reason, reason_bytes, "trace %s: not enough memory at line %" PRIu64, path,
			 reading->line_number);
	else if (err == -EFBIG)
		snprintf(reason, reason_bytes,
			 "trace %s, line %" PRIu64 ": the trace is too large; cut it", path,
			 reading->line_number);
	else if (reading->format)
		snprintf(reason, reason_bytes,
			 "trace %s, line %" PRIu64 " is not %s as those before it; "
			 "mend or remove it",
			 path, reading->line_number, reading->format->expected);
	else
		snprintf(reason, reason_bytes,
			 "trace %s, line %" PRIu64 " is neither %s, nor %s, nor %s; "
			 "give another file",
			 path, reading->line_number, formats[0].expected, formats[1].expected,
			 formats[2].expected);
}

static int read_stream(struct reading *reading, FILE *stream, const char *path, char *reason,
		       size_t reason_bytes)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t bytes;
	int err = 0;

	while (!err && (bytes = getline(&line, &room, stream)) >= 0) {
		/* A zero byte would hide what is behind it. */
		err = strlen(line) == (size_t)bytes ? read_line(reading, line) : -EINVAL;
		if (err == -EINVAL && strlen(line) != (size_t)bytes)
			reading->line_number++;
	}
	if (!err && !feof(stream)) {
		err = -errno;
		snprintf(reason, reason_bytes, "trace %s cannot be read behind line %" PRIu64 ": %s",
			 path, reading->line_number, strerror(errno));
	} else if (err) {
		explain(reading, err, path, reason, reason_bytes);
	}
	free(line);
	return err;
}

/* URLs have addresses now. */
static int place(struct reading *reading)
{
	struct registration_trace *trace = reading->trace;

	if (registration_urls_place(reading->urls) > ADDR_MAX)
		return -EFBIG;
	for (uint64_t i = 0; i < trace->count; i++)
		trace->requests[i].addr =
			registration_urls_addr(reading->urls, (uint32_t)trace->requests[i].addr);
	return 0;
}

static int by_addr(const void *left, const void *right)
{
	const struct registration_request *a = left, *b = right;

	return (a->addr > b->addr) - (a->addr < b->addr);
}

/* Each page that any request touches, once. */
static int count_touched(struct registration_trace *trace)
{
	struct registration_request *sorted = malloc(trace->count * sizeof(*sorted));
	uint64_t end = 0;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, trace->requests, trace->count * sizeof(*sorted));
	qsort(sorted, trace->count, sizeof(*sorted), by_addr);
	for (uint64_t i = 0; i < trace->count; i++) {
		uint64_t first = sorted[i].addr / REGISTRATION_PAGE_BYTES;
		uint64_t behind =
			(sorted[i].addr + sorted[i].length - 1) / REGISTRATION_PAGE_BYTES + 1;

		if (behind <= end)
			continue;
		trace->touched_bytes +=
			(behind - (first > end ? first : end)) * REGISTRATION_PAGE_BYTES;
		end = behind;
	}
	free(sorted);
	return 0;
}

static int finish(struct reading *reading, const char *path, char *reason, size_t reason_bytes)
{
	int err = 0;

	if (!reading->trace->count) {
		snprintf(reason, reason_bytes, "trace %s has no request; give another file", path);
		return -EINVAL;
	}
	if (reading->format->has_urls)
		err = place(reading);
	if (!err)
		err = count_touched(reading->trace);
	if (err)
		explain(reading, err, path, reason, reason_bytes);
	return err;
}

int registration_trace_read(struct registration_trace *trace, const char *path, char *reason,
			    size_t reason_bytes)
{
	struct reading reading = { .trace = trace, .urls = registration_urls_new() };
	struct registration_input input;
	int err, closed;

	*trace = (struct registration_trace){ 0 };
	err = reading.urls ? 0 : -ENOMEM;
	if (err)
		explain(&reading, err, path, reason, reason_bytes);
	else
		err = registration_input_open(&input, path, reason, reason_bytes);
	if (err)
		goto out_urls;
	err = read_stream(&reading, input.stream, path, reason, reason_bytes);
	closed = registration_input_close(&input, path, !err, reason, reason_bytes);
	if (!err)
		err = closed;
	if (!err)
		err = finish(&reading, path, reason, reason_bytes);
	if (err)
		registration_trace_free(trace);
out_urls:
	registration_urls_free(reading.urls);
	return err;
}

void registration_trace_free(struct registration_trace *trace)
{
	free(trace->requests);
	trace->requests = NULL;
}
