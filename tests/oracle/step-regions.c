/* SPDX-License-Identifier: MIT */
/*
 * step-regions PROGRAM SPEC…: runs the program one instruction at a time, and compares
 * the calls and ends that the places of its functions report with those that its stack
 * pointer shows. The functions must be in the program itself. Prints TAP, one test for
 * each function.
 */
#include "pm/count.h"

#include <inttypes.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

enum {
	SPECS_MAX = 32,
	STEPS_MAX = 5000000,
};

struct frame {
	uint32_t region;
	uint64_t sp; /* at the first instruction */
};

struct tally {
	uint64_t calls, ends,
		unwound; /* according to the places; by an exception, longjmp or exit */
	uint64_t begun; /* the first instruction was executed, entered from outside */
	uint64_t early, stray; /* ends of calls that continue; ends without a call */
};

struct run {
	struct pm_regions regions;
	struct tally tally[PM_REGIONS_MAX];
	PM_VEC(struct frame) frames;
	uint64_t bias;
	struct frame ended; /* ended by the last instruction, checked after it */
	bool has_ended;
	uint64_t last_pc;
	uint64_t steps;
};

static bool is_in(const struct pm_region *region, uint64_t address)
{
	for (size_t i = 0; i < region->pieces.len; i++)
		if (address >= region->pieces.data[i].low &&
		    address < region->pieces.data[i].high)
			return true;
	return false;
}

static void enter(struct run *run, const struct pm_place *place, uint64_t sp)
{
	struct frame frame = { place->region, sp + place->sp_offset };

	for (size_t i = run->frames.len; place->again && i-- > 0;)
		if (run->frames.data[i].region == frame.region &&
		    run->frames.data[i].sp == frame.sp)
			return;
	run->tally[place->region].calls++;
	if (pm_vec_push(&run->frames, frame) < 0)
		abort();
}

static void leave(struct run *run, const struct pm_place *place, uint64_t sp)
{
	for (size_t i = run->frames.len; i-- > 0;) {
		struct frame *frame = &run->frames.data[i];

		if (frame->region != place->region || frame->sp != sp + place->sp_offset)
			continue;
		run->tally[place->region].ends++;
		run->ended = *frame;
		run->has_ended = true;
		memmove(frame, frame + 1, (run->frames.len - i - 1) * sizeof(*frame));
		run->frames.len--;
		return;
	}
	run->tally[place->region].stray++;
}

static void step(struct run *run, const struct user_regs_struct *regs)
{
	uint64_t pc = regs->rip - run->bias, sp = regs->rsp;

	if (run->has_ended && sp <= run->ended.sp &&
	    is_in(&run->regions.list.data[run->ended.region], pc))
		run->tally[run->ended.region].early++;
	run->has_ended = false;
	/* Calls whose frame is gone without an exit. */
	while (run->frames.len > 0 && run->frames.data[run->frames.len - 1].sp < sp) {
		run->tally[run->frames.data[run->frames.len - 1].region].unwound++;
		run->frames.len--;
	}
	for (uint32_t i = 0; i < run->regions.list.len; i++) {
		const struct pm_region *region = &run->regions.list.data[i];

		if (pc == region->pieces.data[0].low && !is_in(region, run->last_pc))
			run->tally[i].begun++;
	}
	for (size_t i = 0; i < run->regions.places.len; i++) {
		const struct pm_place *place = &run->regions.places.data[i];

		if (place->address != pc)
			continue;
		if (place->kind == PM_PLACE_ENTRY)
			enter(run, place, sp);
		else if (pm_place_leaves(place, regs->eflags))
			leave(run, place, sp);
	}
	run->last_pc = pc;
}

/* Finds the load bias of the program from the line of /proc/PID/maps that has its first
 * place. */
static uint64_t bias_of(const struct run *run, pid_t pid)
{
	const struct pm_place *place = run->regions.places.data;
	char path[64], line[512];
	uint64_t start, end, offset, bias = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, run->regions.list.data[0].module) &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end,
			   &offset) == 3 &&
		    place->offset >= offset && place->offset - offset < end - start)
			bias = start + (place->offset - offset) - place->address;
	if (maps)
		fclose(maps);
	return bias;
}

static int trace(struct run *run, const char *program)
{
	struct user_regs_struct regs;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		personality(ADDR_NO_RANDOMIZE);
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl(program, program, NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return -ECHILD;
	run->bias = bias_of(run, pid);
	while (run->steps++ < STEPS_MAX) {
		int signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);

		if (ptrace(PTRACE_GETREGS, pid, 0, &regs) == 0)
			step(run, &regs);
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, signal) < 0 ||
		    waitpid(pid, &status, 0) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return 0;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -ETIME;
}

int main(int argc, char **argv)
{
	struct pm_region_spec specs[SPECS_MAX];
	struct pm_probe_context context = { .command = argc > 1 ? argv[1] : NULL };
	struct pm_error err = { 0 };
	static struct run run;
	size_t len = 0, called = 0;
	int code, bad = 0;

	for (int i = 2; i < argc && len < SPECS_MAX; i++)
		specs[len++] = (struct pm_region_spec){ false, argv[i] };
	if (len == 0)
		return 2;
	if (pm_regions_find(&run.regions, specs, len, &context, &err) < 0) {
		pm_error_print(&err, "step-regions", stderr);
		return 1;
	}
	code = trace(&run, argv[1]);
	for (size_t i = 0; i < run.frames.len; i++)
		run.tally[run.frames.data[i].region].unwound++;
	printf("1..%zu\n", run.regions.list.len);
	for (size_t i = 0; i < run.regions.list.len; i++) {
		const struct tally *tally = &run.tally[i];
		bool fine = code == 0 && tally->calls == tally->begun &&
			    tally->calls == tally->ends + tally->unwound &&
			    tally->early == 0 && tally->stray == 0;

		printf("%sok %zu - %s\n# %" PRIu64 " calls (%" PRIu64 " begun), %" PRIu64
		       " ends, %" PRIu64 " unwound, %" PRIu64 " too early, %" PRIu64
		       " of no call; %" PRIu64 " steps\n",
		       fine ? "" : "not ", i + 1, run.regions.list.data[i].name,
		       tally->calls, tally->begun, tally->ends, tally->unwound,
		       tally->early, tally->stray, run.steps);
		bad |= !fine;
		called += tally->calls > 0;
	}
	pm_vec_release(&run.frames);
	pm_regions_release(&run.regions);
	/* A run without calls has compared nothing. */
	return bad || called == 0;
}
