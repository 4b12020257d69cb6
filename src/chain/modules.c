/* SPDX-License-Identifier: MIT */
#include "pm/chain-modules.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tables.h"

enum {
	/* A process that maps ever new files must not use up our descriptors and
	 * memory. */
	MODULES_OPEN_MAX = 512,
	ROOM_SHARE = 8, /* if there is no room, one of this many files is closed */
	/* Samples wait in the rings meanwhile; about half a second. */
	CRC_BYTES_MAX = 1 << 28,
	BUILD_ID_HEX_BYTES = 2 * PM_MODULE_BUILD_ID_MAX + 1,
};

/* What is needed to find the debug file of a module when the unwinder asks for it. */
struct pm_chain_gap {
	const struct pm_module *module;
	int fd; /* borrowed */
	uint64_t *crc_bytes_left;
};

void pm_chain_modules_init(struct pm_chain_modules *modules)
{
	*modules = (struct pm_chain_modules){ .kernel_file_id = PM_FILE_NONE,
					      .crc_bytes_left = CRC_BYTES_MAX,
					      .live_since_ns = UINT64_MAX,
					      .live_pages_left = UINT32_MAX };
	pm_chain_vdso_own(&modules->vdso);
}

void pm_chain_modules_raise_limit(struct pm_chain_modules *modules)
{
	struct rlimit limit, raised;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	raised = limit;
	raised.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
		limit = raised;
	/* The rest is for events, helpers and files opened briefly. */
	if (limit.rlim_cur / 3 < MODULES_OPEN_MAX)
		modules->fds_max = limit.rlim_cur / 3;
	else
		modules->fds_max = MODULES_OPEN_MAX;
}

int pm_chain_modules_make_tables_aside(struct pm_chain_modules *modules)
{
	if (!modules->tables)
		modules->tables = pm_chain_tables_new();
	if (!modules->tables)
		return -ENOMEM;
	return 0;
}

int pm_chain_modules_tables_error(const struct pm_chain_modules *modules)
{
	if (modules->tables)
		return pm_chain_tables_error(modules->tables);
	return 0;
}

void pm_chain_modules_release(struct pm_chain_modules *modules)
{
	pm_chain_tables_free(modules->tables);
	modules->tables = NULL;
	for (size_t i = 0; i < modules->list.len; i++) {
		struct pm_chain_module *module = &modules->list.data[i];

		if (!module->unwind)
			pm_cleanup_close(&module->fd);
		pm_unw_module_free(module->unwind);
		free(module->gap);
	}
	free(modules->live_pages);
	pm_vec_release(&modules->list);
	pm_vec_release(&modules->by_file_id);
	pm_chain_vdso_release(&modules->vdso32);
}

/* pm_unw_open_debug_fn */
static int open_debug(void *user)
{
	const struct pm_chain_gap *gap = user;

	return pm_debug_find(gap->fd, &(struct pm_debug_search){
					      .pid = gap->module->seen_pid,
					      .path = gap->module->identity.path,
					      .crc_bytes_left = gap->crc_bytes_left });
}

/* If memory runs out, the debug file is not looked for. */
static void want_debug(struct pm_chain_modules *modules, const struct pm_module *module,
		       struct pm_chain_module *out)
{
	if (!out->gap)
		out->gap = malloc(sizeof(*out->gap));
	if (!out->gap)
		return;
	*out->gap = (struct pm_chain_gap){ .module = module,
					   .fd = out->fd,
					   .crc_bytes_left = &modules->crc_bytes_left };
	pm_unw_module_on_gap(out->unwind, open_debug, out->gap);
}

const struct pm_chain_vdso *pm_chain_modules_vdso(const struct pm_chain_modules *modules,
						  const struct pm_module *module)
{
	if (strcmp(module->identity.path, PM_VDSO32_PATH) == 0)
		return &modules->vdso32;
	return &modules->vdso;
}

static void open_vdso(struct pm_chain_modules *modules, const struct pm_module *module,
		      struct pm_chain_module *out)
{
	const struct pm_chain_vdso *vdso = pm_chain_modules_vdso(modules, module);

	/* The process may have ended: then the next process that has it is tried. */
	if (vdso == &modules->vdso32 && !vdso->image &&
	    pm_chain_vdso_copy(module, &modules->vdso32) < 0)
		out->opened = false;
	if (vdso->image &&
	    pm_unw_module_from_memory(&out->unwind, vdso->image, vdso->len, NULL) < 0)
		out->unwind = NULL;
}

static int64_t ns_of(const struct statx_timestamp *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* The values that was_written() in tasks.c compares. */
static void note_written(int fd, const struct pm_module *module,
			 struct pm_chain_module *out)
{
	struct statx st;

	out->mtime_ns = INT64_MIN;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_CTIME | STATX_MTIME | STATX_SIZE, &st) < 0 ||
	    ns_of(&st.stx_ctime) > module->seen_ns)
		return;
	out->mtime_ns = ns_of(&st.stx_mtime);
	out->size = st.stx_size;
}

/* Whether the file, which had been open, was written while it was closed. */
static bool was_rewritten(int fd, const struct pm_chain_module *module)
{
	struct statx st;

	return module->was_open && module->mtime_ns != INT64_MIN &&
	       statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME | STATX_SIZE,
		     &st) == 0 &&
	       (ns_of(&st.stx_mtime) != module->mtime_ns || st.stx_size != module->size);
}

/* Returns 0 for a readable file that is not an ELF file, or why it cannot be read. */
static int read_error(int fd)
{
	char byte;

	if (pread(fd, &byte, sizeof(byte), 0) < 0)
		return -errno;
	return 0;
}

/* Gives the file to the unwinder, for the first time or again. */
static int unwind_by(struct pm_chain_modules *modules, const struct pm_module *module,
		     struct pm_chain_module *out, int fd)
{
	int ret = out->unwind ? pm_unw_module_reopen(out->unwind, fd, NULL)
			      : pm_unw_module_open(&out->unwind, fd, NULL);

	/* A file that is no longer an ELF file has been written. */
	if (ret == -ENOEXEC) {
		if (out->unwind)
			return -ESTALE;
		return read_error(fd);
	}
	if (ret < 0)
		return ret;
	out->fd = pm_unw_module_fd(out->unwind);
	want_debug(modules, module, out);
	if (modules->tables)
		pm_unw_module_set_helper(out->unwind,
					 pm_chain_tables_helper(modules->tables));
	return 0;
}

/* Takes ownership of @fd. Returns 0, or why the file is not used. */
static int adopt_file(struct pm_chain_modules *modules, const struct pm_module *module,
		      struct pm_chain_module *out, int fd_)
{
	PM_AUTO_CLOSE int fd = fd_;
	int ret;

	if (was_rewritten(fd, out))
		return -ESTALE;
	if (!out->was_open)
		note_written(fd, module, out);
	out->was_open = true;
	ret = unwind_by(modules, module, out, fd);
	if (ret < 0)
		return ret;
	/* A file that is not an ELF file is also kept open. */
	if (out->fd < 0)
		out->fd = pm_take_fd(&fd);
	modules->fds++;
	return 0;
}

static bool is_for_want_of_descriptors(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

/* Returns 0, or why there is no file. */
static int try_file(struct pm_chain_modules *modules, const struct pm_module *module,
		    struct pm_chain_module *out)
{
	int fd = modules->fds < modules->fds_max ? pm_module_open(module, NULL) : -EMFILE;

	if (fd < 0)
		return fd;
	return adopt_file(modules, module, out, fd);
}

static void open_module(struct pm_chain_modules *modules, const struct pm_module *module,
			struct pm_chain_module *out)
{
	if (module->identity.kind == PM_MODULE_VDSO)
		open_vdso(modules, module, out);
	if (module->identity.kind != PM_MODULE_FILE)
		return;
	out->error = try_file(modules, module, out);
	if (!is_for_want_of_descriptors(out->error))
		return;
	out->error = 0;
	out->closed = true;
	modules->closed_len++;
}

/* Generated code is in anonymous memory, which may have a name from prctl(2), or in a
 * memfd if a JIT maps its code twice. */
static bool is_generated_module(const struct pm_module_identity *identity,
				const struct pm_chain_module *module)
{
	if (identity->kind == PM_MODULE_ANON)
		return strcmp(identity->path, "//anon") == 0 ||
		       strncmp(identity->path, "[anon:", 6) == 0;
	return identity->kind == PM_MODULE_FILE && !module->unwind && !module->closed &&
	       strncmp(identity->path, "/memfd:", 7) == 0;
}

struct pm_chain_module *pm_chain_modules_touch(struct pm_chain_modules *modules,
					       const struct pm_procs *procs, uint32_t id)
{
	struct pm_chain_module *module;

	if (id >= modules->list.len) {
		if (pm_vec_reserve(&modules->list, (size_t)id + 1) < 0)
			return NULL;
		while (modules->list.len <= id)
			modules->list.data[modules->list.len++] =
				(struct pm_chain_module){ .fd = -1,
							  .file_id = PM_FILE_NONE };
	}
	module = &modules->list.data[id];
	if (!module->opened) {
		module->opened = true;
		open_module(modules, pm_procs_module(procs, id), module);
		module->generated = is_generated_module(
			&pm_procs_module(procs, id)->identity, module);
	}
	return module;
}

/* ---- closing files to make room --------------------------------------------------------- */

/* An open file, and when it was last used. */
struct candidate {
	bool unlinked; /* cannot be opened again once its processes have ended */
	uint64_t used;
	uint32_t id;
};

static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->unlinked != b->unlinked)
		return a->unlinked ? 1 : -1;
	return PM_COMPARE(a->used, b->used);
}

static bool is_unlinked(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK, &st) == 0 &&
	       st.stx_nlink == 0;
}

static void close_file(struct pm_chain_modules *modules, struct pm_chain_module *module)
{
	if (module->unwind)
		pm_unw_module_close(module->unwind);
	else
		close(module->fd);
	if (module->gap)
		module->gap->fd = -1;
	module->fd = -1;
	module->closed = true;
	modules->closed_len++;
	modules->fds--;
}

/* Closes some files, but none that the current stack needs. If memory runs out, closes
 * nothing. */
static void close_some_modules(struct pm_chain_modules *modules)
{
	PM_AUTO_FREE struct candidate *open =
		reallocarray(NULL, modules->fds + 1, sizeof(*open));
	size_t len = 0, closed = modules->fds_max / ROOM_SHARE + 1;

	for (size_t i = 0; open && i < modules->list.len && len < modules->fds; i++) {
		const struct pm_chain_module *module = &modules->list.data[i];

		if (module->fd >= 0 && module->used < modules->stamp)
			open[len++] =
				(struct candidate){ .unlinked = is_unlinked(module->fd),
						    .used = module->used,
						    .id = (uint32_t)i };
	}
	if (len > 0)
		qsort(open, len, sizeof(*open), compare_candidates);
	for (size_t i = 0; i < len && i < closed; i++)
		close_file(modules, &modules->list.data[open[i].id]);
}

void pm_chain_modules_use(struct pm_chain_modules *modules, uint32_t id)
{
	modules->list.data[id].used = modules->stamp;
}

bool pm_chain_modules_reopen(struct pm_chain_modules *modules,
			     const struct pm_procs *procs, uint32_t id)
{
	struct pm_chain_module *module = &modules->list.data[id];
	const struct pm_module *of = pm_procs_module(procs, id);
	bool known = module->unwind;

	if (!module->closed)
		return false;
	module->error = try_file(modules, of, module);
	if (is_for_want_of_descriptors(module->error)) {
		close_some_modules(modules);
		module->error = try_file(modules, of, module);
	}
	/* The next stack tries again. */
	if (is_for_want_of_descriptors(module->error))
		return false;
	module->closed = false;
	modules->closed_len--;
	modules->reopened++;
	module->generated = is_generated_module(&of->identity, module);
	modules->version += !known && module->unwind;
	return true;
}

static void put_hex(const uint8_t *id, uint8_t len, char out[BUILD_ID_HEX_BYTES])
{
	out[0] = '\0';
	for (uint8_t i = 0; i < len && i < PM_MODULE_BUILD_ID_MAX; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
}

static void build_id_hex(const struct pm_chain_module *module,
			 const struct pm_module_identity *identity,
			 char out[BUILD_ID_HEX_BYTES])
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX];
	uint8_t len = identity->build_id_len;

	out[0] = '\0';
	memcpy(id, identity->build_id, sizeof(id));
	if (len == 0 && (module->fd < 0 || pm_elf_build_id(module->fd, id, &len) < 0))
		return;
	put_hex(id, len, out);
}

static const char *module_kind_name(enum pm_module_kind kind)
{
	switch (kind) {
	case PM_MODULE_FILE:
		return "file";
	case PM_MODULE_KERNEL:
		return "kernel";
	case PM_MODULE_VDSO:
		return "vdso";
	case PM_MODULE_ANON:
		return "anon";
	}
	return "anon";
}

void pm_chain_modules_new_generation(struct pm_chain_modules *modules)
{
	modules->first_file_id += (uint32_t)modules->by_file_id.len;
	for (size_t i = 0; i < modules->list.len; i++)
		modules->list.data[i].file_id = PM_FILE_NONE;
	pm_vec_clear(&modules->by_file_id);
	modules->kernel_file_id = PM_FILE_NONE;
}

void pm_chain_modules_new_file(struct pm_chain_modules *modules)
{
	pm_chain_modules_new_generation(modules);
	modules->first_file_id = 0;
}

void pm_chain_modules_drop(struct pm_chain_modules *modules, uint32_t id)
{
	struct pm_chain_module *module;

	if (id >= modules->list.len)
		return;
	module = &modules->list.data[id];
	if (module->fd >= 0)
		modules->fds--;
	if (module->closed)
		modules->closed_len--;
	if (!module->unwind)
		pm_cleanup_close(&module->fd);
	pm_unw_module_free(module->unwind);
	free(module->gap);
	*module = (struct pm_chain_module){ .fd = -1, .file_id = PM_FILE_NONE };
}

uint32_t pm_chain_modules_of_file_id(const struct pm_chain_modules *modules,
				     uint32_t file_id)
{
	return modules->by_file_id.data[file_id - modules->first_file_id];
}

static uint32_t next_file_id(const struct pm_chain_modules *modules)
{
	return modules->first_file_id + (uint32_t)modules->by_file_id.len;
}

int pm_chain_modules_file_id(struct pm_chain_modules *modules,
			     const struct pm_procs *procs, struct pm_file_writer *writer,
			     uint32_t id, uint32_t *out)
{
	struct pm_chain_module *module = &modules->list.data[id];
	const struct pm_module_identity *identity;
	char build_id[BUILD_ID_HEX_BYTES];
	int ret;

	if (module->file_id == PM_FILE_NONE) {
		uint32_t file_id = next_file_id(modules);

		/* The build-id is in the file. */
		pm_chain_modules_reopen(modules, procs, id);
		identity = &pm_procs_module(procs, id)->identity;
		build_id_hex(module, identity, build_id);
		ret = pm_vec_push(&modules->by_file_id, id);
		if (ret < 0)
			return ret;
		module->file_id = file_id;
		ret = pm_file_write_module(
			writer, &(struct pm_file_module){
					.id = file_id,
					.path = identity->path,
					.build_id = build_id[0] ? build_id : NULL,
					.kind = module_kind_name(identity->kind) });
		if (ret < 0)
			return ret;
	}
	*out = module->file_id;
	return 0;
}

int pm_chain_modules_kernel_id(struct pm_chain_modules *modules,
			       struct pm_file_writer *writer, uint32_t *out)
{
	if (modules->kernel_file_id == PM_FILE_NONE) {
		uint32_t file_id = next_file_id(modules);
		int ret = pm_vec_push(&modules->by_file_id, PM_FILE_NONE);
		struct pm_kernel_identity running;
		char build_id[BUILD_ID_HEX_BYTES];

		if (ret < 0)
			return ret;
		pm_kernel_identity_read(&running, NULL, NULL);
		put_hex(running.build_id, running.build_id_len, build_id);
		modules->kernel_file_id = file_id;
		ret = pm_file_write_module(
			writer, &(struct pm_file_module){
					.id = file_id,
					.path = "[kernel]",
					.build_id = build_id[0] ? build_id : NULL,
					.kind = "kernel" });
		if (ret < 0)
			return ret;
	}
	*out = modules->kernel_file_id;
	return 0;
}

int pm_chain_modules_jit_id(struct pm_chain_modules *modules,
			    struct pm_file_writer *writer, uint32_t *out)
{
	uint32_t file_id = next_file_id(modules);
	int ret = pm_vec_push(&modules->by_file_id, PM_FILE_NONE);

	if (ret < 0)
		return ret;
	*out = file_id;
	return pm_file_write_module(writer, &(struct pm_file_module){ .id = file_id,
								      .path = "[jit]",
								      .kind = "jit" });
}

int pm_chain_modules_open_file(const struct pm_chain_modules *modules,
			       const struct pm_procs *procs, uint32_t id)
{
	const struct pm_chain_module *module = &modules->list.data[id];

	if (module->error == -ESTALE)
		return -ESTALE;
	if (module->fd >= 0)
		return module->fd;
	return pm_module_open(pm_procs_module(procs, id), NULL);
}
