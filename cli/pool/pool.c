/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox pool: shows the servers of a pool: a list, a file, or what servers have announced
 * in etcd. The pool says who they are; each is asked how it is.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/pool/pool_status.h"
#include "cli/reach.h"
#include "core/server_labels.h"

static char pool_text[4096];
static char spread[64];
static uint32_t as_json;
static struct rbx_options library;

static const struct cli_option status_options[] = {
	{ "pool", "POOL", "the pool: a list, file:PATH or etcd://HOST:PORT/NAME", cli_set_text,
	  pool_text, .max = sizeof(pool_text), .is_required = true,
	  .place = CLI_OPTION_OR_WORD,
	  .details = "It may be given alone, without the option's name." },
	{ "json", NULL, "print JSON", cli_set_flag, .field = &as_json,
	  .details = "One object: the sums, and a list `members` with the columns of the table. "
		     "What is not known is null; the incarnation is a text. `domains` and "
		     "`volumes` are the other tables; a volume is as `rdmabox volume list --json` "
		     "has it." },
	{ "spread", "NAME", "the label that says which servers fail together", cli_set_text,
	  spread, .max = sizeof(spread) },
	CLI_REACH_FABRIC(library, "how to reach the servers; as they serve"),
	CLI_REACH_SECRET(library, "the servers"),
	CLI_REACH_CREDENTIAL(library),
	CLI_REACH_INTEGRITY(library),
};

static int pool_status(int argc, char **argv);

static void prepare(void)
{
	rbx_options_defaults(&library);
	strcpy(spread, "rack");
}

static const struct cli_command status_command = {
	.name = "pool status",
	.purpose = "show the servers of a pool, and the volumes on them",
	.notes = "The exit code is 1 if a server is away, a volume lacks one, or the pool has none. An admin of\n"
		 "the servers (rdmabox serve --secrets) sees the volumes of all owners.",
	CLI_OPTIONS(status_options),
	.run = pool_status,
	.prepare = prepare,
};

/* The members in rows, and what is wrong with the pool. NULL: rc has the exit code. */
static struct pool_row *rows_read(size_t *count, char *trouble, size_t trouble_bytes, int *rc)
{
	struct rbx_pool_member *members = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*members));
	struct pool_row *rows = calloc(RBX_POOL_MEMBERS_MAX, sizeof(*rows));
	struct rbx_pool *pool;
	size_t i;

	if (!members || !rows) {
		*rc = cli_fail(&status_command, "out of memory");
	} else if (rbx_pool_open(&pool, pool_text)) {
		*rc = cli_fail(&status_command, "%s", rbx_last_error());
	} else {
		*count = rbx_pool_members_get(pool, members, RBX_POOL_MEMBERS_MAX);
		rbx_pool_trouble(pool, trouble, trouble_bytes);
		rbx_pool_close(pool);
		for (i = 0; i < *count; i++)
			rows[i].member = members[i];
		free(members);
		return rows;
	}
	free(members);
	free(rows);
	return NULL;
}

/* Whether the pool could be read and has servers, all of them answered, and no volume lacks one. */
static bool is_well(const struct pool_status *status)
{
	const struct pool_volumes *volumes = status->volumes;
	bool is_so = status->count && !*status->trouble && !*volumes->error;
	size_t i;

	for (i = 0; i < status->count; i++)
		is_so &= status->rows[i].state != POOL_AWAY;
	for (i = 0; i < volumes->count; i++)
		is_so &= pool_volume_missing(&volumes->infos[i]) == 0;
	return is_so;
}

static int status_show(const struct pool_status *status)
{
	int rc = is_well(status) ? CLI_EXIT_OK : CLI_EXIT_FAILED;

	if (!as_json)
		pool_status_print(status);
	else if (cli_json_write(&status_command, pool_status_json(status), "-"))
		rc = CLI_EXIT_FAILED;
	if (!status->count && !*status->trouble)
		cli_fail(&status_command, "the pool has no servers; is its name right?");
	return rc;
}

static int rows_show(struct rbx_context *ctx, struct pool_row *rows, size_t count,
		     const char *trouble)
{
	struct pool_volumes volumes;
	const struct pool_status status = {
		.rows = rows,
		.count = count,
		.volumes = &volumes,
		.pool = pool_text,
		.credential = library.credential,
		.spread = spread,
		.trouble = trouble,
	};
	int rc;

	pool_rows_ask(ctx, rows, count);
	pool_volumes_ask(ctx, rows, count, &volumes);
	rc = status_show(&status);
	free(volumes.infos);
	return rc;
}

static int pool_status(int argc, char **argv)
{
	struct rbx_context *ctx;
	struct pool_row *rows;
	char trouble[512] = "";
	size_t count = 0;
	int rc = cli_parse(&status_command, argc, argv);

	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!*pool_text)
		return cli_fail(&status_command, "no pool; add --pool POOL, or POOL alone");
	if (!rbx_spread_is_good(spread))
		return cli_fail(&status_command, "--spread %s: give the name of a label, such as rack", spread);
	rc = cli_reach_check(&status_command, library.secret_file, library.insecure);
	if (rc)
		return rc;
	if (rbx_open(&ctx, &library))
		return cli_fail(&status_command, "%s", rbx_last_error());
	rows = rows_read(&count, trouble, sizeof(trouble), &rc);
	if (rows)
		rc = rows_show(ctx, rows, count, trouble);
	free(rows);
	rbx_close(ctx);
	return rc;
}

static const struct cli_command *const commands[] = {
	&status_command,
	NULL,
};

static int cli_pool(int argc, char **argv);

const struct cli_command pool_command = {
	.name = "pool",
	.purpose = "show the servers that a volume may use",
	.notes = "`rdmabox pool COMMAND --help` lists the options of a command.",
	.run = cli_pool,
	.commands = commands,
};

static int cli_pool(int argc, char **argv)
{
	return cli_group_run(&pool_command, argc, argv);
}
