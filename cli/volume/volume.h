/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume.h - the parts of rdmabox volume.
 *
 *	volume.c    the list of its commands; reads a command line and opens the device
 *	admin.c     create, grow, rename, remove
 *	members.c   add-server, remove-server
 *	give_up.c   give-up, clear-lost
 *	list.c      list, show
 *	away.c      servers that a command goes on without
 *	keep.c      how long a volume is kept, as text
 *	import.c    a file into a volume
 *	export.c    a volume into a file
 *	rebuild.c   makes replicas anew, and waits until all are there
 *	scrub.c     reads all replicas, and repairs what is damaged
 *	output.c    the file of an export
 *	copy.c      what these two share: the volume, a ring of requests, SHA-256
 *	progress.c  shows how far a copy is
 */
#ifndef VOLUME_H
#define VOLUME_H

#include <limits.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdmabox/named_volume.h>

#include "cli/cli.h"
#include "cli/reach.h"

/* What the command line says; each command has some of it. */
struct volume_wanted {
	char name[RBX_VOLUME_NAME_MAX];
	char new_name[RBX_VOLUME_NAME_MAX];
	char new_servers[4096];
	char old_server[256];
	char gone[RBX_VOLUME_SERVERS_MAX * 17];
	char file[PATH_MAX];
	char pool[4096];
	uint64_t size_bytes;
	uint64_t keep_s;
	uint64_t rate_bytes;
	uint64_t from_bytes;
	uint32_t replicas;
	uint32_t reserve;
	uint32_t overcommit;
	uint32_t checksums;
	uint32_t force;
	uint32_t yes;
	uint32_t take_over;
	uint32_t read_only;
	uint32_t as_json;
	struct rbx_options library;
};

extern struct volume_wanted volume_wanted;

extern const struct cli_command volume_create_command; /* admin.c */
extern const struct cli_command volume_grow_command;
extern const struct cli_command volume_rename_command;
extern const struct cli_command volume_remove_command;
extern const struct cli_command volume_add_server_command; /* members.c */
extern const struct cli_command volume_remove_server_command;
extern const struct cli_command volume_give_up_command; /* give_up.c */
extern const struct cli_command volume_clear_lost_command;
extern const struct cli_command volume_list_command; /* list.c */
extern const struct cli_command volume_show_command;
extern const struct cli_command volume_import_command; /* import.c */
extern const struct cli_command volume_export_command; /* export.c */
extern const struct cli_command volume_rebuild_command; /* rebuild.c */
extern const struct cli_command volume_scrub_command; /* scrub.c */

/* ---- Options that several commands have ----------------------------------------------*/

#define VOLUME_NAME                                                            \
	{ "name", "NAME", "name of the volume", cli_set_text,                  \
	  volume_wanted.name, .max = sizeof(volume_wanted.name),               \
	  .is_required = true, .place = CLI_OPTION_OR_WORD,                    \
	  .details = "1 to 63 letters, digits, dots, underscores and "         \
		     "hyphens, and it begins with a letter or a digit. It "    \
		     "may be given alone, without the option's name." }

#define VOLUME_POOL(help)                                                   \
	{ "pool", "POOL", help, cli_set_text, volume_wanted.pool,              \
	  .max = sizeof(volume_wanted.pool), .is_required = true,              \
	  .argument = CLI_ARGUMENT_ADDRESS, .details = CLI_POOL_DETAILS }

#define VOLUME_TAKE_OVER                                                       \
	{ "take-over", NULL, "take it from the program that has it open",      \
	  cli_set_flag, .field = &volume_wanted.take_over,                     \
	  .details = "That program can neither read nor write it any more, "   \
		     "even if it is only asleep: its requests end with an "    \
		     "error." }

#define VOLUME_OVERCOMMIT                                                      \
	{ "overcommit", NULL, "also more than all memory of the servers",      \
	  cli_set_flag, .field = &volume_wanted.overcommit,                    \
	  .details = "Without it, a size that the servers could not have in "  \
		     "full, with all replicas, is refused, however much of "   \
		     "their memory is lent. Writes that find no memory end "   \
		     "with ENOSPC." }

#define VOLUME_READ_ONLY                                                       \
	{ "read-only", NULL, "leave it to the program that has it open",       \
	  cli_set_flag, .field = &volume_wanted.read_only,                     \
	  .details = "That program may write meanwhile. What it wrote two "    \
		     "seconds before a part is read is in it, and of later "   \
		     "writes some may be." }

#define VOLUME_JSON(what)                                                      \
	{ "json", NULL, "print JSON", cli_set_flag,                            \
	  .field = &volume_wanted.as_json, .details = what }

#define VOLUME_REACH                                                           \
	CLI_REACH_FABRIC(volume_wanted.library,                                \
			 "how to reach the servers; as they serve"),           \
		CLI_REACH_DEVICE(volume_wanted.library),                       \
		CLI_REACH_SECRET(volume_wanted.library, "the servers"),        \
		CLI_REACH_CREDENTIAL(volume_wanted.library),                   \
		CLI_REACH_INTEGRITY(volume_wanted.library)

/* Sets the defaults: of all commands of rdmabox volume. */
void volume_prepare(void);

/**
 * volume_begin() - reads the command line, and opens the device.
 *
 * Returns NULL if the command ends here; then @exit_code is set.
 */
struct rbx_context *volume_begin(const struct cli_command *command, int argc, char **argv,
				 int *exit_code);

/* The same without the device. Returns 0 to go on. */
int volume_parse(const struct cli_command *command, int argc, char **argv, int *exit_code);
struct rbx_context *volume_device_open(const struct cli_command *command, int *exit_code);

/* field: of volume_wanted. */
bool volume_has_option(const struct cli_command *command, const void *field);

/* Makes one call of the library, and says why it failed; if_busy: what to do if a program has the
 * volume open, or servers are away. */
int volume_call(const struct cli_command *command, int argc, char **argv,
		int (*call)(struct rbx_context *ctx), const char *if_busy); /* admin.c */

/* ---- The volume is opened: open.c ------------------------------------------------------*/

typedef void volume_event_fn(struct rbx_volume *volume, const struct rbx_event *event, void *user);

/* As the command line says. event: volume_event_show(), or what calls it. Returns CLI_EXIT_OK, or
 * another exit code after saying why. */
int volume_open(const struct cli_command *command, struct rbx_context *ctx,
		struct rbx_volume **volume, volume_event_fn *event, void *user);
/* If the open takes long, stderr says why. */
void volume_event_show(struct rbx_volume *volume, const struct rbx_event *event, void *user);

/* ---- How long a volume is kept ---------------------------------------------------------*/

cli_set_fn volume_set_keep; /* uint64_t, seconds; UINT64_MAX: for ever */
const char *volume_keep_print(uint64_t keep_s, char *text, size_t text_bytes);

/* ---- Servers that a command went on without: away.c -----------------------------------------*/

/* `server_away` of the options of the library. */
void volume_away_note(const char *server, const char *why, void *user);
void volume_away_forget(void);
/* A line on stderr for each of them; and_so: what follows from that, or "". */
void volume_away_print(const struct cli_command *command, const char *and_so);
json_t *volume_away_json(void);
/* The pool of the command line without them, so that nobody waits for them again; the caller frees
 * it. NULL: no memory. */
char *volume_pool_there(void);

/* What is known of a volume: list.c; for rdmabox pool status, too. */
json_t *volume_info_json(const struct rbx_volume_info *info);
/* Owners have a column if there are others than the credential that asks: its width, or 0. */
int volume_owners_width(const struct rbx_volume_info *infos, int count, const char *credential);
void volume_owner_print(int width, const char *owner); /* 0: nothing */

/* Each asks the servers anew. What they know of the volume; NULL, or why that is not known. */
const char *volume_info_ask(struct rbx_context *ctx, struct rbx_volume_info *info); /* list.c */
/* Returns NULL if each of them has the volume, else what is wrong. */
const char *volume_servers_check(struct rbx_context *ctx); /* list.c */
/* Asks them whether slabs of it were lost with servers that were given up. False, if they do not
 * tell. */
bool volume_is_lost(struct rbx_context *ctx); /* list.c */

/* ---- Progress ---------------------------------------------------------------------------*/

struct volume_progress {
	const char *verb;
	bool is_shown;
	uint64_t total_bytes; /* 0: not known */
	uint64_t begun_ns;
	uint64_t shown_ns;
	uint64_t shown_bytes;
};

void volume_progress_begin(struct volume_progress *progress, const char *verb,
			   uint64_t total_bytes);
void volume_progress_show(struct volume_progress *progress, uint64_t bytes);
/* Takes the line away; and if all was copied, says how long that took. */
void volume_progress_end(struct volume_progress *progress, uint64_t bytes, bool is_whole);

/* ---- A copy: a volume, requests on it in order, SHA-256 -----------------------------*/

#define VOLUME_DEPTH 32u
#define VOLUME_CHUNK_BYTES (128u << 10)

struct volume_slot {
	struct rbx_request request;
	uint8_t *buf; /* VOLUME_CHUNK_BYTES */
	bool is_done; /* came out of rbx_reap() */
};

/* Chunk N has slot N % VOLUME_DEPTH. */
struct volume_copy {
	const struct cli_command *command;
	struct rbx_context *ctx;
	struct rbx_volume *volume;
	struct rbx_region *region;
	EVP_MD_CTX *sha256;
	uint8_t *buffers;
	struct volume_slot slots[VOLUME_DEPTH];
	uint64_t begun_chunks; /* submitted, from the beginning of the volume on */
	uint64_t ended_chunks; /* of them, from the first on, that have ended well */
	uint64_t begun_bytes;
	uint64_t ended_bytes;
	struct volume_progress progress;
	/* Of the volume: what became of its servers. Written by a thread of the library. */
	struct volume_fate *fate;
};

/* Takes @ctx. Returns 0 or an exit code after saying why; volume_copy_close() in any case. */
int volume_copy_open(struct volume_copy *copy, const struct cli_command *command,
		     struct rbx_context *ctx);
/* Waits for what is outstanding. */
void volume_copy_close(struct volume_copy *copy);

bool volume_copy_is_full(const struct volume_copy *copy); /* all slots are in use */
/* The slot of the chunk that is begun next. */
struct volume_slot *volume_copy_next(struct volume_copy *copy);
/* Submits it. Returns 0 or -errno. */
int volume_copy_begin(struct volume_copy *copy, uint8_t op, uint32_t length_bytes);
/* Waits for the oldest chunk, and gives its slot; its status is for the caller. */
struct volume_slot *volume_copy_wait(struct volume_copy *copy);
/* It has ended well, and its slot is free. */
void volume_copy_end(struct volume_copy *copy);
/* Waits for all that is outstanding; no slot may be used afterwards. */
void volume_copy_drain(struct volume_copy *copy);
bool volume_copy_sum(struct volume_copy *copy, const void *data, size_t bytes);

/* Why a request failed: its error, and what became of the servers. */
const char *volume_copy_reason(struct volume_copy *copy, int err, char *text,
			       size_t text_bytes);
/* Prints the sum as sha256sum(1) does, with the name of the file. */
int volume_copy_print_sum(struct volume_copy *copy, FILE *stream);

/* ---- The file of an export ----------------------------------------------------------------*/

/* A new regular file is written as FILE.part and renamed at its end, all else in place. */
struct volume_output {
	int fd;
	char target[PATH_MAX]; /* "": in place */
	char part[PATH_MAX];
};

/* Returns 0, or CLI_EXIT_USAGE after saying why. */
int volume_output_open(struct volume_output *output, const struct cli_command *command,
		       const char *file);
/* Returns 0, or -errno; -EINTR: a signal is to end it. */
int volume_output_write(struct volume_output *output, const void *data, size_t bytes);
/* Puts the file in its place. Returns 0 or -errno; then what was written is gone. */
int volume_output_keep(struct volume_output *output);
/* Removes what was written, if that is possible. */
void volume_output_drop(struct volume_output *output);

#endif
