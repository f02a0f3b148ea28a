/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.c - the options of a context: defaults, setting by text, checks, description.
 *
 * A table has an entry for each option: its name, its place in the struct, and its
 * allowed values. Setting, checking and describing all read it, so a new option is one
 * line.
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
#include "lib/monitor/monitor.h"
#include "lib/pacing.h"
#include "lib/poller/polling.h"
#include "lib/sized.h"
#include "lib/buffers/tuning.h"
#include "wire/credential.h"

enum kind {
	KIND_TEXT, /* char[high]: any text, or what check() accepts */
	KIND_CHOICE, /* char[high], one of `choices` */
	KIND_U32, /* low to high */
	KIND_WORDS, /* uint32_t, low to high or one of `words`; without a range: only these */
	KIND_U64, /* low to high */
	KIND_INT,
	KIND_POWER, /* uint32_t, a power of two from low to high */
};

struct word {
	const char *word;
	uint32_t value;
};

struct option {
	const char *name;
	enum kind kind;
	size_t offset;
	int64_t low;
	int64_t high;
	const char *choices; /* "a|b|c" */
	const struct word *words; /* that stand for numbers; an empty one is the last */
	int (*check)(const char *text); /* NULL: any text */
};

static int check_polling(const char *text)
{
	struct rbx_polling polling;

	return rbx_polling_parse(text, &polling);
}

static int check_window(const char *text)
{
	const struct rbx_congestion_ops *ops;
	uint64_t bytes_max;

	return rbx_pacing_parse(text, &bytes_max, &ops);
}

static int check_overload(const char *text)
{
	uint32_t work_requests, cost_ns;

	return rbx_overload_parse(text, &work_requests, &cost_ns);
}

static int check_credential(const char *text)
{
	char name[RBX_CREDENTIAL_BYTES] = "";

	strncpy(name, text, sizeof(name) - 1);
	if (!rbx_credential_makes_sense(name))
		return rbx_error(-EINVAL, "credential=%s: a name has only A-Z a-z 0-9 . _ -", name);
	return 0;
}

static int check_memory_monitor(const char *text)
{
	enum rbx_memory_monitor_mode mode;

	return rbx_memory_monitor_mode_parse(text, &mode);
}

#define FIELD(name) offsetof(struct rbx_options, name)
#define TEXT_BYTES(name) sizeof(((struct rbx_options *)0)->name)
#define TEXT(name, check) \
	{ #name, KIND_TEXT, FIELD(name), 0, TEXT_BYTES(name), NULL, NULL, check }
#define CHOICE(name, words) \
	{ #name, KIND_CHOICE, FIELD(name), 0, TEXT_BYTES(name), words, NULL, NULL }
#define NUMBER(name, kind, field, low, high) \
	{ name, kind, FIELD(field), low, high, NULL, NULL, NULL }
#define WORDS(name, low, high, words) \
	{ #name, KIND_WORDS, FIELD(name), low, high, NULL, words, NULL }

static const struct word pollers_words[] = {
	{ "peer", RBX_POLLERS_PEER },
	{ "queue_pair", RBX_POLLERS_QUEUE_PAIR },
	{ NULL, 0 },
};

static const struct word integrity_words[] = {
	{ "default", RBX_INTEGRITY_DEFAULT },
	{ "off", RBX_INTEGRITY_OFF },
	{ "mac", RBX_INTEGRITY_MAC },
	{ "tls", RBX_INTEGRITY_TLS },
	{ NULL, 0 },
};

static const struct option table[] = {
	CHOICE(fabric, "auto|verbs|soft|soft:tcp"),
	TEXT(device, NULL),
	NUMBER("gid_index", KIND_INT, gid_index, -1, 255),
	CHOICE(mode, "single|doorbell|merge|hybrid"),
	CHOICE(buffers, "auto|staging|direct|cached"),
	TEXT(polling, check_polling),
	NUMBER("poll_cpu_percent", KIND_U32, poll_cpu_percent, 1, 100),
	TEXT(window, check_window),
	NUMBER("window_work_requests", KIND_U32, window_work_requests, 0,
	       1 << 20),
	TEXT(overload, check_overload),
	NUMBER("fragment_bytes", KIND_POWER, fragment_bytes, RBX_FRAGMENT_BYTES_MIN,
	       RBX_FRAGMENT_BYTES_MAX),
	NUMBER("queue_pairs", KIND_U32, queue_pairs, 0, RBX_QUEUE_PAIRS_MAX),
	WORDS(pollers, 0, RBX_POLLERS_MAX, pollers_words),
	NUMBER("requests_max", KIND_U32, requests_max, 64, 65536),
	NUMBER("peer_timeout_ms", KIND_U32, peer_timeout_ms, 100, 3600000),
	TEXT(secret_file, NULL),
	NUMBER("insecure", KIND_U32, insecure, 0, 1),
	TEXT(tune_file, NULL),
	NUMBER("on_demand_paging", KIND_U32, on_demand_paging, 0, 1),
	NUMBER("traffic_class", KIND_U32, traffic_class, 0, 255),
	TEXT(credential, check_credential),
	WORDS(integrity, 0, -1, integrity_words),
	NUMBER("region_cache_bytes", KIND_U64, region_cache_bytes, 4096, INT64_MAX),
	NUMBER("region_cache_regions", KIND_U32, region_cache_regions, 1, RBX_MEMORY_MONITOR_WATCHES_MAX),
	CHOICE(region_policy, "auto|lru|mre|gdsf|s3fifo|sieve"),
	TEXT(memory_monitor, check_memory_monitor),
};

#define OPTION_COUNT (sizeof(table) / sizeof(table[0]))

/* The first version of the struct ended just before this field. */
#define FIRST_BYTES FIELD(tune_file)

void rbx_options_defaults_sized(struct rbx_options *options, size_t size_bytes)
{
	static const struct rbx_options defaults = {
		.fabric = "auto",
		.gid_index = -1,
		.mode = "hybrid",
		.buffers = "auto",
		.polling = "adaptive",
		.poll_cpu_percent = 100,
		.window = "auto",
		.overload = "off",
		.fragment_bytes = RBX_FRAGMENT_BYTES_DEFAULT,
		.pollers = 1,
		.requests_max = 4096,
		.peer_timeout_ms = 5000,
		.region_cache_bytes = 1 << 30,
		.region_cache_regions = 4096,
		.region_policy = "auto",
		.memory_monitor = "auto",
	};

	rbx_sized_fill(options, size_bytes, &defaults, sizeof(defaults));
}

int rbx_options_take(struct rbx_options *taken,
		     const struct rbx_options *options)
{
	rbx_options_defaults(taken);
	return rbx_sized_take("rbx_options", FIRST_BYTES, taken, sizeof(*taken),
			      options);
}

#define SHOWN_BYTES 40u

struct shown {
	char text[SHOWN_BYTES + sizeof("...")];
};

/* A value as an error shows it: a long one leaves room for what is wrong with it, and is
 * not cut within a character of UTF-8. */
static const char *shorten(const char *value, size_t length, struct shown *shown)
{
	size_t bytes = RBX_MIN(length, SHOWN_BYTES);

	while (bytes < length && bytes > 0 && (value[bytes] & 0xc0) == 0x80)
		bytes--;
	snprintf(shown->text, sizeof(shown->text), "%.*s%s", (int)bytes, value,
		 bytes < length ? "..." : "");
	return shown->text;
}

/* Whether `word` is one of the words of "a|b|c". */
static bool is_choice(const char *choices, const char *word)
{
	size_t length = strlen(word);

	while (choices && *choices != '\0') {
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
	return option->kind == KIND_TEXT || option->kind == KIND_CHOICE;
}

/* The word for a value, such as "peer"; NULL if it has none. */
static const char *word_of(const struct word *words, int64_t value)
{
	while (words->word && words->value != value)
		words++;
	return words->word;
}

static bool value_of(const struct word *words, const char *word, int64_t *value)
{
	while (words->word && strcmp(words->word, word) != 0)
		words++;
	*value = words->value;
	return words->word;
}

/* "peer|queue_pair" */
static const char *words_list(const struct word *words, char *to, size_t size_bytes)
{
	size_t at = 0;

	for (; words->word; words++)
		at += (size_t)snprintf(to + at, size_bytes - at, "%s%s", at ? "|" : "",
				       words->word);
	return to;
}

static int check_text(const struct option *option, const char *text)
{
	if (!memchr(text, '\0', (size_t)option->high))
		return rbx_error(-EINVAL, "%s: longer than %d characters",
				 option->name, (int)option->high - 1);
	if (option->kind == KIND_CHOICE && !is_choice(option->choices, text))
		return rbx_error(-EINVAL, "%s=%s: must be one of %s",
				 option->name, text, option->choices);
	if (option->check)
		return option->check(text);
	return 0;
}

static int check_one(const struct option *option,
		     const struct rbx_options *options)
{
	char words[SHOWN_BYTES];
	int64_t value;

	if (is_text(option))
		return check_text(option,
				  (const char *)options + option->offset);
	value = number_of(option, options);
	if (option->kind == KIND_WORDS && word_of(option->words, value))
		return 0;
	if (option->low > option->high)
		return rbx_error(-EINVAL, "%s=%lld: must be one of %s", option->name,
				 (long long)value, words_list(option->words, words, sizeof(words)));
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
	int err;

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		err = check_one(&table[i], options);
		if (err)
			return err;
	}
	if (options->credential[0] && !options->secret_file[0])
		return rbx_error(-EINVAL, "credential=%s: there is no secret of that name; give secret_file (--secret-file) too",
				 options->credential);
	err = rbx_polling_check(options);
	return err ? err : rbx_pacing_check(options);
}

bool rbx_number_parse(const char *text, int64_t *value)
{
	bool is_negative = *text == '-';
	uint64_t size;

	if (rbx_size_parse(text + is_negative, &size) || size > INT64_MAX)
		return false;
	*value = is_negative ? -(int64_t)size : (int64_t)size;
	return true;
}

static int set_one(const struct option *option, struct rbx_options *options,
		   const char *text)
{
	struct rbx_options changed = *options;
	char *field = (char *)&changed + option->offset;
	char words[SHOWN_BYTES];
	struct shown shown;
	int64_t value;
	int err;

	if (is_text(option)) {
		if (strlen(text) >= (size_t)option->high)
			return rbx_error(-EINVAL,
					 "%s: longer than %d characters",
					 option->name, (int)option->high - 1);
		strcpy(field, text);
	} else if (option->kind == KIND_WORDS &&
		   value_of(option->words, text, &value)) {
		set_number(option, &changed, value);
	} else if (option->low > option->high) {
		return rbx_error(-EINVAL, "%s=%s: must be one of %s", option->name,
				 shorten(text, strlen(text), &shown),
				 words_list(option->words, words, sizeof(words)));
	} else if (rbx_number_parse(text, &value)) {
		if (value < option->low || value > option->high)
			return rbx_error(-EINVAL, "%s=%s: must be %lld to %lld",
					 option->name,
					 shorten(text, strlen(text), &shown),
					 (long long)option->low,
					 (long long)option->high);
		set_number(option, &changed, value);
	} else {
		return rbx_error(-EINVAL,
				 "%s=%s: not a number (suffixes K, M, G, T, or KiB and so on)",
				 option->name,
				 shorten(text, strlen(text), &shown));
	}
	err = check_one(option, &changed);
	if (!err)
		*options = changed;
	return err;
}

/* Names all options, or as many as there is room for. */
static int unknown_option(const char *key_value, size_t length)
{
	static const char more[] = " ...";
	char names[RBX_ERROR_TEXT_MAX];
	struct shown shown;
	const char *key = shorten(key_value, length, &shown);
	size_t room = sizeof(names) - strlen(key) -
		      sizeof("no option \"\"; there are:");
	size_t at = 0;

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		size_t bytes = 1 + strlen(table[i].name);
		bool is_last = i + 1 == OPTION_COUNT;

		if (at + bytes + (is_last ? 1 : sizeof(more)) > room) {
			strcpy(names + at, more);
			break;
		}
		at += (size_t)snprintf(names + at, bytes + 1, " %s",
				       table[i].name);
	}
	return rbx_error(-EINVAL, "no option \"%s\"; there are:%s", key, names);
}

/* The option that "key=value" begins with, or NULL. */
static const struct option *find(const char *key, size_t length)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (strlen(table[i].name) == length &&
		    strncmp(table[i].name, key, length) == 0)
			return &table[i];
	}
	return NULL;
}

int rbx_options_set(struct rbx_options *options, const char *key_value)
{
	const struct option *option;
	struct rbx_options all;
	struct shown shown;
	const char *equals;
	size_t length;
	int err;

	if (!options || !key_value)
		return rbx_error(-EINVAL, "options and key=value must be given");
	equals = strchr(key_value, '=');
	if (!equals)
		return rbx_error(-EINVAL, "\"%s\": must be key=value",
				 shorten(key_value, strlen(key_value), &shown));
	length = (size_t)(equals - key_value);
	option = find(key_value, length);
	if (!option)
		return unknown_option(key_value, length);
	err = rbx_options_take(&all, options);
	if (err)
		return err;
	if (option->offset >= options->size_bytes)
		return rbx_error(-EINVAL, "%s: the program was built with a version of rdmabox.h that has no such option",
				 option->name);
	err = set_one(option, &all, equals + 1);
	if (err)
		return err;
	all.size_bytes = options->size_bytes;
	memcpy(options, &all, RBX_MIN(all.size_bytes, sizeof(all)));
	return 0;
}

/* Describes what is in use and is not an option. */
static size_t describe_taken(const struct rbx_context *ctx, char *to,
			     size_t left)
{
	char taken[RBX_TUNING_KEY_BYTES];

	rbx_tuning_key(ctx->device, taken);
	return (size_t)snprintf(to, left,
				"using=%s; %s\n"
				"taken=%s\n"
				"registering=%s\n"
				"tuning=%s\n",
				ctx->fabric.why, ctx->device->caps.description,
				taken, ctx->buffers.why, ctx->tuning_note);
}

/* Writes the value of an option as text. */
static int describe_one(const struct option *option,
			const struct rbx_options *options, char *to,
			size_t size_bytes)
{
	const char *word = NULL;

	if (is_text(option))
		word = (const char *)options + option->offset;
	else if (option->kind == KIND_WORDS)
		word = word_of(option->words, number_of(option, options));
	if (word)
		return snprintf(to, size_bytes, "%s=%s\n", option->name, word);
	return snprintf(to, size_bytes, "%s=%lld\n", option->name,
			(long long)number_of(option, options));
}

int rbx_describe(struct rbx_context *ctx, char *text, size_t size_bytes)
{
	struct rbx_options options;
	size_t at = 0;
	int err = rbx_guard_use(ctx, "rbx_describe");

	if (err)
		return err;
	pthread_mutex_lock(&ctx->view_lock);
	options = ctx->options;
	pthread_mutex_unlock(&ctx->view_lock);
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		size_t left = at < size_bytes ? size_bytes - at : 0;

		at += (size_t)describe_one(&table[i], &options,
					   left ? text + at : NULL, left);
	}
	at += describe_taken(ctx, at < size_bytes ? text + at : NULL,
			     at < size_bytes ? size_bytes - at : 0);
	return (int)at;
}
