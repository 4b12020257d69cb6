# SPDX-License-Identifier: MIT
# A thin front for meson: everything that knows how to build is in the meson.build files.

BUILD  ?= build
PREFIX ?= /usr/local
# Where libpmself goes, in PREFIX or absolute; empty: where this system keeps libraries.
LIBDIR ?=
# What `make run` records, and where the recording goes.
SAMPLE  = $(BUILD)/tests/programs/sample/sample
CMD    ?= $(SAMPLE)
OUT    ?= $(BUILD)/samples.json

.PHONY: help all run test test-guest install uninstall clean bench

help:
	@echo 'make run             install what is missing, build, record a sample program, report it'
	@echo 'make run CMD="PROG"  the same with your own program and its arguments'
	@echo 'make all             build everything in $(BUILD)/'
	@echo 'make test            every test, with gcc and with clang and its sanitizers'
	@echo 'make test-guest      tests for aarch64 and a PMU, both emulated (qemu; fetches 80 MB)'
	@echo 'make install         install to PREFIX ($(PREFIX)); DESTDIR and LIBDIR are honoured'
	@echo 'make uninstall       remove it from there'
	@echo 'make bench           compare with perf and elfutils on compilers (minutes, 2 GB)'
	@echo 'make clean           remove the build directories'

# `meson setup` once; afterwards ninja notices by itself when a meson.build changes.
$(BUILD)/build.ninja:
	@tests/install-packages run
	meson setup $(BUILD)

all: $(BUILD)/build.ninja
	@tests/install-packages run
	ninja -C $(BUILD)

# The report is wanted most when the program failed, so its status is kept for the end.
run: export RUN_CMD = $(CMD)
run: $(BUILD)/build.ninja
	@tests/install-packages run
	@ninja -C $(BUILD) --quiet src/pmrec/pmrec src/pmreport/pmreport tests/programs/sample/sample
	@printf '# pmrec -o %s -- %s\n' '$(OUT)' "$$RUN_CMD"
	@status=0; $(BUILD)/src/pmrec/pmrec -o $(OUT) -- $(CMD) || status=$$?; \
	echo '# pmreport $(OUT)'; \
	$(BUILD)/src/pmreport/pmreport $(OUT) || exit; \
	exit $$status

test:
	@tests/run

test-guest:
	@tests/guest/run

# In a directory of its own, which is gone afterwards: `sudo make install` leaves nothing of
# root's behind in the user's build.
INSTALL_BUILD = build-install
# meson asks dpkg-architecture for Debian's library directory and takes lib64 without it, where
# neither ld.so nor pkg-config looks. The compiler knows the directory, too; compilers of other
# distributions print nothing, or a name that /usr/lib does not have, and meson's choice is right.
INSTALL_SETUP = libdir='$(LIBDIR)'; \
	multiarch=$$($(CC) -print-multiarch 2>/dev/null || :); \
	if [ -z "$$libdir" ] && [ -n "$$multiarch" ] && [ -d "/usr/lib/$$multiarch" ]; then \
		libdir=lib/$$multiarch; \
	fi; \
	meson setup $(INSTALL_BUILD) --buildtype=release --prefix='$(abspath $(PREFIX))' \
		$${libdir:+--libdir="$$libdir"} -Dtests=false >/dev/null
STAGE = $(if $(DESTDIR),$(abspath $(DESTDIR)))
install:
	@tests/install-packages run
	rm -rf $(INSTALL_BUILD)
	$(INSTALL_SETUP)
	ninja -C $(INSTALL_BUILD) --quiet
	DESTDIR='$(STAGE)' meson install --no-rebuild -C $(INSTALL_BUILD)
	rm -rf $(INSTALL_BUILD)
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then \
		ldconfig; \
	fi

# `ninja uninstall` goes by what that build has installed, and it is gone: so by what would be
# installed. Folders stay, but the one that is nobody else's.
uninstall:
	@tests/install-packages run
	rm -rf $(INSTALL_BUILD)
	$(INSTALL_SETUP)
	meson introspect --installed $(INSTALL_BUILD) | python3 -c \
		'import json, sys; print(*json.load(sys.stdin).values(), sep="\n")' | \
		while read -r file; do \
			rm -fv '$(STAGE)'"$$file"; \
			case $$file in (*/pmself/libpmself-core.so) rmdir '$(STAGE)'"$${file%/*}" || :;; esac; \
		done
	rm -rf $(INSTALL_BUILD)

bench: $(BUILD)/build.ninja
	@tests/install-packages bench
	ninja -C $(BUILD) --quiet bench
	tests/bench/compare-perf $(BUILD)
	tests/bench/record-corpora $(BUILD) $(BUILD)/corpora
	$(BUILD)/tests/bench/unwind-bench --check $(BUILD)/corpora/*.corpus

clean:
	rm -rf $(BUILD) $(INSTALL_BUILD) build-gcc build-asan build-guest
