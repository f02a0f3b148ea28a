/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox stat: shows the numbers of one memory server.
 *
 * The request uses the control protocol, as any client's. So it needs the client's
 * secret, and the server has no other entrance.
 */
#include <inttypes.h>
#include <stdio.h>

#include <rdmabox/rdmabox.h>
#include <rdmabox/server.h>

#include "cli/commands.h"
#include "cli/reach.h"

static char server_address[128];
static uint32_t as_json;
static struct rbx_options library;

static const struct cli_option options[] = {
	{ "server", "ADDR:PORT", "server to ask", cli_set_text,
	  server_address, .max = sizeof(server_address), .is_required = true,
	  .place = CLI_OPTION_OR_WORD, .argument = CLI_ARGUMENT_ADDRESS,
	  .details = "The address may be given alone, without the option's name." },
	{ "json", NULL, "print JSON", cli_set_flag, .field = &as_json,
	  .details = "One object, with the keys of the table and the address as `server`." },
	CLI_REACH_FABRIC(library, "how to reach the server; as it serves"),
	CLI_REACH_SECRET(library, "the server"),
	CLI_REACH_CREDENTIAL(library),
	CLI_REACH_INTEGRITY(library),
};

static int cli_stat(int argc, char **argv);

static void prepare(void)
{
	rbx_options_defaults(&library);
}

const struct cli_command stat_command = {
	.name = "stat",
	.purpose = "show the numbers of a memory server",
	CLI_OPTIONS(options),
	.run = cli_stat,
	.prepare = prepare,
};

static json_t *json_of(uint64_t value)
{
	return value == RBX_SERVER_NOT_SEEN ? json_null() :
					      json_integer((json_int_t)value);
}

static int print_json(const struct rbx_server_stats *stats)
{
	json_t *json = json_object();

	json_object_set_new(json, "server", json_string(server_address));
#define ADD(name, what) \
	json_object_set_new(json, #name, json_of(stats->name));
	RBX_SERVER_STATS(ADD)
#undef ADD
	return cli_json_write(&stat_command, json, "-") ? CLI_EXIT_FAILED :
						     CLI_EXIT_OK;
}

static void print_number(const char *name, uint64_t value, const char *what)
{
	if (value == RBX_SERVER_NOT_SEEN)
		printf("  %-18s %16s  %s\n", name, "-", what);
	else
		printf("  %-18s %16" PRIu64 "  %s\n", name, value, what);
}

static void print_table(const struct rbx_server_stats *stats)
{
	printf("server %s\n", server_address);
#define PRINT(name, what) print_number(#name, stats->name, what);
	RBX_SERVER_STATS(PRINT)
#undef PRINT
}

static int cli_stat(int argc, char **argv)
{
	struct rbx_server_stats stats;
	struct rbx_context *ctx;
	int rc;

	rc = cli_parse(&stat_command, argc, argv);
	if (rc)
		return rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!*server_address)
		return cli_fail(&stat_command, "no server; add --server ADDR:PORT, or ADDR:PORT alone");
	rc = cli_reach_check(&stat_command, library.secret_file, library.insecure);
	if (rc)
		return rc;
	if (rbx_open(&ctx, &library))
		return cli_fail(&stat_command, "%s", rbx_last_error());
	if (rbx_server_query(ctx, server_address, &stats)) {
		rc = cli_fail(&stat_command, "%s", rbx_last_error());
	} else if (as_json) {
		rc = print_json(&stats);
	} else {
		print_table(&stats);
		rc = CLI_EXIT_OK;
	}
	rbx_close(ctx);
	return rc;
}
