/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli.h - what the commands of rdmabox(1) share.
 *
 * A command is a table of options and a function. Only the table knows an option: the
 * parser, --help, the manual page and the shell completions are made from it (options.c,
 * usage.c, help/). A new option is one entry.
 *
 * An error in the command line or its surroundings prints one line on stderr, with the
 * cause and the fix, and the exit code is 2.
 */
#ifndef CLI_H
#define CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_FAILED = 1, /* it ran, and something failed */
	CLI_EXIT_USAGE = 2, /* it did not run: options or surroundings */
	CLI_EXIT_SIGNAL = 128, /* plus the number of the signal that interrupted it */
};

struct cli_option;

/* Stores a value in the option's field. Returns 0 or -EINVAL; then @reason says what
 * would have been right. */
typedef int cli_set_fn(const struct cli_option *option, const char *text,
		       char *reason, size_t reason_bytes);

/* What a shell completes as a value, if the setter does not tell. */
enum cli_argument {
	CLI_ARGUMENT_BY_SETTER, /* choices, a number, a size, else nothing */
	CLI_ARGUMENT_FILE,
	CLI_ARGUMENT_DIRECTORY,
	CLI_ARGUMENT_ADDRESS, /* ADDR:PORT */
	CLI_ARGUMENT_COMMAND, /* the name of a command */
};

/* How a value is given. */
enum cli_place {
	CLI_OPTION, /* --name VALUE */
	CLI_OPTION_OR_WORD, /* or VALUE alone */
	CLI_WORD, /* VALUE alone; the name is only for messages */
};

struct cli_option {
	const char *name; /* without the dashes */
	const char *value; /* the form of the value; NULL: a flag */
	const char *help; /* one line, or several with newlines. A line "word: text" tells
			     of one of the choices */
	cli_set_fn *set;
	void *field; /* of the setter's type; holds the default at first */
	uint64_t min; /* of a number; 0 and 0: any */
	uint64_t max; /* of a number; of a text its bytes with the NUL */
	const char *words; /* the choices, "read|write|mix:"; after : or = more text follows */
	const char *group; /* a heading above it; NULL: in the group of the last one */
	const char *preset; /* the default as text, if the field does not tell it */
	const char *unit; /* of the default, such as "ms" */
	const char *details; /* sentences for the manual page alone; `word` is a literal,
				--name an option, name(3) a manual page */
	cli_set_fn *like; /* the setter that a setter of its own calls to store the value */
	enum cli_argument argument;
	enum cli_place place;
	bool is_required;
	bool or_next; /* this option or the next, not both */
	bool is_repeatable;
};

struct cli_command {
	const char *name; /* "page attach" for a command of a command */
	const char *purpose; /* "lend memory", without a full stop */
	const char *usage; /* the arguments; NULL: made from the table */
	const char *notes; /* printed below the options, or NULL */
	const struct cli_option *options;
	size_t options_count;
	int (*run)(int argc, char **argv); /* returns an exit code */
	/* Sets fields to the defaults that only the library knows; or NULL. If there is a
	 * config, it sets all fields. */
	void (*prepare)(void);
	/* The field of the option that names a configuration file; NULL: there is none. */
	const char *config;
	const struct cli_command *const *commands; /* of its own, NULL at the end; or NULL */
};

#define CLI_OPTIONS(table) \
	.options = (table), .options_count = sizeof(table) / sizeof((table)[0])

/* ---- Setters, named for the type of the field they store to (setters.c) --------*/

cli_set_fn cli_set_flag; /* uint32_t */
cli_set_fn cli_set_number; /* uint32_t */
cli_set_fn cli_set_integrity; /* uint32_t, of enum rbx_integrity */
cli_set_fn cli_set_number_64; /* uint64_t */
cli_set_fn cli_set_size; /* uint64_t, 64K */
cli_set_fn cli_set_size_32; /* uint32_t, 64K */
cli_set_fn cli_set_seconds; /* double */
cli_set_fn cli_set_text; /* char[max] */
cli_set_fn cli_set_word; /* char[max], of words */

/** cli_option_kind() - "flag", "number", "size", "choice", "file": see help/README. */
const char *cli_option_kind(const struct cli_option *option);

/** cli_option_default() - the default as users write it: "64M", "5000 ms"; "" if there is none. */
void cli_option_default(const struct cli_option *option, char *text, size_t text_bytes);

/** cli_option_range() - "64K to 1G"; "" if any is taken. */
void cli_option_range(const struct cli_option *option, char *text, size_t text_bytes);

/** cli_size_print() - bytes as "64 KiB", or as bytes if not a round number. */
const char *cli_size_print(uint64_t bytes, char *text, size_t text_bytes);

/** cli_size_short() - the same as an option takes it: "64K", "100". */
const char *cli_size_short(uint64_t bytes, char *text, size_t text_bytes);

/* ---- Commands ----------------------------------------------------------------*/

/* commands.c: all of them, NULL at the end. A new command is a line there. */
extern const struct cli_command *const cli_commands[];

/** cli_command_find() - by the name's last word, or NULL. */
const struct cli_command *cli_command_find(const struct cli_command *const *commands,
					   const char *word);

/**
 * cli_dispatch() - runs the command of @commands that argv[1] names.
 * @of: whose commands they are, NULL for those of rdmabox itself.
 *
 * Returns its exit code, or CLI_EXIT_USAGE once it has said that there is none.
 */
int cli_dispatch(const struct cli_command *of, const struct cli_command *const *commands,
		 int argc, char **argv);

/**
 * cli_group_run() - runs the command of @of that argv[1] names, or the help of @of.
 *
 * Returns its exit code, or CLI_EXIT_USAGE once it has said what is missing or wrong.
 */
int cli_group_run(const struct cli_command *of, int argc, char **argv);

/**
 * cli_parse() - reads the command line into the fields of the options, and before it
 * the configuration file that the command line names.
 *
 * Returns 0 to go on, 1 if --help was printed, -EINVAL or -ENOMEM after
 * saying why.
 */
int cli_parse(const struct cli_command *command, int argc, char **argv);

/**
 * cli_config_read() - reads the lines `name = value` of a file into the fields of the
 * options of those names. The value of a flag is yes or no.
 *
 * Returns 0, or -EINVAL after saying what is wrong in which line.
 */
int cli_config_read(const struct cli_command *command, const char *path);

/* usage.c: these print to stdout unless a stream is given. */
void cli_help_print(const struct cli_command *command);
void cli_main_help_print(void);
void cli_main_usage_print(FILE *stream); /* the short form of it */
void cli_commands_print(FILE *stream, const struct cli_command *const *commands);

/**
 * cli_nearest() - which of the words @word may be a slip of; NULL: it is like none.
 * @next: called with 0, 1, 2... until it returns NULL.
 */
const char *cli_nearest(const char *word, const char *(*next)(const void *of, size_t index),
			const void *of);

/* False: rather than to wait for a reader of stderr, cli_fail() says nothing. For a
 * process that serves, and must not hang on who reads its log. */
extern bool cli_fail_may_wait;
bool cli_stderr_would_wait(void);

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

/**
 * cli_output_check() - before a long run: whether a file could be written there.
 * @option: that gave the path, for the message.
 * @path: "" and "-" are right.
 *
 * Nothing is left behind. Returns 0 or CLI_EXIT_USAGE after saying why.
 */
int cli_output_check(const struct cli_command *command, const char *option,
		     const char *path);

/* interrupt.c: SIGINT or SIGTERM ends a run early, and the second one, a second later, the
 * process. */
/* @restarts: a system call goes on after the signal, else it ends with EINTR. */
void cli_interrupt_catch(bool restarts);
/* Around the open of a volume, which cannot be interrupted: a signal says so, and a second one that
 * the volume may stay open. Returns true if a signal came, now or before: then the volume is not to
 * be opened, or is to be closed. */
bool cli_interrupt_opens(bool opens);
/* A file that is removed then, until it is another one, or NULL; stays with the caller. */
void cli_interrupt_removes(const char *path);
/* The signal that came, or 0. */
int cli_interrupted(void);
/* Called before steps that have to be done in any case. If a signal came before, the next one ends
 * the process. */
void cli_interrupt_forget(void);

struct rbx_context;

/** cli_describe() - the value of one line "key=value" of rbx_describe(). */
void cli_describe(struct rbx_context *ctx, const char *key, char *value,
		  size_t value_bytes);

#endif
