#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where `make install` puts libpmself, and what a program needs that is linked against it.
#
# Nothing is compiled here: `make uninstall` computes the same directories. tests/fresh/run
# installs for real.

load tree

# without PROGRAM COMMAND...: runs the command with a PATH that lacks the program.
without() {
	local bin=$BATS_TEST_TMPDIR/without-$1
	mkdir -p "$bin"
	find /usr/sbin/ /usr/bin/ ! -name "$1" -exec ln -sft "$bin" {} +
	shift
	PATH=$bin "$@"
}

# uninstalled DIRECTORY ARGUMENT...: libpmself is in this directory, and `make uninstall` with
# the arguments removes it on a machine that lacks dpkg-dev.
uninstalled() {
	local dest=$BATS_TEST_TMPDIR/dest lib=$1
	shift
	mkdir -p "$dest$lib/pkgconfig"
	touch "$dest$lib/libpmself.so.1.0.0" "$dest$lib/libpmself.a" "$dest$lib/pkgconfig/pmself.pc"
	without dpkg-architecture env -u LIBDIR -u PREFIX -u MAKEFLAGS -u MAKELEVEL make \
		--no-print-directory uninstall DESTDIR="$dest" INSTALL_BUILD="$BATS_TEST_TMPDIR/b" "$@"
	none find "$dest" -type f
}

@test "without dpkg-dev libpmself goes where ld.so and pkg-config look" {
	multiarch=$(gcc -print-multiarch)
	[ -n "$multiarch" ] && [ -d "/usr/lib/$multiarch" ] ||
		skip "this system has one directory for libraries"
	lib=/usr/local/lib/$multiarch
	# The directories that this system's programs name, present or not.
	PATH=$PATH:/usr/sbin:/sbin ldconfig -vNX 2>&1 | grep -F "$lib" || false
	pkg-config --variable pc_path pkg-config | tr : '\n' | grep -xF "$lib/pkgconfig"
	uninstalled "$lib"
}

@test "LIBDIR says where libpmself goes" {
	uninstalled /opt/pm/some/where PREFIX=/opt/pm LIBDIR=some/where
	uninstalled /opt/pm/some/where PREFIX=/opt/pm LIBDIR=/opt/pm/some/where
}

@test "make test installs each package that pmself(3) names for static linking" {
	packages=$(sed -n '/^# STATIC LINKING/,/^# RETURN VALUE/p' docs/pmself.3.scd |
		grep -oE '\b(lib[a-z0-9]+|zlib1g)-dev\b' | sort)
	echo "$packages"
	[ "$(wc -l <<<"$packages")" -gt 5 ]
	tests/install-packages test --list | awk -F '[| ]+' '$1 ~ /^(run|test)$/ { print $2 }' |
		sort >"$BATS_TEST_TMPDIR/list"
	none grep -vxF -f "$BATS_TEST_TMPDIR/list" <<<"$packages"
}

@test "pmself.pc names what a static program needs, and asks nothing more of others" {
	pc=$BUILD_DIR/meson-private/pmself.pc
	for library in dw elf traceevent jansson zstd iberty z lzma bz2; do
		grep -E '^Libs.private:' "$pc" | grep -qw -- "-l$library"
	done
	none grep -E '^Requires' "$pc"
}
