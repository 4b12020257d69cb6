/* SPDX-License-Identifier: MIT */
#include "pm/chain-modules.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tables.h"

enum {
	/* A target that maps ever new files must not use up our memory and mappings. */
	MODULES_OPEN_MAX = 16384,
	FDS_RESERVED = 256, /* for what is opened in passing, beside the events */
	/* While samples wait in the rings; about half a second. */
	CRC_BYTES_MAX = 1 << 28,
	BUILD_ID_HEX_BYTES = 2 * PM_MODULE_BUILD_ID_MAX + 1,
};

/* Where the debug file of one module is to be found, when the unwinder asks for it. */
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
	if (limit.rlim_cur > 2 * FDS_RESERVED)
		modules->fds_max = limit.rlim_cur - FDS_RESERVED < MODULES_OPEN_MAX
					   ? limit.rlim_cur - FDS_RESERVED
					   : MODULES_OPEN_MAX;
	else
		modules->fds_max = limit.rlim_cur / 2;
}

int pm_chain_modules_make_tables_aside(struct pm_chain_modules *modules)
{
	if (!modules->tables)
		modules->tables = pm_chain_tables_new();
	return modules->tables ? 0 : -ENOMEM;
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

/* Without memory it is just not looked for. */
static void want_debug(struct pm_chain_modules *modules, const struct pm_module *module,
		       struct pm_chain_module *ret)
{
	ret->gap = malloc(sizeof(*ret->gap));
	if (!ret->gap)
		return;
	*ret->gap = (struct pm_chain_gap){ .module = module,
					   .fd = ret->fd,
					   .crc_bytes_left = &modules->crc_bytes_left };
	pm_unw_module_on_gap(ret->unwind, open_debug, ret->gap);
}

const struct pm_chain_vdso *pm_chain_modules_vdso(const struct pm_chain_modules *modules,
						  const struct pm_module *module)
{
	return strcmp(module->identity.path, PM_VDSO32_PATH) == 0 ? &modules->vdso32
								  : &modules->vdso;
}

static void open_vdso(struct pm_chain_modules *modules, const struct pm_module *module,
		      struct pm_chain_module *ret)
{
	const struct pm_chain_vdso *vdso = pm_chain_modules_vdso(modules, module);

	/* Whoever has it may be gone: the next to have it is asked, too. */
	if (vdso == &modules->vdso32 && !vdso->image &&
	    pm_chain_vdso_copy(module, &modules->vdso32) < 0)
		ret->opened = false;
	if (vdso->image &&
	    pm_unw_module_from_memory(&ret->unwind, vdso->image, vdso->len, NULL) < 0)
		ret->unwind = NULL;
}

static int64_t ns_of(const struct statx_timestamp *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* What was_written() in tasks.c compares. */
static void note_written(int fd, const struct pm_module *module,
			 struct pm_chain_module *ret)
{
	struct statx st;

	ret->mtime_ns = INT64_MIN;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_CTIME | STATX_MTIME | STATX_SIZE, &st) < 0 ||
	    ns_of(&st.stx_ctime) > module->seen_ns)
		return;
	ret->mtime_ns = ns_of(&st.stx_mtime);
	ret->size = st.stx_size;
}

static void open_module(struct pm_chain_modules *modules, const struct pm_module *module,
			struct pm_chain_module *ret)
{
	PM_AUTO_CLOSE int fd = -1;

	if (module->identity.kind == PM_MODULE_VDSO) {
		open_vdso(modules, module, ret);
		return;
	}
	if (module->identity.kind != PM_MODULE_FILE)
		return;
	fd = modules->fds < modules->fds_max ? pm_module_open(module, NULL) : -EMFILE;
	if (fd < 0) {
		ret->error = fd;
		return;
	}
	modules->fds++;
	note_written(fd, module, ret);
	if (pm_unw_module_open(&ret->unwind, fd, NULL) == 0) {
		ret->fd = pm_unw_module_fd(ret->unwind);
		want_debug(modules, module, ret);
		if (modules->tables)
			pm_unw_module_set_helper(ret->unwind,
						 pm_chain_tables_helper(modules->tables));
	} else {
		ret->unwind = NULL;
		ret->fd = pm_take_fd(&fd);
	}
}

/* Anonymous memory, also by a name that prctl(2) gave it, and what JITs that map their code
 * twice have instead. */
static bool is_generated(const struct pm_module_identity *identity,
			 const struct pm_chain_module *module)
{
	if (identity->kind == PM_MODULE_ANON)
		return strcmp(identity->path, "//anon") == 0 ||
		       strncmp(identity->path, "[anon:", 6) == 0;
	return identity->kind == PM_MODULE_FILE && !module->unwind &&
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
		module->generated =
			is_generated(&pm_procs_module(procs, id)->identity, module);
	}
	return module;
}

static void put_hex(const uint8_t *id, uint8_t len, char ret[BUILD_ID_HEX_BYTES])
{
	ret[0] = '\0';
	for (uint8_t i = 0; i < len && i < PM_MODULE_BUILD_ID_MAX; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

static void build_id_hex(const struct pm_chain_module *module,
			 const struct pm_module_identity *identity,
			 char ret[BUILD_ID_HEX_BYTES])
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX];
	uint8_t len = identity->build_id_len;

	ret[0] = '\0';
	memcpy(id, identity->build_id, sizeof(id));
	if (len == 0 && (module->fd < 0 || pm_elf_build_id(module->fd, id, &len) < 0))
		return;
	put_hex(id, len, ret);
}

static const char *kind_name(enum pm_module_kind kind)
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
			     uint32_t id, uint32_t *ret)
{
	struct pm_chain_module *module = &modules->list.data[id];
	const struct pm_module_identity *identity;
	char build_id[BUILD_ID_HEX_BYTES];
	int error;

	if (module->file_id == PM_FILE_NONE) {
		uint32_t file_id = next_file_id(modules);

		identity = &pm_procs_module(procs, id)->identity;
		build_id_hex(module, identity, build_id);
		error = pm_vec_push(&modules->by_file_id, id);
		if (error < 0)
			return error;
		module->file_id = file_id;
		error = pm_file_write_module(
			writer, &(struct pm_file_module){
					.id = file_id,
					.path = identity->path,
					.build_id = build_id[0] ? build_id : NULL,
					.kind = kind_name(identity->kind) });
		if (error < 0)
			return error;
	}
	*ret = module->file_id;
	return 0;
}

int pm_chain_modules_kernel_id(struct pm_chain_modules *modules,
			       struct pm_file_writer *writer, uint32_t *ret)
{
	if (modules->kernel_file_id == PM_FILE_NONE) {
		uint32_t file_id = next_file_id(modules);
		int error = pm_vec_push(&modules->by_file_id, PM_FILE_NONE);
		struct pm_kernel_identity running;
		char build_id[BUILD_ID_HEX_BYTES];

		if (error < 0)
			return error;
		pm_kernel_identity_read(&running, NULL, NULL);
		put_hex(running.build_id, running.build_id_len, build_id);
		modules->kernel_file_id = file_id;
		error = pm_file_write_module(
			writer, &(struct pm_file_module){
					.id = file_id,
					.path = "[kernel]",
					.build_id = build_id[0] ? build_id : NULL,
					.kind = "kernel" });
		if (error < 0)
			return error;
	}
	*ret = modules->kernel_file_id;
	return 0;
}

int pm_chain_modules_jit_id(struct pm_chain_modules *modules,
			    struct pm_file_writer *writer, uint32_t *ret)
{
	uint32_t file_id = next_file_id(modules);
	int error = pm_vec_push(&modules->by_file_id, PM_FILE_NONE);

	if (error < 0)
		return error;
	*ret = file_id;
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
