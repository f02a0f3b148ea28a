// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An external I/O engine for fio: a job reads and writes a volume.
 *
 * fio calls get_ioengine() when it loads the engine. Then it calls setup() for each job,
 * in the parent; this checks the options and opens nothing. Then, in the process or
 * thread of the job, it calls init(), which opens the volume, io_u_init() for each unit,
 * and post_init() when the buffers exist. queue(), commit() and getevents() make the
 * load, and io_u_free() and cleanup() end it.
 *
 * - A batch of fio is a batch of the library (requests.c).
 * - A write that has completed is on all live replicas. So a sync is a fence: it waits
 *   until everything that this job has submitted has ended.
 * - A trim is refused unless the volume is on_demand. Then whole slabs go back to their
 *   servers, and parts of slabs stay as they are.
 * - A named volume is as long as it is: setup() asks the servers (named.c).
 *
 * The layout of what fio and an engine share depends on the version of fio's headers.
 * FIO_IOOPS_VERSION, which fio checks, does not change with all of it. So the engine
 * compares the versions itself and refuses to work with another one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>

#include "job_options.h"
#include "named.h"
#include "requests.h"
#include "share.h"

#define PAGE_BYTES 4096ull

/* The state of one job. */
struct job {
	struct share *share;
	struct requests *requests;
	struct rbx_options options;
	uint64_t bytes; /* the size that the volume needs */
};

static struct fio_file *the_file(struct thread_data *td)
{
	if (!td->files_index) {
		add_file(td, "rdmabox", 0, 0);
		td->o.nr_files = td->o.nr_files ? td->o.nr_files : 1;
		td->o.open_files++;
	}
	return td->files[0];
}

/* The end of the range that the job's options name; 0: they do not tell. False: it does not
 * fit into 64 bits, or not once it is rounded up to a page. */
static bool end_of_job(const struct thread_data *td, uint64_t *end)
{
	const struct thread_options *o = &td->o;
	uint64_t rounded;

	*end = 0;
	if (!o->size || o->start_offset_percent || o->offset_increment_percent)
		return true;
	return !__builtin_mul_overflow((uint64_t)td->subjob_number, o->offset_increment, end) &&
	       !__builtin_add_overflow(*end, o->start_offset, end) &&
	       !__builtin_add_overflow(*end, o->size, end) &&
	       !__builtin_add_overflow(*end, PAGE_BYTES - 1, &rounded);
}

/* Of a new volume. Returns 0 or -EINVAL. */
static int choose_bytes(const struct job_options *options, uint64_t end, uint64_t *bytes)
{
	*bytes = options->volume_bytes;
	if (!*bytes)
		*bytes = (end + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	if (!*bytes) {
		log_err("rdmabox: how much to borrow? Give volume=, or size= in bytes\n");
		return -EINVAL;
	}
	if (end > *bytes) {
		log_err("rdmabox: the job ends at %llu, beyond volume=%llu\n",
			(unsigned long long)end, (unsigned long long)*bytes);
		return -EINVAL;
	}
	return 0;
}

/* Of a volume that there is. Returns 0 or -errno. */
static int ask_bytes(const struct job_options *options, const struct rbx_options *library,
		     uint64_t end, uint64_t *bytes)
{
	int err = named_bytes_ask(library, options->servers, options->volume_name, bytes);

	if (!err && end > *bytes) {
		log_err("rdmabox: the job ends at %llu, beyond the %llu bytes of volume %s; a smaller size= or offset=, or a volume that grows (rdmabox volume grow), would do\n",
			(unsigned long long)end, (unsigned long long)*bytes, options->volume_name);
		return -EINVAL;
	}
	return err;
}

/* Finds the size of the volume. Returns 0 or -errno. */
static int find_bytes(const struct thread_data *td, const struct rbx_options *library,
		      uint64_t *bytes)
{
	const struct job_options *options = td->eo;
	uint64_t end;

	if (!end_of_job(td, &end)) {
		log_err("rdmabox: offset, offset_increment and size add up to more than there can be\n");
		return -EINVAL;
	}
	return job_options_is_named(options) ? ask_bytes(options, library, end, bytes) :
					       choose_bytes(options, end, bytes);
}

/* A named volume is opened as it was made, and by one program at a time. */
static int check_name(const struct thread_data *td)
{
	const struct job_options *options = td->eo;
	const char *error = NULL;

	if (!job_options_is_named(options) && options->take_over)
		error = "take_over=1 needs volume_name=NAME";
	else if (!job_options_is_named(options))
		return 0;
	else if (options->volume_bytes)
		error = "volume_name and volume exclude each other: a named volume is as long as it was made";
	else if (options->replicas != 1 || options->checksums || options->on_demand)
		error = "volume_name goes with neither replicas nor checksums nor on_demand: a named volume has what it was made with";
	else if (td->o.numjobs > 1 && !td->o.use_thread)
		error = "volume_name with numjobs: one process at a time has a named volume open; thread=1 makes the jobs threads of one";
	if (!error)
		return 0;
	log_err("rdmabox: %s\n", error);
	return -EINVAL;
}

/* Checks trims, and the options that checksums need. */
static int check_load(struct thread_data *td)
{
	const struct job_options *options = td->eo;

	if ((td_trim(td) || td->o.trim_backlog) && !options->on_demand) {
		log_err("rdmabox: trim needs on_demand=1: without it a volume keeps its memory until it is closed\n");
		return -EINVAL;
	}
	if (td->o.trim_backlog && td->o.trim_zero) {
		log_err("rdmabox: trim_backlog with trim_verify_zero=1: a trim leaves parts of slabs as they are, so what is read then need not be zeros\n");
		return -EINVAL;
	}
	if (options->checksums && (td_min_bs(td) % PAGE_BYTES || td->o.start_offset % PAGE_BYTES ||
				   td->o.offset_increment % PAGE_BYTES)) {
		log_err("rdmabox: checksums=1 wants block sizes and offsets that are multiples of 4k\n");
		return -EINVAL;
	}
	return 0;
}

static int check_job(struct thread_data *td, const struct rbx_options *options)
{
	const struct job_options *job = td->eo;
	uint64_t longest = (uint64_t)(options->requests_max / 2 - 1) * options->fragment_bytes;

	if (!job->servers || !*job->servers) {
		log_err("rdmabox: no memory servers; give servers=HOST:PORT,HOST:PORT\n");
		return -EINVAL;
	}
	if (td->o.nr_files > 1) {
		log_err("rdmabox: nrfiles=%u: a volume is one file\n", td->o.nr_files);
		return -EINVAL;
	}
	if (longest > UINT32_MAX)
		longest = UINT32_MAX;
	if (td_max_bs(td) > longest) {
		log_err("rdmabox: block size %llu: at most %llu is possible\n",
			(unsigned long long)td_max_bs(td), (unsigned long long)longest);
		return -EINVAL;
	}
	return check_name(td) ? -EINVAL : check_load(td);
}

static int join(struct thread_data *td, struct job *job)
{
	const struct job_options *options = td->eo;
	struct share_wish wish = {
		.servers = options->servers,
		.options = job->options,
		.bytes = job->bytes,
		.tell_counters = options->counters,
		.is_thread = td->o.use_thread,
	};

	job_options_volume(options, &wish.volume);
	job->share = share_join(&wish);
	return job->share ? 0 : -ENOMEM;
}

/* Returns the job; or NULL after an error message. */
static struct job *make_job(struct thread_data *td)
{
	struct job *job = calloc(1, sizeof(*job));
	int err = -ENOMEM;

	if (job)
		err = job_options_library(td->eo, &job->options);
	if (!err)
		err = check_job(td, &job->options);
	if (!err)
		err = find_bytes(td, &job->options, &job->bytes);
	if (!err)
		err = join(td, job);
	if (!err)
		return job;
	free(job);
	td_verror(td, -err, "rdmabox setup");
	return NULL;
}

/* Called twice with create_serialize=0: by init(), and after that by fio. */
static int rdmabox_setup(struct thread_data *td)
{
	struct job *job = td->io_ops_data ? td->io_ops_data : make_job(td);
	struct fio_file *file = the_file(td);

	if (!job)
		return 1;
	td->io_ops_data = job;
	file->filetype = FIO_TYPE_FILE;
	file->real_file_size = job->bytes;
	return 0;
}

static int start(struct thread_data *td, struct job *job)
{
	const struct job_options *options = td->eo;
	struct requests_target target = {
		.fragments_max = job->options.requests_max,
		.fragment_bytes = job->options.fragment_bytes,
		.read_flags = options->urgent_reads ? RBX_URGENT : 0,
	};
	int err = share_open(job->share, job->bytes);

	if (err)
		return err;
	target.ctx = share_context(job->share);
	target.volume = share_volume(job->share);
	job->requests = requests_create(&target, td->o.iodepth);
	return job->requests ? 0 : -ENOMEM;
}

/* After a failure fio calls cleanup(). */
static int rdmabox_init(struct thread_data *td)
{
	int err = 0;

	if (!td->io_ops_data && rdmabox_setup(td))
		return 1;
	err = start(td, td->io_ops_data);
	if (err)
		td_verror(td, -err, "rdmabox init");
	return err ? 1 : 0;
}

static int rdmabox_io_u_init(struct thread_data *td, struct io_u *io_u)
{
	struct job *job = td->io_ops_data;

	requests_attach(job->requests, io_u);
	return 0;
}

static int rdmabox_post_init(struct thread_data *td)
{
	struct job *job = td->io_ops_data;
	int err = 0;

	if (job_options_register_buffers(td->eo) && td->orig_buffer)
		err = requests_register(job->requests, td->orig_buffer, td->orig_buffer_size);
	if (err) {
		log_err("rdmabox: %s\n", rbx_last_error());
		td_verror(td, -err, "rdmabox buffers");
	}
	return err ? 1 : 0;
}

/* fio frees the buffers after the units. */
static void rdmabox_io_u_free(struct thread_data *td, struct io_u *io_u)
{
	struct job *job = td->io_ops_data;

	(void)io_u;
	if (job && job->requests)
		requests_release(job->requests);
}

static void rdmabox_cleanup(struct thread_data *td)
{
	struct job *job = td->io_ops_data;

	if (!job)
		return;
	if (job->requests)
		requests_fence(job->requests);
	requests_destroy(job->requests);
	share_leave(job->share);
	free(job);
	td->io_ops_data = NULL;
}

static enum fio_q_status trim(struct thread_data *td, struct job *job, struct io_u *io_u)
{
	int err = rbx_volume_discard(share_volume(job->share), io_u->offset,
				     io_u->xfer_buflen);

	if (err) {
		log_err("rdmabox: %s\n", rbx_last_error());
		io_u->error = (unsigned int)-err;
		td_verror(td, -err, "trim");
	}
	return FIO_Q_COMPLETED;
}

static enum fio_q_status rdmabox_queue(struct thread_data *td, struct io_u *io_u)
{
	struct job *job = td->io_ops_data;

	fio_ro_check(td, io_u);
	if (io_u->ddir == DDIR_TRIM)
		return trim(td, job, io_u);
	if (ddir_sync(io_u->ddir)) {
		/* Requests that were put off have to go first: fio calls commit(). */
		if (requests_queued(job->requests))
			return FIO_Q_BUSY;
		requests_fence(job->requests);
		return FIO_Q_COMPLETED;
	}
	if (io_u->ddir != DDIR_READ && io_u->ddir != DDIR_WRITE) {
		io_u->error = EINVAL;
		return FIO_Q_COMPLETED;
	}
	requests_queue(job->requests, io_u);
	return FIO_Q_QUEUED;
}

/* The library has taken a unit: its latency counts from here. */
static void mark_issued(struct thread_data *td, struct io_u *io_u)
{
	if (!fio_fill_issue_time(td))
		return;
	fio_gettime(&io_u->issue_time, NULL);
	if (td->o.read_iolog_file)
		td->last_issue = io_u->issue_time;
	io_u_queued(td, io_u);
}

static int rdmabox_commit(struct thread_data *td)
{
	struct job *job = td->io_ops_data;
	unsigned int count = requests_queued(job->requests);

	if (!count)
		return 0;
	requests_submit(job->requests, td, mark_issued);
	io_u_mark_submit(td, count);
	return 0;
}

static int rdmabox_getevents(struct thread_data *td, unsigned int min, unsigned int max,
			     const struct timespec *timeout)
{
	struct job *job = td->io_ops_data;

	return (int)requests_reap(job->requests, min, max, timeout);
}

static struct io_u *rdmabox_event(struct thread_data *td, int at)
{
	struct job *job = td->io_ops_data;

	return requests_event(job->requests, (unsigned int)at);
}

/* There is no file, neither to open nor to remove. */
static int no_file(struct thread_data *td, struct fio_file *file)
{
	(void)td, (void)file;
	return 0;
}

static struct ioengine_ops engine = {
	.name = "rdmabox",
	.version = FIO_IOOPS_VERSION,
	/* fio's offloaded submission would use units that were made for another thread. */
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_ASYNCIO_SYNC_TRIM |
		 FIO_ASYNCIO_SETS_ISSUE_TIME | FIO_NO_OFFLOAD,
	.setup = rdmabox_setup,
	.init = rdmabox_init,
	.post_init = rdmabox_post_init,
	.queue = rdmabox_queue,
	.commit = rdmabox_commit,
	.getevents = rdmabox_getevents,
	.event = rdmabox_event,
	.cleanup = rdmabox_cleanup,
	.open_file = no_file,
	.close_file = no_file,
	.invalidate = no_file,
	.unlink_file = no_file,
	.io_u_init = rdmabox_io_u_init,
	.io_u_free = rdmabox_io_u_free,
	.options = job_option_table,
	.option_struct_size = sizeof(struct job_options),
};

void get_ioengine(struct ioengine_ops **ops);

/* fio looks for this when it has loaded the engine; it takes NULL for a failure. */
__attribute__((visibility("default"))) void get_ioengine(struct ioengine_ops **ops)
{
	if (!strcmp(fio_version_string, RDMABOX_FIO_VERSION)) {
		*ops = &engine;
		return;
	}
	log_err("rdmabox: this engine was built for %s, and this is %s; build it anew with the headers of that version\n",
		RDMABOX_FIO_VERSION, fio_version_string);
	*ops = NULL;
}
