/* SPDX-License-Identifier: MIT */
/*
 * Causes its recorder much work: `costly KIND MS` computes for MS milliseconds of CPU
 * time, or writes a file.
 *   expressions  240 frames, each with a DWARF expression of 4,000 steps
 *   places       stacks of 2,500 frames at ever other places of the file "code", without CFI
 *   stacks       the same at few places, but all stacks differ
 *   map          a perf map that grows all the time
 *   table-file   writes the file "table": an ELF file that maps as code, without
 *                .eh_frame_hdr, and with 4.19 million unordered FDEs
 *   wide-file    the same, with 1.9 million
 *   small-file   the same, with a thousand
 *   table        computes in that file
 */
#if defined(__x86_64__)
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	DEPTH = 240,
	FRAMES = 2500,
	FRAME_BYTES = 16,
	SITE_BYTES = 16,
	CODE_BYTES = 16 << 20, /* of the file "code": one site after the other */
	SPIN_AT = 0x1000, /* in any of the files */
	FDES = 4190000,
	FDES_WIDE = 1900000,
	FDES_SMALL = 1000,
	LINES_AT_ONCE = 20000,
	SPIN_ROUNDS = 400000,
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* ---- expressions ------------------------------------------------------------------------- */

/* Calls itself %edi times, and then computes %rsi rounds. The expression for rbx counts
 * down: const2u 1000; 1: lit1; minus; dup; bra 1b. */
__asm__(".text\n"
	".type expensive, @function\n"
	"expensive:\n"
	"	.cfi_startproc\n"
	"	.cfi_escape 0x16, 3, 9, 0x0a, 0xe8, 0x03, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	dec %edi\n"
	"	js 1f\n"
	"	call expensive\n"
	"	add $8, %rsp\n"
	"	.cfi_remember_state\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_restore_state\n"
	"1:	dec %rsi\n"
	"	jnz 1b\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size expensive, .-expensive\n");
void expensive(int depth, uint64_t rounds);

/* ---- code in a file ---------------------------------------------------------------------- */

/* spin(%rdi: rounds, %rsi: stack pointer meanwhile, %rdx: frame pointer meanwhile) */
static const uint8_t spin_code[] = {
	0x49, 0x89, 0xe0, /* mov %rsp, %r8 */
	0x49, 0x89, 0xe9, /* mov %rbp, %r9 */
	0x48, 0x89, 0xf4, /* mov %rsi, %rsp */
	0x48, 0x89, 0xd5, /* mov %rdx, %rbp */
	0x48, 0xff, 0xcf, /* 1: dec %rdi */
	0x75, 0xfb, /* jnz 1b */
	0x4c, 0x89, 0xc4, /* mov %r8, %rsp */
	0x4c, 0x89, 0xcd, /* mov %r9, %rbp */
	0xc3, /* ret */
};
typedef void spin_fn(uint64_t rounds, void *sp, void *fp);

/* An ELF file with @code_bytes of code at its start, followed by @eh_frame. */
static void write_elf(const char *path, const uint8_t *code, size_t code_bytes,
		      const void *eh_frame, size_t eh_frame_bytes)
{
	static const char names[] = "\0.eh_frame\0.shstrtab";
	size_t names_at = code_bytes + eh_frame_bytes;
	size_t sections_at = (names_at + sizeof(names) + 7) & ~(size_t)7;
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(Elf64_Ehdr),
			      .e_shoff = sections_at,
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = 3,
			      .e_shstrndx = 2 };
	Elf64_Phdr load = { .p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_filesz = names_at,
			    .p_memsz = names_at,
			    .p_align = 4096 };
	Elf64_Shdr sections[3] = { { 0 },
				   { .sh_name = 1,
				     .sh_type = SHT_PROGBITS,
				     .sh_flags = SHF_ALLOC,
				     .sh_addr = code_bytes,
				     .sh_offset = code_bytes,
				     .sh_size = eh_frame_bytes },
				   { .sh_name = 11,
				     .sh_type = SHT_STRTAB,
				     .sh_offset = names_at,
				     .sh_size = sizeof(names) } };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	must(fd >= 0 && pwrite(fd, code, code_bytes, 0) == (ssize_t)code_bytes &&
		     pwrite(fd, &header, sizeof(header), 0) == sizeof(header) &&
		     pwrite(fd, &load, sizeof(load), sizeof(header)) == sizeof(load) &&
		     pwrite(fd, eh_frame, eh_frame_bytes, (off_t)code_bytes) ==
			     (ssize_t)eh_frame_bytes &&
		     pwrite(fd, names, sizeof(names), (off_t)names_at) == sizeof(names) &&
		     pwrite(fd, sections, sizeof(sections), (off_t)sections_at) ==
			     sizeof(sections),
	     path);
	close(fd);
}

static uint8_t *map_elf(const char *path)
{
	int fd = open(path, O_RDONLY);
	off_t len = lseek(fd, 0, SEEK_END);
	void *ret = mmap(NULL, (size_t)len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	must(ret != MAP_FAILED, path);
	close(fd);
	return ret;
}

struct __attribute__((packed)) fde {
	uint32_t bytes, cie;
	uint16_t start, len;
	uint8_t augmentation_bytes;
};

/* A CIE with addresses of 16 bits, and FDEs without a program. */
static void write_table(const char *path, size_t fdes)
{
	static const uint32_t cie[] = { 20,         0,          0x00527a01,
					0x01107801, 0x08070c02, 0x00000190 };
	static uint8_t code[2 * SPIN_AT];
	size_t bytes = sizeof(cie) + fdes * sizeof(struct fde);
	uint8_t *eh_frame = malloc(bytes);

	must(eh_frame != NULL, path);
	memcpy(eh_frame, cie, sizeof(cie));
	for (size_t i = 0; i < fdes; i++) {
		size_t at = sizeof(cie) + i * sizeof(struct fde);
		struct fde fde = { .bytes = sizeof(fde) - 4,
				   .cie = (uint32_t)at + 4,
				   .start = (uint16_t)(i * 40503),
				   .len = 1 };

		memcpy(eh_frame + at, &fde, sizeof(fde));
	}
	memcpy(code + SPIN_AT, spin_code, sizeof(spin_code));
	write_elf(path, code, sizeof(code), eh_frame, bytes);
	free(eh_frame);
}

static void compute_in_table(uint64_t until)
{
	static char stack[4096];
	spin_fn *spin = (spin_fn *)(void *)(map_elf("table") + SPIN_AT);

	while (now_ms() < until)
		spin(SPIN_ROUNDS, stack + sizeof(stack) / 2, stack + sizeof(stack) / 2);
}

/*
 * Zeros, which decode as additions if the unwinder follows them, and calls, after each of
 * which a frame may continue.
 */
static uint8_t *make_sites(void)
{
	uint8_t *code = calloc(1, CODE_BYTES);

	must(code != NULL, "code");
	for (size_t at = 2 * SPIN_AT; at < CODE_BYTES; at += SITE_BYTES)
		code[at] = 0xe8;
	memcpy(code + SPIN_AT, spin_code, sizeof(spin_code));
	write_elf("code", code, CODE_BYTES, "\0\0\0\0", 4);
	free(code);
	return map_elf("code");
}

static uint64_t random_site(uint64_t *seed, uint64_t sites)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return 2 * SPIN_AT + (*seed >> 33) % sites * SITE_BYTES + 5;
}

/* Computes on a stack of frame pointers and return addresses, each at one of @sites. */
static void compute_at_sites(uint64_t until, uint64_t sites)
{
	static uint64_t stack[FRAMES * 2 + 64] __attribute__((aligned(16)));
	uint64_t *frames = stack + 32, seed = (uint64_t)getpid();
	uint8_t *code = make_sites();
	spin_fn *spin = (spin_fn *)(void *)(code + SPIN_AT);

	while (now_ms() < until) {
		for (size_t i = 0; i < FRAMES; i++) {
			frames[2 * i] = (uint64_t)(uintptr_t)(frames + 2 * i + 2);
			frames[2 * i + 1] =
				(uint64_t)(uintptr_t)code + random_site(&seed, sites);
		}
		spin(SPIN_ROUNDS, frames - 4, frames);
	}
}

/* ---- a perf map -------------------------------------------------------------------------- */

static void compute_beside_map(uint64_t until)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char stack[4096];
	char path[64];
	uint64_t lines = 0;
	FILE *map;

	must(code != MAP_FAILED, "code");
	memcpy(code, spin_code, sizeof(spin_code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	must(map != NULL, path);
	while (now_ms() < until) {
		for (size_t i = 0; i < LINES_AT_ONCE; i++, lines++)
			fprintf(map, "%llx 10 function_%llu\n",
				0x10000000ull + lines * 16 % (1 << 28),
				(unsigned long long)lines);
		fflush(map);
		((spin_fn *)(void *)code)(SPIN_ROUNDS, stack + 2048, stack + 2048);
		/* Start again after this many names, to limit the disk space. */
		if (lines % (LINES_AT_ONCE * 200) == 0)
			rewind(map);
	}
	unlink(path);
	fclose(map);
}

int main(int argc, char **argv)
{
	uint64_t until = now_ms() + (argc > 2 ? strtoul(argv[2], NULL, 10) : 0);
	const char *kind = argc > 1 ? argv[1] : "";

	if (strcmp(kind, "expressions") == 0)
		while (now_ms() < until)
			expensive(DEPTH, SPIN_ROUNDS);
	else if (strcmp(kind, "places") == 0)
		compute_at_sites(until, CODE_BYTES / SITE_BYTES - 1024);
	else if (strcmp(kind, "stacks") == 0)
		compute_at_sites(until, 64);
	else if (strcmp(kind, "map") == 0)
		compute_beside_map(until);
	else if (strcmp(kind, "table-file") == 0)
		write_table("table", FDES);
	else if (strcmp(kind, "small-file") == 0)
		write_table("table", FDES_SMALL);
	else if (strcmp(kind, "wide-file") == 0)
		write_table("table", FDES_WIDE);
	else if (strcmp(kind, "table") == 0)
		compute_in_table(until);
	else
		must(0, kind);
	return 0;
}
#else
int main(void)
{
	return 0;
}
#endif
