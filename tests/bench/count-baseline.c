/* SPDX-License-Identifier: MIT */
/*
 * count-baseline FUNCTION PROGRAM [ARG...]: counts calls of a function in the way that
 * perforator does, to compare with: a breakpoint at the entry; there the byte is put back and
 * one is planted at the return address; five separate events are enabled one by one; at the
 * return all five are disabled, read and reset, and the breakpoint at the entry is planted
 * anew. One thread, no recursion. FUNCTION is as `nm` has it. Prints the calls to stderr.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS 5

static const uint64_t configs[EVENTS] = {
	PERF_COUNT_SW_TASK_CLOCK,      PERF_COUNT_SW_PAGE_FAULTS,
	PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	PERF_COUNT_SW_CPU_CLOCK,
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "count-baseline: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* The function's address in the file; the program is one of our own tests. */
static uint64_t find(const char *path, const char *name, int *type)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *image;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		die(path);
	header = (const void *)image;
	*type = header->e_type;
	sections = (const void *)(image + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
		const char *names;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		names = image + sections[sections[i].sh_link].sh_offset;
		for (size_t j = 0; j < sections[i].sh_size / sizeof(*symbols); j++)
			if (symbols[j].st_shndx != SHN_UNDEF &&
			    strcmp(names + symbols[j].st_name, name) == 0)
				return symbols[j].st_value;
	}
	errno = ENOENT;
	die(name);
}

static uint64_t base_of(pid_t pid)
{
	char path[64];
	unsigned long long start = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps || fscanf(maps, "%llx", &start) != 1)
		die(path);
	fclose(maps);
	return start;
}

static void plant(pid_t pid, uint64_t address, long *saved)
{
	*saved = ptrace(PTRACE_PEEKTEXT, pid, address, NULL);
	ptrace(PTRACE_POKETEXT, pid, address, (*saved & ~0xffl) | 0xcc);
}

static void stop_at(pid_t pid, uint64_t address, long saved,
		    struct user_regs_struct *regs)
{
	ptrace(PTRACE_POKETEXT, pid, address, saved);
	regs->rip = address;
	ptrace(PTRACE_SETREGS, pid, NULL, regs);
}

static void open_events(pid_t pid, int fds[EVENTS])
{
	for (int i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_SOFTWARE,
			.size = sizeof(attr),
			.config = configs[i],
			.disabled = 1,
			.exclude_kernel = 1,
			.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				       PERF_FORMAT_TOTAL_TIME_RUNNING,
		};

		fds[i] = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1,
				      PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0)
			die("perf_event_open");
	}
}

static uint64_t trace(pid_t pid, uint64_t entry)
{
	struct user_regs_struct regs;
	uint64_t calls = 0, back = 0, sums[EVENTS] = { 0 }, value[3];
	long entry_saved, back_saved = 0;
	int fds[EVENTS], status;

	open_events(pid, fds);
	plant(pid, entry, &entry_saved);
	for (long signal = 0;;) {
		ptrace(PTRACE_CONT, pid, NULL, signal);
		if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			return calls;
		signal = WSTOPSIG(status);
		if (signal != SIGTRAP)
			continue;
		signal = 0;
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		if (regs.rip - 1 == entry) {
			stop_at(pid, entry, entry_saved, &regs);
			back = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, regs.rsp, NULL);
			plant(pid, back, &back_saved);
			for (int i = 0; i < EVENTS; i++)
				ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
		} else if (regs.rip - 1 == back) {
			for (int i = 0; i < EVENTS; i++)
				ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
			for (int i = 0; i < EVENTS; i++) {
				if (read(fds[i], value, sizeof(value)) > 0)
					sums[i] += value[0];
				ioctl(fds[i], PERF_EVENT_IOC_RESET, 0);
			}
			stop_at(pid, back, back_saved, &regs);
			plant(pid, entry, &entry_saved);
			calls++;
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t entry;
	int type, status;
	pid_t pid;

	if (argc < 3) {
		fprintf(stderr, "usage: count-baseline FUNCTION PROGRAM [ARG...]\n");
		return 125;
	}
	entry = find(argv[2], argv[1], &type);
	pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		die("start");
	if (type == ET_DYN)
		entry += base_of(pid);
	fprintf(stderr, "%llu calls\n", (unsigned long long)trace(pid, entry));
	return 0;
}
