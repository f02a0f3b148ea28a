/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdmabox volume list and show: what the servers know of named volumes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/volume/volume.h"

#define COUNT_FIRST 64u
#define VOLUME_ID_TEXT 17

static const char *reason_of(int err)
{
	return err == -ENOMEM ? "no memory for the list of volumes" : rbx_last_error();
}

/* All volumes, in memory that the caller frees. Returns their number or -errno. */
static int ask(struct rbx_context *ctx, struct rbx_volume_info **infos)
{
	uint32_t room = COUNT_FIRST;
	int count;

	for (;;) {
		*infos = calloc(room, sizeof(**infos));
		if (!*infos)
			return -ENOMEM;
		count = rbx_volume_list(ctx, volume_wanted.pool, *infos, room);
		if (count <= (int)room)
			return count;
		room = (uint32_t)count;
		free(*infos);
	}
}

/* Returns NULL, or why it is not known. */
static const char *find(struct rbx_context *ctx, struct rbx_volume_info *info)
{
	struct rbx_volume_info *infos;
	int named_count = 0, count = ask(ctx, &infos);

	for (int i = 0; i < count; i++) {
		if (strcmp(infos[i].name, volume_wanted.name))
			continue;
		*info = infos[i];
		named_count++;
	}
	free(infos);
	if (count < 0)
		return reason_of(count);
	if (named_count > 1)
		return "there are several volumes of this name on these servers: name the servers of one of them";
	return named_count ? NULL : "there is no such volume on these servers; see rdmabox volume list";
}

const char *volume_servers_check(struct rbx_context *ctx)
{
	struct rbx_volume_info info;
	const char *reason = find(ctx, &info);

	if (!reason && info.servers_there + info.servers_out < info.servers)
		return "a server was restarted";
	return reason;
}

json_t *volume_info_json(const struct rbx_volume_info *info)
{
	char id[VOLUME_ID_TEXT];

	snprintf(id, sizeof(id), "%016" PRIx64, info->volume_id);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "name",
			 info->name, "owner", info->owner, "volume_id", id, "volume_bytes",
			 (json_int_t)info->volume_bytes, "slab_bytes",
			 (json_int_t)info->slab_bytes, "reserved_bytes",
			 (json_int_t)info->reserved_bytes, "keep_s",
			 info->keep_s == UINT64_MAX ? json_null() :
						      json_integer((json_int_t)info->keep_s),
			 "is_open", (int)info->is_open, "writer", info->writer, "servers",
			 (int)info->servers, "servers_there", (int)info->servers_there,
			 "servers_out", (int)info->servers_out, "replicas", (int)info->replicas, "copies",
			 (int)info->copies, "checksums", (int)info->checksums);
}

static int print_json(const struct cli_command *command, json_t *json)
{
	return cli_json_write(command, json, "-") ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* ---- list -------------------------------------------------------------------------------*/

static const struct cli_option list_options[] = {
	VOLUME_POOL("servers to ask; each must answer"),
	VOLUME_JSON("A list of objects, each as `rdmabox volume show --json` prints it."),
	VOLUME_REACH,
};

static void widen(int *width, const char *text)
{
	*width = (int)strlen(text) > *width ? (int)strlen(text) : *width;
}

/* The owners have a column if there are several that the list may be of. */
static int owners_width(const struct rbx_volume_info *infos, int count)
{
	int width = (int)strlen("OWNER");
	bool is_wanted = false;

	for (int i = 0; i < count; i++) {
		widen(&width, infos[i].owner);
		is_wanted |= strcmp(infos[i].owner, volume_wanted.library.credential) != 0;
	}
	return is_wanted ? width : 0;
}

static void print_owner(int width, const char *owner)
{
	if (width)
		printf("%-*s  ", width, *owner ? owner : "-");
}

static int print_list(const struct rbx_volume_info *infos, int count)
{
	int width = (int)strlen("NAME"), owners = owners_width(infos, count);
	char size[32], keep[32], servers[32];

	for (int i = 0; i < count; i++)
		widen(&width, infos[i].name);
	if (count) {
		print_owner(owners, "OWNER");
		printf("%-*s  %12s  %7s  %7s  %s\n", width, "NAME", "SIZE", "KEEP", "SERVERS",
		       "OPEN BY");
	}
	for (int i = 0; i < count; i++) {
		snprintf(servers, sizeof(servers), "%u/%u", infos[i].servers_there,
			 infos[i].servers);
		print_owner(owners, infos[i].owner);
		printf("%-*s  %12s  %7s  %7s  %s\n", width, infos[i].name,
		       cli_size_print(infos[i].volume_bytes, size, sizeof(size)),
		       volume_keep_print(infos[i].keep_s, keep, sizeof(keep)), servers,
		       infos[i].is_open ? infos[i].writer : "-");
	}
	return CLI_EXIT_OK;
}

static int list(int argc, char **argv)
{
	struct rbx_volume_info *infos = NULL;
	struct rbx_context *ctx;
	json_t *json;
	int count, rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_list_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	count = ask(ctx, &infos);
	if (count < 0) {
		rc = cli_fail(&volume_list_command, "%s", reason_of(count));
	} else if (volume_wanted.as_json) {
		json = json_array();
		for (int i = 0; i < count; i++)
			json_array_append_new(json, volume_info_json(&infos[i]));
		rc = print_json(&volume_list_command, json);
	} else {
		rc = print_list(infos, count);
	}
	free(infos);
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_list_command = {
	.name = "volume list",
	.purpose = "list the volumes of servers",
	.notes = "SERVERS are those that were asked and have it, of those that it was made on. An admin\n"
		 "of the servers (rdmabox serve --secrets) sees the volumes of all owners.",
	CLI_OPTIONS(list_options),
	.run = list,
	.prepare = volume_prepare,
};

/* ---- show -------------------------------------------------------------------------------*/

static const struct cli_option show_options[] = {
	VOLUME_NAME,
	VOLUME_POOL("servers to ask; each must answer"),
	VOLUME_JSON("One object, with the keys of the table; `members` is a list of objects with "
		    "`incarnation`, `state` and `address`. `keep_s` is null if the volume is kept "
		    "for ever, and `is_open` is true or false."),
	VOLUME_REACH,
};

struct members {
	struct rbx_volume_member list[64]; /* a volume has no more */
	int count;
};

static const char *state_of(const struct rbx_volume_member *member)
{
	if (member->is_out)
		return "out";
	return member->is_there ? "in" : "missing";
}

static json_t *members_json(const struct members *members)
{
	char incarnation[VOLUME_ID_TEXT];
	json_t *list = json_array();

	for (int i = 0; i < members->count; i++) {
		const struct rbx_volume_member *member = &members->list[i];

		snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, member->incarnation);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "incarnation",
						      incarnation, "state", state_of(member),
						      "address", member->address));
	}
	return list;
}

static int show_json(const struct rbx_volume_info *info, const struct members *members)
{
	json_t *json = volume_info_json(info);

	json_object_set_new(json, "members", members_json(members));
	return print_json(&volume_show_command, json);
}

static int print_table(const struct rbx_volume_info *info, const struct members *members)
{
	char keep[32];

	printf("volume %s\n", info->name);
	printf("  %-14s %s\n", "owner", *info->owner ? info->owner : "-");
	printf("  %-14s %016" PRIx64 "\n", "volume_id", info->volume_id);
	printf("  %-14s %" PRIu64 "\n", "volume_bytes", info->volume_bytes);
	printf("  %-14s %" PRIu64 "\n", "slab_bytes", info->slab_bytes);
	printf("  %-14s %" PRIu64 "\n", "reserved_bytes", info->reserved_bytes);
	printf("  %-14s %s\n", "keep", volume_keep_print(info->keep_s, keep, sizeof(keep)));
	printf("  %-14s %s\n", "is_open", info->is_open ? "yes" : "no");
	printf("  %-14s %s\n", "writer", info->writer);
	printf("  %-14s %u\n", "servers", info->servers);
	printf("  %-14s %u\n", "servers_there", info->servers_there);
	printf("  %-14s %u\n", "servers_out", info->servers_out);
	printf("  %-14s %u\n", "replicas", info->replicas);
	printf("  %-14s %u\n", "copies", info->copies);
	printf("  %-14s %s\n", "checksums", info->checksums ? "yes" : "no");
	for (int i = 0; i < members->count; i++)
		printf("  %-14s %016" PRIx64 "  %-7s  %s\n", "member",
		       members->list[i].incarnation, state_of(&members->list[i]),
		       *members->list[i].address ? members->list[i].address : "-");
	return CLI_EXIT_OK;
}

static int show(int argc, char **argv)
{
	struct rbx_volume_info info;
	struct rbx_context *ctx;
	struct members members;
	const char *reason;
	int rc = CLI_EXIT_OK;

	ctx = volume_begin(&volume_show_command, argc, argv, &rc);
	if (!ctx)
		return rc;
	reason = find(ctx, &info);
	if (!reason) {
		members.count = rbx_volume_members_list(ctx, volume_wanted.pool, info.name,
							members.list, 64);
		if (members.count < 0)
			reason = rbx_last_error();
	}
	if (reason)
		rc = cli_fail(&volume_show_command, "%s", reason);
	else
		rc = volume_wanted.as_json ? show_json(&info, &members) :
					     print_table(&info, &members);
	rbx_close(ctx);
	return rc;
}

const struct cli_command volume_show_command = {
	.name = "volume show",
	.purpose = "show what the servers know of a volume",
	.notes = "writer is the program that opened it last; with is_open it has it open now. A member is a\n"
		 "server: its incarnation, whether it is in, out or missing, and its address.",
	CLI_OPTIONS(show_options),
	.run = show,
	.prepare = volume_prepare,
};
