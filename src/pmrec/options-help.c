/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <string.h>

static const char help[] =
	"usage: pmrec [options] [--] COMMAND [ARGUMENT…]\n"
	"       pmrec [options] -p PID | -t TID | -u USER | -a  [COMMAND…]\n"
	"\n"
	"Runs COMMAND, samples it with everything that it starts, and writes the samples\n"
	"with complete call stacks, function names and lines to samples.json. With -p,\n"
	"-t, -u, -a, -C or -G it samples what runs already, until Ctrl-C, --duration, the\n"
	"end of those processes, or the end of COMMAND (as in `pmrec -a -- sleep 5`).\n"
	"\n"
	"What to sample\n"
	"  -e, --event EVENT[,…]     event to sample on, repeatable; `:u` user space\n"
	"                            only, `:k` kernel only (default: cycles)\n"
	"  -F, --freq HZ|max         samples a second and CPU (default: 999)\n"
	"  -c, --count N             instead: one sample every N events\n"
	"      --filter TEXT         of the tracepoints of the -e before it: only hits\n"
	"                            whose fields fit, as 'prev_pid > 0'\n"
	"      --off-cpu             also the time in which threads are blocked\n"
	"  -b, --branch-any          record the branches taken before each sample\n"
	"  -j, --branch-filter KINDS of these only: any_call, any_ret, cond, u, k, …\n"
	"\n"
	"Whom to sample\n"
	"  -p, --pid PID[,…]         running processes, their descendants, and all\n"
	"                            that these start\n"
	"  -t, --tid TID[,…]         running threads\n"
	"  -u, --uid USER            all processes of a user, with all that they start\n"
	"  -a, --all-cpus            everything on all CPUs\n"
	"  -C, --cpu CPUS            everything on these CPUs, as 0,2-4\n"
	"  -G, --cgroup GROUP        everything in a control group: its folder, or its\n"
	"                            name below /sys/fs/cgroup\n"
	"  -i, --no-inherit          leave out threads and processes that start later\n"
	"      --only-pid            with -p: without processes already started\n"
	"      --per-task            never sample CPUs where tasks are the target\n"
	"      --user USER           run COMMAND as this user\n"
	"\n"
	"When\n"
	"  -D, --delay MS            begin so many milliseconds later; -1: when\n"
	"                            --control says so\n"
	"      --duration TIME       end after 10s, 500ms, 2m, …\n"
	"      --max-size SIZE       end when the file has this size, as 100M\n"
	"      --max-samples N       end after N samples\n"
	"      --control fifo:PATH[,ACK]\n"
	"                            obey enable, disable, ping, snapshot and stop from\n"
	"                            a FIFO; fd:N[,ACK] from an open file\n"
	"      --overwrite           keep only the newest samples in the buffers; each\n"
	"                            SIGUSR2 writes them to a file of its own\n"
	"\n"
	"Call stacks\n"
	"  -g                        record call stacks (this is the default)\n"
	"      --call-graph HOW      dwarf[,BYTES]: by unwind tables (default)\n"
	"                            fp: by frame pointers; lbr: by the CPU's branch\n"
	"                            records; none: no call stacks\n"
	"      --stack-bytes N       bytes of stack to look at in a sample, up to 65528\n"
	"                            (default: 40960)\n"
	"      --no-stitch           leave a stack that is deeper without its callers,\n"
	"                            even if other samples have them\n"
	"\n"
	"Output\n"
	"  -o, --output FILE|-       file to write (default: samples.json); a name that\n"
	"                            ends in .zst is compressed; `-` is standard output\n"
	"      --raw FILE            also keep registers and copied stacks, with all that\n"
	"                            is needed to unwind them again (tens of KB a sample)\n"
	"      --force               also replace a file that is no recording; what a new\n"
	"                            file replaces is kept as FILE.old\n"
	"      --no-symbols          leave addresses as they are\n"
	"  -q, --quiet               print errors only\n"
	"  -v, --verbose             print what was opened, how it goes and what it cost\n"
	"\n"
	"What works here\n"
	"      --list [KIND] [GLOB]  list the events of this machine: hardware, software,\n"
	"                            cache, pmu, tracepoint or probe\n"
	"      --doctor              tell what this user may record here, and what to do\n"
	"      --json                either of them as JSON\n"
	"\n"
	"Without perf_event_open\n"
	"      --engine HOW          perf: the kernel's sampling (default); ptrace: stop\n"
	"                            running threads 99 times a second (-F up to 1000);\n"
	"                            auto: ptrace where perf is denied\n"
	"      --verify              with --engine ptrace and --stacks: ask libunwind,\n"
	"                            too, and tell where it finds other callers\n"
	"\n"
	"Stacks of a running process, once: pmrec --stacks -p PID [-t TID]\n"
	"      --stacks              print the stack of each thread, and record nothing\n"
	"      --unwinder WHICH      own (default) or libunwind\n"
	"\n"
	"Other\n"
	"  -m, --mmap-pages PAGES    size of each CPU's buffer, a power of two; with\n"
	"                            K, M or G in bytes\n"
	"  -r, --realtime PRIO       read the buffers with this real-time priority\n"
	"  -h, --help, --version\n"
	"\n"
	"The exit status is that of COMMAND: its own, 128+N when signal N ended it, 127\n"
	"when it was not found, 126 when it could not be run; 125 when pmrec itself\n"
	"failed; 0 without COMMAND.\n"
	"\n"
	"Next: pmreport samples.json\n"
	"\n"
	"Events:\n";

void pm_rec_options_help(void)
{
	const char *const *names = pm_event_names();
	size_t column = 0;

	fputs(help, stdout);
	for (; *names; names++) {
		size_t len = strlen(*names) + 2;

		if (column > 0 && column + len > 80) {
			putchar('\n');
			column = 0;
		}
		printf("%s%s", column == 0 ? "  " : ", ", *names);
		column += len;
	}
	putchar('\n');
}
