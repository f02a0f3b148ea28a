/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The setters of options. Each parses a text into a field of its type. The file also
 * knows how a default and a range are printed, and the kind of each value, for shell
 * completions.
 *
 * Numbers are parsed strictly: the whole text must be a number in the range. A typing
 * error never becomes another number.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdmabox/rdmabox.h>

#include "cli/cli.h"

static int parse_digits(const char *text, uint64_t *number, const char **rest)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, 10);
	*rest = end;
	return errno ? -EINVAL : 0;
}

const char *cli_size_print(uint64_t bytes, char *text, size_t text_bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB",
					     "TiB" };
	unsigned int unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, text_bytes, "%" PRIu64 " %s", bytes, units[unit]);
	return text;
}

static bool is_in_range(const struct cli_option *option, uint64_t number)
{
	return number >= option->min &&
	       (!option->max || number <= option->max);
}

int cli_set_flag(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	(void)text, (void)reason, (void)reason_bytes;
	*(uint32_t *)option->field = 1;
	return 0;
}

int cli_set_number(const struct cli_option *option, const char *text,
		   char *reason, size_t reason_bytes)
{
	const char *rest;
	uint64_t number;

	if (!parse_digits(text, &number, &rest) && !*rest &&
	    number <= UINT32_MAX && is_in_range(option, number)) {
		*(uint32_t *)option->field = number;
		return 0;
	}
	snprintf(reason, reason_bytes,
		 "give a whole number from %" PRIu64 " to %" PRIu64,
		 option->min, option->max ? option->max : UINT32_MAX);
	return -EINVAL;
}

int cli_set_number_64(const struct cli_option *option, const char *text,
		      char *reason, size_t reason_bytes)
{
	const char *rest;

	if (!parse_digits(text, option->field, &rest) && !*rest)
		return 0;
	snprintf(reason, reason_bytes, "give a whole number below 2^64");
	return -EINVAL;
}

int cli_set_size(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	char min[32], max[32];
	uint64_t bytes;

	if (!rbx_size_parse(text, &bytes) && is_in_range(option, bytes)) {
		*(uint64_t *)option->field = bytes;
		return 0;
	}
	snprintf(reason, reason_bytes,
		 "give %s to %s as a whole number, with or without K, M, G "
		 "or T",
		 cli_size_print(option->min, min, sizeof(min)),
		 cli_size_print(option->max ? option->max : 1ull << 63, max,
				sizeof(max)));
	return -EINVAL;
}

int cli_set_size_32(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes)
{
	struct cli_option wide = *option;
	uint64_t bytes;

	wide.field = &bytes;
	if (!wide.max || wide.max > UINT32_MAX)
		wide.max = UINT32_MAX;
	if (cli_set_size(&wide, text, reason, reason_bytes))
		return -EINVAL;
	*(uint32_t *)option->field = bytes;
	return 0;
}

int cli_set_seconds(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && !*end && isfinite(seconds) &&
	    seconds >= option->min && seconds <= option->max) {
		*(double *)option->field = seconds;
		return 0;
	}
	snprintf(reason, reason_bytes,
		 "give seconds from %" PRIu64 " to %" PRIu64 ", such as 2.5",
		 option->min, option->max);
	return -EINVAL;
}

int cli_set_text(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	size_t len = strlen(text);

	if (!len || len >= option->max) {
		snprintf(reason, reason_bytes,
			 "give a text of 1 to %" PRIu64 " bytes",
			 option->max - 1);
		return -EINVAL;
	}
	memcpy(option->field, text, len + 1);
	return 0;
}

int cli_set_word(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes)
{
	const char *word = option->words;
	size_t len = strlen(text);

	while (len) {
		size_t word_len = strcspn(word, "|");

		if (word_len == len && !memcmp(word, text, len))
			return cli_set_text(option, text, reason,
					    reason_bytes);
		if (!word[word_len])
			break;
		word += word_len + 1;
	}
	snprintf(reason, reason_bytes, "give one of %s", option->words);
	return -EINVAL;
}

int cli_set_integrity(const struct cli_option *option, const char *text,
		      char *reason, size_t reason_bytes)
{
	uint32_t *value = option->field;

	if (!strcmp(text, "off"))
		*value = RBX_INTEGRITY_OFF;
	else if (!strcmp(text, "mac"))
		*value = RBX_INTEGRITY_MAC;
	else if (!strcmp(text, "tls"))
		*value = RBX_INTEGRITY_TLS;
	else
		return snprintf(reason, reason_bytes, "give one of %s", option->words), -EINVAL;
	return 0;
}

/* ---- Texts about values -------------------------------------------------------*/

const char *cli_size_short(uint64_t bytes, char *text, size_t text_bytes)
{
	static const char units[] = "\0KMGT";
	unsigned int unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, text_bytes, "%" PRIu64 "%.1s", bytes, &units[unit]);
	return text;
}

static cli_set_fn *setter_of(const struct cli_option *option)
{
	return option->like ? option->like : option->set;
}

static bool is_text(cli_set_fn *set)
{
	return set == cli_set_text || set == cli_set_word;
}

const char *cli_option_kind(const struct cli_option *option)
{
	static const char *const arguments[] = {
		[CLI_ARGUMENT_FILE] = "file",
		[CLI_ARGUMENT_DIRECTORY] = "directory",
		[CLI_ARGUMENT_ADDRESS] = "address",
		[CLI_ARGUMENT_COMMAND] = "command",
	};
	cli_set_fn *set = setter_of(option);

	if (option->argument != CLI_ARGUMENT_BY_SETTER)
		return arguments[option->argument];
	if (!option->value)
		return "flag";
	if (option->words)
		return "choice";
	if (set == cli_set_number || set == cli_set_number_64)
		return "number";
	if (set == cli_set_size || set == cli_set_size_32)
		return "size";
	return set == cli_set_seconds ? "seconds" : "text";
}

/* 0 and "" are no defaults: they mean that nothing was set. */
static void print_field(const struct cli_option *option, char *text, size_t text_bytes)
{
	cli_set_fn *set = setter_of(option);
	const void *field = option->field;

	if (is_text(set))
		snprintf(text, text_bytes, "%s", (const char *)field);
	else if (set == cli_set_number && *(const uint32_t *)field)
		snprintf(text, text_bytes, "%" PRIu32, *(const uint32_t *)field);
	else if (set == cli_set_number_64 && *(const uint64_t *)field)
		snprintf(text, text_bytes, "%" PRIu64, *(const uint64_t *)field);
	else if (set == cli_set_size && *(const uint64_t *)field)
		cli_size_short(*(const uint64_t *)field, text, text_bytes);
	else if (set == cli_set_size_32 && *(const uint32_t *)field)
		cli_size_short(*(const uint32_t *)field, text, text_bytes);
	else if (set == cli_set_seconds && *(const double *)field > 0)
		snprintf(text, text_bytes, "%g", *(const double *)field);
}

void cli_option_default(const struct cli_option *option, char *text, size_t text_bytes)
{
	size_t used;

	*text = '\0';
	if (option->preset) {
		snprintf(text, text_bytes, "%s", option->preset);
		return;
	}
	if (!option->value || !option->field || option->is_required)
		return;
	print_field(option, text, text_bytes);
	used = strlen(text);
	if (used && option->unit)
		snprintf(text + used, text_bytes - used, " %s", option->unit);
}

void cli_option_range(const struct cli_option *option, char *text, size_t text_bytes)
{
	cli_set_fn *set = setter_of(option);
	char min[32], max[32];

	*text = '\0';
	if (!option->max || is_text(set))
		return;
	if (set == cli_set_size || set == cli_set_size_32)
		snprintf(text, text_bytes, "%s to %s",
			 cli_size_short(option->min, min, sizeof(min)),
			 cli_size_short(option->max, max, sizeof(max)));
	else
		snprintf(text, text_bytes, "%" PRIu64 " to %" PRIu64, option->min,
			 option->max);
}
