/* SPDX-License-Identifier: MIT */
#include "verify.h"

#include <inttypes.h>
#include <string.h>

#include "pm/chain-spaces.h"

enum {
	COLUMN = 36, /* width of our chain in the output */
	CONTEXT = 4, /* frames around the first difference */
};

/* One frame of a chain, for output. Its mapping may be gone when it is printed. */
struct place {
	uint64_t pc;
	uint64_t address; /* in the module */
	uint32_t module; /* PM_FILE_NONE: none */
};

struct pair {
	pid_t pid, tid;
	enum pm_rec_verdict verdict;
	enum pm_unw_stop stop;
	size_t at, first; /* kept frames start with frame `first` */
	struct place ours[2 * CONTEXT], theirs[2 * CONTEXT];
	enum pm_unw_how how[2 * CONTEXT];
	size_t ours_len, theirs_len; /* number of kept frames */
	size_t ours_all, theirs_all;
};

struct pm_rec_verify {
	struct pm_unwinder *unwinder;
	uint64_t verdicts[PM_REC_VERDICT_COUNT], failed;
	char failure[PM_ERROR_TEXT_MAX]; /* message of the first failure */
	struct pair pairs[PM_REC_VERIFY_SHOWN];
	size_t pairs_len;
	struct pm_unw_frame ours[PM_UNW_FRAMES_MAX];
	uint64_t theirs[PM_UNW_FRAMES_MAX];
};

struct pm_rec_verify *pm_rec_verify_new(void)
{
	struct pm_rec_verify *verify = calloc(1, sizeof(*verify));

	if (!verify)
		return NULL;
	verify->unwinder = pm_unwinder_new();
	if (!verify->unwinder) {
		free(verify);
		return NULL;
	}
	return verify;
}

void pm_rec_verify_free(struct pm_rec_verify *verify)
{
	if (!verify)
		return;
	pm_unwinder_free(verify->unwinder);
	free(verify);
}

void pm_rec_unwind_regs(const struct pm_trace_regs *regs, struct pm_unw_regs *out)
{
#if defined(__aarch64__)
	*out = (struct pm_unw_regs){ .arch = PM_UNW_AARCH64 };
#else
	*out = (struct pm_unw_regs){ .arch = regs->is_32 ? PM_UNW_I386 : PM_UNW_X86_64 };
#endif
	for (size_t i = 0; i < PM_UNW_REGS_MAX && i < PM_TRACE_REGS_MAX; i++)
		out->value[i] = regs->value[i];
	out->known = regs->known;
}

enum pm_rec_verdict pm_rec_compare(const struct pm_unw_frame *ours, size_t ours_len,
				   const uint64_t *theirs, size_t theirs_len, size_t *at)
{
	size_t i = 0;

	while (i < ours_len && i < theirs_len && ours[i].pc == theirs[i])
		i++;
	*at = i;
	if (i < ours_len && i < theirs_len)
		return PM_REC_DIFFERENT;
	if (i < ours_len)
		return PM_REC_THEIRS_SHORTER;
	if (i < theirs_len)
		return PM_REC_OURS_SHORTER;
	return PM_REC_EQUAL;
}

static struct place place_of_pc(const struct pm_unw_space *space, uint64_t pc)
{
	const struct pm_unw_map *map = pm_unw_space_find(space, pc);

	return (struct place){ .pc = pc,
			       .address = map ? pc - map->bias : pc,
			       .module = map ? map->tag : PM_FILE_NONE };
}

static void keep_pair(struct pm_rec_verify *verify, const struct pair *about,
		      const struct pm_unw_space *space)
{
	struct pair *pair = &verify->pairs[verify->pairs_len++];

	*pair = *about;
	pair->first = pair->at > CONTEXT ? pair->at - CONTEXT : 0;
	for (size_t i = pair->first; i < pair->first + 2 * CONTEXT; i++) {
		if (i < pair->ours_all) {
			pair->how[pair->ours_len] = verify->ours[i].how;
			pair->ours[pair->ours_len++] =
				place_of_pc(space, verify->ours[i].pc);
		}
		if (i < pair->theirs_all)
			pair->theirs[pair->theirs_len++] =
				place_of_pc(space, verify->theirs[i]);
	}
}

int pm_rec_verify_add(struct pm_rec_verify *verify, struct pm_rec_session *session,
		      pid_t pid, pid_t tid, const struct pm_trace_regs *trace_regs,
		      const struct pm_unw_stack *stack)
{
	struct pm_process *process = pm_procs_get(session->procs, pid);
	struct pair pair = { .pid = pid, .tid = tid };

	struct pm_error err = { 0 };
	struct pm_unw_space space;
	struct pm_unw_regs regs;
	ssize_t theirs;
	int ret;

	if (!process)
		return -ENOMEM;
	ret = pm_chain_space_get(process, &session->modules, session->procs, &space);
	if (ret < 0)
		return ret;
	theirs = pm_unw_ptrace_chain(tid, verify->theirs, PM_UNW_FRAMES_MAX, &err);
	if (theirs < 0) {
		if (verify->failed++ == 0)
			snprintf(verify->failure, sizeof(verify->failure), "%s",
				 err.text);
		if (theirs == -ENOMEM)
			return -ENOMEM;
		return 0;
	}
	pm_rec_unwind_regs(trace_regs, &regs);
	pair.theirs_all = (size_t)theirs;
	pair.ours_all = pm_unwind(verify->unwinder, &space, &regs, stack, verify->ours,
				  &pair.stop);
	pair.verdict = pm_rec_compare(verify->ours, pair.ours_all, verify->theirs,
				      pair.theirs_all, &pair.at);
	verify->verdicts[pair.verdict]++;
	if (pair.verdict != PM_REC_EQUAL && verify->pairs_len < PM_REC_VERIFY_SHOWN)
		keep_pair(verify, &pair, &space);
	return 0;
}

/* ---- print ------------------------------------------------------------------------------ */

static void put_place(struct pm_str *line, const struct pm_rec_session *session,
		      const struct place *place)
{
	const struct pm_module *module =
		place->module == PM_FILE_NONE
			? NULL
			: pm_procs_module(session->procs, place->module);
	const char *path = module ? module->identity.path : "";
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	pm_str_printable(line, name, strlen(name));
	pm_str_printf(line, "%s%#" PRIx64, module ? "+" : "", place->address);
}

static void print_pair(const struct pair *pair, const struct pm_rec_session *session)
{
	static const char *const words[] = {
		[PM_REC_EQUAL] = "equal",
		[PM_REC_THEIRS_SHORTER] = "libunwind's is shorter",
		[PM_REC_OURS_SHORTER] = "ours is shorter",
		[PM_REC_DIFFERENT] = "they differ",
	};

	fprintf(stderr,
		"pmrec: verify: process %d thread %d: %s from frame %zu on (ours %zu frames, "
		"%s; libunwind's %zu)\n",
		(int)pair->pid, (int)pair->tid, words[pair->verdict], pair->at,
		pair->ours_all, pm_unw_stop_name(pair->stop), pair->theirs_all);
	for (size_t i = 0; i < pair->ours_len || i < pair->theirs_len; i++) {
		struct pm_str line = { 0 };

		pm_str_printf(&line, " %c%4zu  %-4s ",
			      pair->first + i == pair->at ? '*' : ' ', pair->first + i,
			      i < pair->ours_len ? pm_unw_how_name(pair->how[i]) : "");
		if (i < pair->ours_len)
			put_place(&line, session, &pair->ours[i]);
		do
			pm_str_putc(&line, ' ');
		while (!line.failed && line.len < 13 + COLUMN);
		if (i < pair->theirs_len)
			put_place(&line, session, &pair->theirs[i]);
		if (!line.failed)
			fprintf(stderr, "%s\n", line.data);
		pm_str_release(&line);
	}
}

void pm_rec_verify_print(const struct pm_rec_verify *verify,
			 const struct pm_rec_session *session)
{
	const uint64_t *verdicts = verify->verdicts;
	uint64_t all = verify->failed;

	for (size_t i = 0; i < PM_REC_VERDICT_COUNT; i++)
		all += verdicts[i];
	fprintf(stderr,
		"pmrec: verify: %" PRIu64 " stacks unwound by libunwind, too: %" PRIu64
		" equal, %" PRIu64 " shorter by libunwind, %" PRIu64
		" shorter by us, %" PRIu64 " different, %" PRIu64
		" that libunwind failed on\n",
		all, verdicts[PM_REC_EQUAL], verdicts[PM_REC_THEIRS_SHORTER],
		verdicts[PM_REC_OURS_SHORTER], verdicts[PM_REC_DIFFERENT],
		verify->failed);
	if (verify->failed > 0)
		fprintf(stderr, "pmrec: verify: first failure: %s\n", verify->failure);
	for (size_t i = 0; i < verify->pairs_len; i++)
		print_pair(&verify->pairs[i], session);
}
