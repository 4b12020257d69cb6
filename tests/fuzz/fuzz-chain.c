/* SPDX-License-Identifier: MIT */
/*
 * From the records of a sampled process to the file, with hostile modules.
 *
 * Byte 0 chooses options, byte 1 the number of modules. Each module has two bytes of length and
 * is a file in memory. The rest are records as the kernel writes them. A path "/0" to "/3"
 * means such a file, by its inode. Processes and threads get numbers that this machine cannot
 * have, for nothing shall be read of those that run here. The recording that is written must be
 * one that the reader takes, with each sample in it.
 */
#include <assert.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pm/chain-jit.h"
#include "pm/chain-spaces.h"
#include "pm/chain-tasks.h"
#include "src/perf/perf-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	CALL_GRAPH = 3, /* 1: frame pointers, 2: none, else DWARF */
	NO_STITCHING = 4,
	UNLIMITED = 8,
	ONE_BY_ONE = 16,
	RAW = 32, /* with a corpus */
	GENERATIONS = 64, /* of stacks, one for each batch */
	SHRINKS = 128, /* each EXIT record cuts the modules in half */

	MODULES_MAX = 4,
	NOBODY = 0x7fff0000, /* beyond PID_MAX_LIMIT */
	TASKS = 8,
	STACK_BYTES = 8192,
	HELD_MAX = 32, /* samples that wait for callers */
};

/* A sample that waits, as in src/pmrec/hold.c. */
struct held {
	struct pm_file_sample sample;
	struct pm_chain chain;
	struct pm_chain_names names;
};

struct world {
	uint8_t options;
	int modules[MODULES_MAX];
	size_t modules_len;
	int output, corpus; /* files in memory */
	struct pm_procs *procs;
	struct pm_chain_modules chain_modules;
	struct pm_file_writer *writer;
	struct pm_chain_raw *raw;
	struct pm_chain_jit *jit;
	struct pm_chains *chains;
	struct pm_chain_threads threads;
	struct pm_record_layout layout;
	/* Samples that are unwound side by side, and the bytes of their records. */
	struct pm_record batch[PM_CHAIN_AHEAD_MAX];
	void *bytes[PM_CHAIN_AHEAD_MAX];
	size_t batch_len;
	struct held held[HELD_MAX];
	size_t held_len;
	uint64_t samples;
};

static const struct pm_file_event event = { .name = "e",
					    .requested = "e",
					    .actual = "e",
					    .modifiers = "",
					    .unit = "events",
					    .rate = 1 };

/* pm_chain_jit_source.warn */
static void warn(void *user, const char *text)
{
	struct world *world = user;

	pm_file_write_note(world->writer, &(struct pm_file_note){ .text = text });
}

/* ---- the world -------------------------------------------------------------------------- */

static int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("fuzz-chain", MFD_CLOEXEC);

	if (fd < 0 || (len > 0 && write(fd, data, len) != (ssize_t)len))
		abort();
	return fd;
}

static void name_fd(int fd, char ret[32])
{
	snprintf(ret, 32, "/proc/self/fd/%d", fd);
}

static enum pm_call_graph call_graph_of(uint8_t options)
{
	switch (options & CALL_GRAPH) {
	case 1:
		return PM_CALL_GRAPH_FP;
	case 2:
		return PM_CALL_GRAPH_NONE;
	default:
		return PM_CALL_GRAPH_DWARF;
	}
}

static void open_files(struct world *world)
{
	struct pm_file_header header = { .version = PM_FILE_VERSION,
					 .pmrec = "0",
					 .created = "2024-05-06T07:08:09Z",
					 .clock = "monotonic",
					 .events = &event,
					 .events_len = 1,
					 .options = { .call_graph = "dwarf" } };
	char path[32];

	world->output = memory_file(NULL, 0);
	world->corpus = memory_file(NULL, 0);
	name_fd(world->output, path);
	if (pm_file_writer_open(&world->writer, path, NULL) < 0 ||
	    pm_file_write_header(world->writer, &header) < 0)
		abort();
	name_fd(world->corpus, path);
	if ((world->options & RAW) &&
	    pm_chain_raw_open(&world->raw, path, STACK_BYTES, world->procs,
			      &world->chain_modules, NULL) < 0)
		abort();
}

static void begin(struct world *world)
{
	struct pm_chain_source source = { .modules = &world->chain_modules,
					  .call_graph = call_graph_of(world->options),
					  .stitch = !(world->options & NO_STITCHING),
					  .look = !(world->options & NO_STITCHING),
					  .limited = !(world->options & UNLIMITED) };

	world->layout = pm_attr_layout(
		&(struct pm_attr_shape){ .call_graph = source.call_graph });
	world->procs = source.procs = pm_procs_new(pm_chain_space_free);
	pm_chain_modules_init(&world->chain_modules);
	world->chain_modules.fds_max = 2 * MODULES_MAX;
	if (!world->procs)
		abort();
	open_files(world);
	source.writer = world->writer;
	source.raw = world->raw;
	world->jit = source.jit = pm_chain_jit_new(
		&(struct pm_chain_jit_source){ .procs = world->procs,
					       .modules = &world->chain_modules,
					       .writer = world->writer,
					       .symbols = true,
					       .warn = warn,
					       .user = world });
	world->chains = pm_chains_new(&source);
	if (!world->jit || !world->chains)
		abort();
}

/* ---- records ---------------------------------------------------------------------------- */

static void write_held(struct world *world)
{
	for (size_t i = 0; i < world->held_len; i++) {
		struct held *held = &world->held[i];
		struct pm_file_sample *sample = &held->sample;

		if (pm_chains_settle(world->chains, &held->chain) < 0)
			abort();
		sample->stack = held->chain.stack;
		sample->stop = held->chain.stop == PM_UNW_STOP_ROOT
				       ? NULL
				       : pm_chain_stop_name(held->chain.stop);
		if (pm_chain_threads_name(&world->threads, world->writer, sample->pid,
					  sample->tid, &held->names, sample->time) < 0 ||
		    pm_file_write_sample(world->writer, sample) < 0)
			abort();
		world->samples++;
	}
	world->held_len = 0;
}

static uint64_t storable(uint64_t value)
{
	return value <= INT64_MAX ? value : INT64_MAX;
}

static struct pm_chain_tasks tasks_of(struct world *world)
{
	return (struct pm_chain_tasks){ .procs = world->procs,
					.chains = world->chains,
					.jit = world->jit,
					.modules = &world->chain_modules };
}

static void add_sample(struct world *world, const struct pm_record *record)
{
	struct held *held = &world->held[world->held_len];
	struct pm_chain_tasks tasks = tasks_of(world);

	if (pm_chains_add(world->chains, record, &held->chain) < 0 ||
	    pm_chain_tasks_names(&tasks, record, &held->names) < 0)
		abort();
	held->sample =
		(struct pm_file_sample){ .time = storable(record->time),
					 .pid = record->pid,
					 .tid = record->tid,
					 .cpu = record->cpu,
					 .period = storable(record->sample.period) };
	world->held_len++;
	/* Those without a promise do not change any more. */
	if (world->held_len == HELD_MAX || held->chain.promise == 0)
		write_held(world);
}

static void release_batch(struct world *world)
{
	if (!(world->options & ONE_BY_ONE))
		pm_chains_ahead(world->chains, world->batch, world->batch_len);
	for (size_t i = 0; i < world->batch_len; i++)
		add_sample(world, &world->batch[i]);
	pm_chains_ahead(world->chains, NULL, 0);
	for (size_t i = 0; i < world->batch_len; i++)
		free(world->bytes[i]);
	world->batch_len = 0;
	if (!(world->options & GENERATIONS))
		return;
	if (pm_file_writer_new_stacks(world->writer) < 0)
		abort();
	pm_chains_forget_stacks(world->chains);
}

/* 0 is the idle task, UINT32_MAX a task that has ended. */
static uint32_t nobody(uint32_t id)
{
	return id == 0 || id == UINT32_MAX ? id : NOBODY + id % TASKS;
}

/* A path of a module becomes that of its file. */
static void find_module(const struct world *world, struct pm_mmap_record *mmap,
			char path[32])
{
	size_t index = mmap->path[0] == '/' ? (size_t)mmap->path[1] - '0' : MODULES_MAX;
	struct stat st;

	if (index >= world->modules_len || fstat(world->modules[index], &st) < 0)
		return;
	name_fd(world->modules[index], path);
	mmap->path = path;
	mmap->major = major(st.st_dev);
	mmap->minor = minor(st.st_dev);
	mmap->inode = st.st_ino;
}

static void cut_modules(const struct world *world)
{
	struct stat st;

	for (size_t i = 0; i < world->modules_len; i++)
		if (fstat(world->modules[i], &st) < 0 ||
		    ftruncate(world->modules[i], st.st_size / 2) < 0)
			abort();
}

/* Takes @bytes. */
static void add_record(struct world *world, struct pm_record *record, void *bytes)
{
	struct pm_chain_tasks tasks = tasks_of(world);
	char path[32];

	record->pid = nobody(record->pid);
	record->tid = nobody(record->tid);
	if (record->type == PERF_RECORD_SAMPLE) {
		world->bytes[world->batch_len] = bytes;
		world->batch[world->batch_len++] = *record;
		if (world->batch_len == PM_CHAIN_AHEAD_MAX)
			release_batch(world);
		return;
	}
	release_batch(world);
	if (record->type == PERF_RECORD_EXIT && (world->options & SHRINKS))
		cut_modules(world);
	if (record->type == PERF_RECORD_FORK) {
		record->fork.parent_pid = nobody(record->fork.parent_pid);
		record->fork.parent_tid = nobody(record->fork.parent_tid);
	}
	if (record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2)
		find_module(world, &record->mmap, path);
	if (pm_chain_tasks_record(&tasks, record) == -ENOMEM)
		abort();
	free(bytes);
}

static void read_records(struct world *world, const uint8_t *data, size_t size)
{
	while (size >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		struct pm_record record;
		void *bytes;

		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			header.size = (uint16_t)(size < 65528 ? size : 65528);
		bytes = malloc(header.size);
		if (!bytes)
			abort();
		memcpy(bytes, data, header.size);
		memcpy(bytes, &header, sizeof(header));
		if (pm_record_decode(bytes, &world->layout, &record, NULL) == 0)
			add_record(world, &record, bytes);
		else
			free(bytes);
		data += header.size;
		size -= header.size;
	}
	release_batch(world);
	write_held(world);
}

/* ---- the end ---------------------------------------------------------------------------- */

static void end(struct world *world)
{
	const struct pm_file_footer footer = {
		.samples = world->samples,
		.events =
			(struct pm_file_footer_event[]){ { .samples = world->samples } },
		.events_len = 1,
	};

	if (pm_chain_jit_finish(world->jit, PM_CHAIN_JIT_END_NS) < 0 ||
	    pm_file_write_footer(world->writer, &footer) < 0 ||
	    pm_file_writer_close(world->writer, NULL) < 0 ||
	    pm_chain_raw_close(world->raw, true, NULL) < 0)
		abort();
	pm_chains_free(world->chains);
	pm_chain_jit_free(world->jit);
	pm_chain_threads_release(&world->threads);
	pm_chain_modules_release(&world->chain_modules);
	pm_procs_free(world->procs);
	for (size_t i = 0; i < world->modules_len; i++)
		close(world->modules[i]);
	close(world->corpus);
}

/* Whether the file is whole, and has as many samples as were added. */
static void read_back(const struct world *world)
{
	struct pm_file_reader *reader;
	struct pm_file_record record;
	uint64_t samples = 0;
	struct stat st;
	void *text;
	int ret;

	if (fstat(world->output, &st) < 0)
		abort();
	text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, world->output, 0);
	if (text == MAP_FAILED ||
	    pm_file_reader_open_memory(&reader, text, (size_t)st.st_size, NULL) < 0)
		abort();
	while ((ret = pm_file_reader_next(reader, &record, NULL)) > 0)
		samples += record.type == PM_FILE_SAMPLE;
	assert(ret == 0);
	assert(!pm_file_reader_cut(reader));
	assert(samples == world->samples);
	pm_file_reader_free(reader);
	munmap(text, (size_t)st.st_size);
	close(world->output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *world;
	size_t modules;

	if (size < 2)
		return 0;
	world = calloc(1, sizeof(*world));
	if (!world)
		abort();
	world->options = data[0];
	modules = data[1] % (MODULES_MAX + 1);
	data += 2;
	size -= 2;
	while (world->modules_len < modules && size >= 2) {
		size_t len = data[0] | (size_t)data[1] << 8;

		data += 2;
		size -= 2;
		len = len < size ? len : size;
		world->modules[world->modules_len++] = memory_file(data, len);
		data += len;
		size -= len;
	}
	begin(world);
	read_records(world, data, size);
	end(world);
	read_back(world);
	free(world);
	return 0;
}
