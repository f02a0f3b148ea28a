/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli.h - what the commands of rdmabox(1) share.
 *
 * A command is a table of options and a function. The table is the only place
 * that knows an option: getopt_long(), the checks, and --help are made from it.
 * Whatever is wrong with the command line or its surroundings is one line on
 * stderr that names the cause and the fix, and exit code 2.
 */
#ifndef CLI_H
#define CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_FAILED = 1, /* it ran, and something went wrong */
	CLI_EXIT_USAGE = 2, /* it did not run: options or surroundings */
};

struct cli_option {
	const char *name; /* without the dashes */
	const char *value; /* what --help calls the value; NULL: a flag */
	const char *help; /* one line, or several with newlines */
	/* Stores the value in *field. Returns 0 or -EINVAL; then @reason says
	 * what would have been right. */
	int (*set)(const struct cli_option *option, const char *text,
		   char *reason, size_t reason_bytes);
	void *field;
	uint64_t min; /* of a number; 0 and 0: any */
	uint64_t max; /* of a number; of a text its bytes with the NUL */
	const char *words; /* cli_set_word: "read|write" */
};

struct cli_command {
	const char *name;
	const char *purpose; /* one line */
	const char *usage; /* the options in short, as in the man page */
	const char *notes; /* printed below the options, or NULL */
	const struct cli_option *options;
	size_t options_count;
};

/* The setters, named for the type of the field they store to. */
int cli_set_flag(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes); /* uint32_t */
int cli_set_number(const struct cli_option *option, const char *text,
		   char *reason, size_t reason_bytes); /* uint32_t */
int cli_set_number_64(const struct cli_option *option, const char *text,
		      char *reason, size_t reason_bytes); /* uint64_t */
int cli_set_size(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes); /* uint64_t, 64K */
int cli_set_size_32(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes); /* uint32_t, 64K */
int cli_set_seconds(const struct cli_option *option, const char *text,
		    char *reason, size_t reason_bytes); /* double */
int cli_set_text(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes); /* char[max] */
int cli_set_word(const struct cli_option *option, const char *text,
		 char *reason, size_t reason_bytes); /* char[max], of words */


/** cli_size_print() - bytes as "64 KiB", or as bytes if not a round number. */
const char *cli_size_print(uint64_t bytes, char *text, size_t text_bytes);

/**
 * cli_parse() - reads the command line into the fields of the options.
 *
 * Returns 0 to go on, 1 where --help was printed, -EINVAL or -ENOMEM after
 * saying why.
 */
int cli_parse(const struct cli_command *command, int argc, char **argv);

/** cli_fail() - one line on stderr; returns CLI_EXIT_USAGE. */
int cli_fail(const struct cli_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * cli_json_write() - to a file, or to stdout for "-". Takes @json.
 *
 * Returns 0 or -errno after saying why.
 */
int cli_json_write(const struct cli_command *command, json_t *json,
		   const char *path);

struct rbx_context;

/** cli_describe() - the value of one line "key=value" of rbx_describe(). */
void cli_describe(struct rbx_context *ctx, const char *key, char *value,
		  size_t value_bytes);

int cli_serve(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_page(int argc, char **argv);
int cli_sim(int argc, char **argv);
int cli_stat(int argc, char **argv);
int cli_tune(int argc, char **argv);

#endif
