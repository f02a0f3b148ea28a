/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume: named volumes, which stay on their servers when no program has them open.
 */
#include "cli/commands.h"
#include "cli/volume/volume.h"

struct volume_wanted volume_wanted;

void volume_prepare(void)
{
	volume_wanted.keep_s = UINT64_MAX;
	volume_wanted.replicas = 1;
	rbx_options_defaults(&volume_wanted.library);
	volume_wanted.library.server_away = volume_away_note;
}

bool volume_has_option(const struct cli_command *command, const void *field)
{
	for (size_t i = 0; i < command->options_count; i++)
		if (command->options[i].field == field)
			return true;
	return false;
}

static int check(const struct cli_command *command)
{
	const struct volume_wanted *wanted = &volume_wanted;

	if (volume_has_option(command, wanted->name) && !*wanted->name)
		return cli_fail(command, "no name; add the NAME of the volume");
	if (volume_has_option(command, wanted->new_name) && !*wanted->new_name)
		return cli_fail(command, "no new name; add it behind the NAME of the volume");
	if (volume_has_option(command, wanted->new_servers) && !*wanted->new_servers)
		return cli_fail(command, "no new servers; add ADDR:PORT[,...] behind the NAME of the volume");
	if (volume_has_option(command, wanted->old_server) && !*wanted->old_server)
		return cli_fail(command, "no server; add its incarnation, as rdmabox volume show prints it, behind the NAME of the volume");
	if (volume_has_option(command, wanted->file) && !*wanted->file)
		return cli_fail(command, "no file; add FILE, or - for standard %s",
				command == &volume_import_command ? "input" : "output");
	if (volume_has_option(command, &wanted->size_bytes)) {
		if (!wanted->size_bytes)
			return cli_fail(command, "no size; add --size SIZE");
		if (wanted->size_bytes % 4096)
			return cli_fail(command, "--size is no multiple of 4096 bytes; round it up");
	}
	if (!*wanted->pool)
		return cli_fail(command, "no servers; add --pool POOL, such as ADDR:PORT[,...]");
	return cli_reach_check(command, wanted->library.secret_file, wanted->library.insecure);
}

int volume_parse(const struct cli_command *command, int argc, char **argv, int *exit_code)
{
	int rc = cli_parse(command, argc, argv);

	*exit_code = rc < 0 ? CLI_EXIT_USAGE : CLI_EXIT_OK;
	if (!rc)
		rc = *exit_code = check(command);
	return rc;
}

struct rbx_context *volume_device_open(const struct cli_command *command, int *exit_code)
{
	struct rbx_context *ctx;

	if (!rbx_open(&ctx, &volume_wanted.library))
		return ctx;
	*exit_code = cli_fail(command, "%s", rbx_last_error());
	return NULL;
}

struct rbx_context *volume_begin(const struct cli_command *command, int argc, char **argv,
				 int *exit_code)
{
	if (volume_parse(command, argc, argv, exit_code))
		return NULL;
	return volume_device_open(command, exit_code);
}

static const struct cli_command *const commands[] = {
	&volume_create_command,
	&volume_list_command,
	&volume_show_command,
	&volume_import_command,
	&volume_export_command,
	&volume_rebuild_command,
	&volume_scrub_command,
	&volume_grow_command,
	&volume_rename_command,
	&volume_add_server_command,
	&volume_remove_server_command,
	&volume_give_up_command,
	&volume_clear_lost_command,
	&volume_remove_command,
	NULL,
};

static int cli_volume(int argc, char **argv);

const struct cli_command volume_command = {
	.name = "volume",
	.purpose = "make and show volumes that outlive their programs",
	.notes = "`rdmabox volume COMMAND --help` lists the options of a command.",
	.run = cli_volume,
	.commands = commands,
};

static int cli_volume(int argc, char **argv)
{
	return cli_group_run(&volume_command, argc, argv);
}
