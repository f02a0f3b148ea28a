/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.c - defaults, changes by text, and checks of a context's options.
 *
 * One table has an entry for each option: its name, where it lives and what it
 * may be. Setting, checking and describing all read it, so an option is added
 * in one line.
 */
#include "lib/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "lib/context.h"
#include "lib/error.h"

enum kind {
	KIND_TEXT, /* char[high], any */
	KIND_CHOICE, /* char[high], one of `choices` */
	KIND_POLLING, /* char[high], as rbx_poller_parse() reads it */
	KIND_U32, /* low to high */
	KIND_U64,
	KIND_INT,
	KIND_POWER, /* uint32_t, a power of two from low to high */
};

struct option {
	const char *name;
	enum kind kind;
	size_t offset;
	int64_t low;
	int64_t high;
	const char *choices; /* "a|b|c" */
};

#define FIELD(name) offsetof(struct rbx_options, name)
#define TEXT_BYTES(name) sizeof(((struct rbx_options *)0)->name)

static const struct option table[] = {
	{ "fabric", KIND_CHOICE, FIELD(fabric), 0, TEXT_BYTES(fabric),
	  "auto|verbs|soft|soft:tcp" },
	{ "device", KIND_TEXT, FIELD(device), 0, TEXT_BYTES(device), NULL },
	{ "gid_index", KIND_INT, FIELD(gid_index), -1, 255, NULL },
	{ "mode", KIND_CHOICE, FIELD(mode), 0, TEXT_BYTES(mode),
	  "single|doorbell|merge|hybrid" },
	{ "buffers", KIND_CHOICE, FIELD(buffers), 0, TEXT_BYTES(buffers),
	  "auto|staging|direct" },
	{ "polling", KIND_POLLING, FIELD(polling), 0, TEXT_BYTES(polling),
	  NULL },
	{ "window", KIND_U64, FIELD(window_bytes), 0, (int64_t)1 << 39, NULL },
	{ "window_work_requests", KIND_U32, FIELD(window_work_requests), 0,
	  1 << 20, NULL },
	{ "fragment", KIND_POWER, FIELD(fragment_bytes),
	  RBX_FRAGMENT_BYTES_MIN, RBX_FRAGMENT_BYTES_MAX, NULL },
	{ "queue_pairs", KIND_U32, FIELD(queue_pairs), 1, RBX_QUEUE_PAIRS_MAX,
	  NULL },
	{ "pollers", KIND_U32, FIELD(pollers), 0, RBX_POLLERS_MAX, NULL },
	{ "requests_max", KIND_U32, FIELD(requests_max), 64, 65536, NULL },
	{ "peer_timeout_ms", KIND_U32, FIELD(peer_timeout_ms), 100, 3600000,
	  NULL },
	{ "secret_file", KIND_TEXT, FIELD(secret_file), 0,
	  TEXT_BYTES(secret_file), NULL },
	{ "insecure", KIND_U32, FIELD(insecure), 0, 1, NULL },
};

#define OPTION_COUNT (sizeof(table) / sizeof(table[0]))

void rbx_options_defaults(struct rbx_options *options)
{
	memset(options, 0, sizeof(*options));
	options->size_bytes = sizeof(*options);
	strcpy(options->fabric, "auto");
	strcpy(options->mode, "hybrid");
	strcpy(options->buffers, "auto");
	strcpy(options->polling, "adaptive");
	options->gid_index = -1;
	options->fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT;
	options->queue_pairs = 1;
	options->pollers = 1;
	options->requests_max = 4096;
	options->peer_timeout_ms = 5000;
}

/* Whether `word` is one of the words of "a|b|c". */
static bool is_choice(const char *choices, const char *word)
{
	size_t length = strlen(word);

	while (choices != NULL && *choices != '\0') {
		size_t here = strcspn(choices, "|");

		if (here == length && strncmp(choices, word, length) == 0)
			return true;
		choices += here + (choices[here] == '|');
	}
	return false;
}

static int64_t number_of(const struct option *option,
			 const struct rbx_options *options)
{
	const char *field = (const char *)options + option->offset;

	switch (option->kind) {
	case KIND_U64:
		return (int64_t)*(const uint64_t *)field;
	case KIND_INT:
		return *(const int *)field;
	default:
		return *(const uint32_t *)field;
	}
}

static void set_number(const struct option *option,
		       struct rbx_options *options, int64_t value)
{
	char *field = (char *)options + option->offset;

	switch (option->kind) {
	case KIND_U64:
		*(uint64_t *)field = (uint64_t)value;
		break;
	case KIND_INT:
		*(int *)field = (int)value;
		break;
	default:
		*(uint32_t *)field = (uint32_t)value;
		break;
	}
}

static bool is_text(const struct option *option)
{
	return option->kind == KIND_TEXT || option->kind == KIND_CHOICE ||
	       option->kind == KIND_POLLING;
}

static int check_text(const struct option *option, const char *text)
{
	uint32_t retry_max, batch_max;

	if (memchr(text, '\0', (size_t)option->high) == NULL)
		return rbx_error(-EINVAL, "%s: longer than %d characters",
				 option->name, (int)option->high - 1);
	if (option->kind == KIND_CHOICE && !is_choice(option->choices, text))
		return rbx_error(-EINVAL, "%s=%s: must be one of %s",
				 option->name, text, option->choices);
	if (option->kind == KIND_POLLING)
		return rbx_poller_parse(text, &retry_max, &batch_max);
	return 0;
}

static int check_one(const struct option *option,
		     const struct rbx_options *options)
{
	int64_t value;

	if (is_text(option))
		return check_text(option,
				  (const char *)options + option->offset);
	value = number_of(option, options);
	if (value < option->low || value > option->high)
		return rbx_error(-EINVAL, "%s=%lld: must be %lld to %lld",
				 option->name, (long long)value,
				 (long long)option->low,
				 (long long)option->high);
	if (option->kind == KIND_POWER && (value & (value - 1)) != 0)
		return rbx_error(-EINVAL, "%s=%lld: must be a power of two",
				 option->name, (long long)value);
	return 0;
}

int rbx_options_check(const struct rbx_options *options)
{
	if (options->size_bytes != sizeof(*options))
		return rbx_error(-EINVAL,
				 "options of %zu bytes, not %zu: fill them in "
				 "with rbx_options_defaults() of this version",
				 options->size_bytes, sizeof(*options));
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		int err = check_one(&table[i], options);

		if (err)
			return err;
	}
	return 0;
}

/* "64K" and the like; false: not a number of that form. */
static bool parse_number(const char *text, int64_t *value)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	if (end == text || errno != 0)
		return false;
	if (*end == '\0')
		return true;
	suffix = strchr(suffixes, *end);
	if (suffix == NULL || end[1] != '\0')
		return false;
	return !__builtin_mul_overflow(
		*value, (int64_t)1 << (10 * (suffix - suffixes + 1)), value);
}

static int set_one(const struct option *option, struct rbx_options *options,
		   const char *text)
{
	struct rbx_options changed = *options;
	char *field = (char *)&changed + option->offset;
	int64_t value;
	int err;

	if (is_text(option)) {
		if (strlen(text) >= (size_t)option->high)
			return rbx_error(-EINVAL,
					 "%s: longer than %d characters",
					 option->name, (int)option->high - 1);
		strcpy(field, text);
	} else if (parse_number(text, &value)) {
		if (value < option->low || value > option->high)
			return rbx_error(-EINVAL, "%s=%s: must be %lld to %lld",
					 option->name, text,
					 (long long)option->low,
					 (long long)option->high);
		set_number(option, &changed, value);
	} else {
		return rbx_error(-EINVAL,
				 "%s=%s: not a number (suffixes K, M, G, T)",
				 option->name, text);
	}
	err = check_one(option, &changed);
	if (!err)
		*options = changed;
	return err;
}

static int unknown_option(const char *key_value, size_t length)
{
	char names[RBX_ERROR_TEXT_MAX] = "";
	size_t at = 0;

	for (size_t i = 0; i < OPTION_COUNT && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, " %s",
				       table[i].name);
	return rbx_error(-EINVAL, "no option \"%.*s\"; there are:%s",
			 (int)RBX_MIN(length, 40), key_value, names);
}

int rbx_options_set(struct rbx_options *options, const char *key_value)
{
	const char *equals;
	size_t length;

	if (options == NULL || key_value == NULL)
		return rbx_error(-EINVAL, "options and key=value are wanted");
	equals = strchr(key_value, '=');
	if (equals == NULL)
		return rbx_error(-EINVAL, "\"%.40s\": must be key=value",
				 key_value);
	length = (size_t)(equals - key_value);
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (strlen(table[i].name) == length &&
		    strncmp(table[i].name, key_value, length) == 0)
			return set_one(&table[i], options, equals + 1);
	}
	return unknown_option(key_value, length);
}

int rbx_describe(struct rbx_context *ctx, char *text, size_t size_bytes)
{
	size_t at = 0;

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option *option = &table[i];
		size_t left = at < size_bytes ? size_bytes - at : 0;
		char *to = left ? text + at : NULL;

		if (is_text(option))
			at += (size_t)snprintf(to, left, "%s=%s\n",
					       option->name,
					       (char *)&ctx->options +
						       option->offset);
		else
			at += (size_t)snprintf(
				to, left, "%s=%lld\n", option->name,
				(long long)number_of(option, &ctx->options));
	}
	at += (size_t)snprintf(at < size_bytes ? text + at : NULL,
			       at < size_bytes ? size_bytes - at : 0,
			       "using=%s; %s\n", ctx->fabric.why,
			       ctx->device->caps.description);
	return (int)at;
}
