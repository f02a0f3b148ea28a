/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of rdmabox page attach and detach, and the checks between them.
 */
#include <string.h>

#include "cli/page/page.h"
#include "cli/reach.h"

struct page_wanted page_wanted = {
	.name = "page",
	.mode = "hybrid",
	.checksums = "on",
	.replicas = 1,
	.queue_pairs = 1,
	.queue_depth = 128,
	.peer_timeout_ms = 5000,
	.backup_buffer_bytes = 16 << 20,
	.priority = PAGE_SWAP_PRIORITY_MAX,
};

static const struct cli_option attach_options[] = {
	{ "pool", "POOL", "memory servers, by numbers and not by names",
	  cli_set_text, page_wanted.pool, .max = sizeof(page_wanted.pool),
	  .is_required = true, .argument = CLI_ARGUMENT_ADDRESS,
	  .details = CLI_POOL_DETAILS " It is read once. All servers are reached through RDMA "
		     "devices, one or several." },
	{ "size", "SIZE", "size of the device, a multiple of 4096 bytes", cli_set_size,
	  &page_wanted.size_bytes, .min = 4096, .max = 1ull << 46,
	  .is_required = true, .or_next = true },
	{ "volume", "NAME", "attach a volume that its servers keep; see `rdmabox volume`",
	  cli_set_text, page_wanted.volume, .max = sizeof(page_wanted.volume),
	  .is_required = true,
	  .details = "It is as it was made, so size, copies and checksums are not given. What is "
		     "on it is there after it was detached, and at any other machine. One machine "
		     "or program has it open at a time." },
	{ "take-over", NULL, "also if another client has the volume open, which is shut out",
	  cli_set_flag, .field = &page_wanted.take_over,
	  .details = "It loses what it has not written yet." },
	{ "name", "NAME", "name of the volume", cli_set_text, page_wanted.name,
	  .group = "Volume", .max = sizeof(page_wanted.name),
	  .details = "The rule of udev links it as /dev/rdmabox/NAME." },
	{ "replicas", "N", "copies of each page, on as many servers", cli_set_number,
	  &page_wanted.replicas, .min = 1, .max = 3 },
	{ "reserve", NULL, "borrow all memory now, not when it is written to",
	  cli_set_flag, .field = &page_wanted.reserve,
	  .details = "What is discarded keeps its memory then." },
	{ "checksums", "on|off", "keep a CRC32C of each 4 KiB page here", cli_set_word,
	  page_wanted.checksums, .max = sizeof(page_wanted.checksums),
	  .words = "on|off",
	  .details = "The checksums take 1 MiB of this machine's memory for each GiB. "
		     "Requests whose memory is not aligned to 4096 bytes are copied then; only "
		     "programs that use O_DIRECT make such requests." },
	{ "backup", "DEVICE", "a disk behind it, in case all servers of a page are lost",
	  cli_set_text, page_wanted.backup, .max = sizeof(page_wanted.backup),
	  .argument = CLI_ARGUMENT_FILE,
	  .details = "A disk or partition of this machine that nobody else uses, no smaller "
		     "than --size, such as `/dev/sdb`. Its contents are overwritten. A file "
		     "behind a loop device will not do for swap: to write to it may take "
		     "memory." },
	{ "backup-buffer", "SIZE", "memory for what is yet to be written to the disk",
	  cli_set_size, &page_wanted.backup_buffer_bytes, .min = 128 << 10,
	  .max = 1 << 30 },
	{ "swap", NULL, "make the device swap, and use it; implies --reserve",
	  cli_set_flag, .field = &page_wanted.swap, .group = "Swap" },
	{ "priority", "N", "priority of the swap; the highest is filled first",
	  cli_set_number, &page_wanted.priority, .min = 0,
	  .max = PAGE_SWAP_PRIORITY_MAX },
	{ "mode", "single|doorbell|merge|hybrid",
	  "how requests are batched\n"
	  "single: a work request for each request\n"
	  "doorbell: chained, not merged\n"
	  "merge: merged, not chained\n"
	  "hybrid: both",
	  cli_set_word, page_wanted.mode, .group = "Requests",
	  .max = sizeof(page_wanted.mode), .words = "single|doorbell|merge|hybrid" },
	{ "queue-depth", "N", "reads outstanding at a time, and writes", cli_set_number,
	  &page_wanted.queue_depth, .min = 1, .max = 1024,
	  .details = "Of all processors together. A read never waits for the place of a "
		     "write. Each of them takes about 30 KiB of kernel memory." },
	{ "qps", "N", "queue pairs to each server", cli_set_number,
	  &page_wanted.queue_pairs, .min = 1, .max = 16 },
	{ "peer-timeout", "MS", "time until a silent server is given up",
	  cli_set_number, &page_wanted.peer_timeout_ms, .min = 400, .max = 600000,
	  .unit = "ms" },
	CLI_COPY_RATE(page_wanted),
	CLI_CRASH_COPY(page_wanted),
	{ "secret-file", "FILE", "file with the secret shared with the servers",
	  cli_set_text, page_wanted.secret_file, .group = "Connection",
	  .max = sizeof(page_wanted.secret_file), .argument = CLI_ARGUMENT_FILE,
	  .or_next = true,
	  .details = "The secret is 16 to 4095 bytes, in a file that gives no rights to "
		     "others." },
	{ "insecure", NULL, "use no secret, even beyond loopback", cli_set_flag,
	  .field = &page_wanted.insecure },
	CLI_REACH_CREDENTIAL(page_wanted),
};

const struct cli_command page_attach_command = {
	.name = "page attach",
	.purpose = "attach other machines' memory as a block device",
	.notes = "Prints the name of the device. SIZE takes the suffixes K, M, G and T (1024).",
	CLI_OPTIONS(attach_options),
	.run = page_attach,
};

static const struct cli_option detach_options[] = {
	{ "name", "NAME", "name of the volume", cli_set_text, page_wanted.name,
	  .max = sizeof(page_wanted.name) },
	{ "swap", NULL, "first read back what is swapped out to it", cli_set_flag,
	  .field = &page_wanted.swap,
	  .details = "There must be memory for that." },
};

const struct cli_command page_detach_command = {
	.name = "page detach",
	.purpose = "detach a device, and give its memory back",
	.notes = "What is on the device is lost, unless it is a named volume (attach --volume).",
	CLI_OPTIONS(detach_options),
	.run = page_detach,
};

int page_name_check(const struct cli_command *command, const char *name)
{
	if (*name && *name != '.' && !strchr(name, '/'))
		return 0;
	return cli_fail(command, "--name '%s' is no name for a volume: it must not begin with a dot, "
				 "have a slash in it, or be empty", name);
}

int page_find(const struct cli_command *command, const char *name)
{
	int rc = page_name_check(command, name);

	if (rc)
		return rc;
	if (page_prepare(command))
		return CLI_EXIT_USAGE;
	if (page_exists(name))
		return CLI_EXIT_OK;
	return cli_fail(command, "there is no volume %s; see rdmabox page list", name);
}

/* A named volume is as it was made, and what is on it is kept. */
static int volume_check(void)
{
	const struct page_wanted *w = &page_wanted;

	if (!*w->volume && w->take_over)
		return cli_fail(&page_attach_command, "--take-over needs --volume NAME");
	if (!*w->volume && !w->size_bytes)
		return cli_fail(&page_attach_command,
				"no size; add --size SIZE, or --volume NAME");
	if (*w->volume && (w->size_bytes || w->replicas != 1 || strcmp(w->checksums, "on")))
		return cli_fail(&page_attach_command,
				"--volume goes with none of --size, --replicas and --checksums: a "
				"named volume is as it was made");
	if (*w->volume && (w->reserve || *w->backup || w->swap))
		return cli_fail(&page_attach_command,
				"--volume goes with none of --reserve, --backup and --swap: what is "
				"on a named volume is kept");
	return CLI_EXIT_OK;
}

int page_options_check(void)
{
	if (!*page_wanted.pool)
		return cli_fail(&page_attach_command,
				"no servers; add --pool IP:PORT[,IP:PORT...]");
	if (volume_check())
		return CLI_EXIT_USAGE;
	if (page_wanted.size_bytes % 4096)
		return cli_fail(&page_attach_command,
				"--size is no multiple of 4096 bytes");
	if (*page_wanted.secret_file && page_wanted.insecure)
		return cli_fail(&page_attach_command,
				"--secret-file and --insecure exclude each other");
	if (*page_wanted.credential && !*page_wanted.secret_file)
		return cli_fail(&page_attach_command,
				"--credential names a secret; add its --secret-file");
	return page_name_check(&page_attach_command, page_wanted.name);
}
