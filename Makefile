# Everything that a user or a contributor runs. 'make demo' and 'make test' set up what is missing.

# Where rustup puts cargo, for the first run after it was installed.
CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)

.PHONY: demo test test-long bench build install bootstrap clean

PREFIX ?= /usr/local
# What is installed.
BUILD ?= target/release
VERSION := $(shell sed -n '/^\[workspace.package\]/,/^$$/s/^version = "\(.*\)"/\1/p' Cargo.toml)

# Further names of the compiler drivers, for build systems that look for "gcc" in a compiler's name.
NAMES := homenode-gcc=homenode-cc homenode-g++=homenode-cxx homenode-gfortran=homenode-fc

# Two programs, every placement, one table each.
demo: build
	scripts/demo.sh

# Everything, in target/release. A crate's name cannot hold a '+', so the C++ driver gets its name here.
build: bootstrap
	cargo build --release --locked --workspace --exclude xtask
	ln -sf homenode-cxx target/release/homenode-c++
	for name in $(NAMES); do ln -sf $${name#*=} target/release/$${name%=*}; done

# Into PREFIX: commands, libraries, header, Fortran module, files for pkg-config and CMake, kernels, manual pages. Run
# 'make build' first.
install:
	install -d "$(PREFIX)/bin" "$(PREFIX)/lib/homenode" "$(PREFIX)/include" "$(PREFIX)/share/homenode/fortran" \
		"$(PREFIX)/lib/pkgconfig" "$(PREFIX)/lib/cmake/homenode"
	install $(BUILD)/homenode $(BUILD)/homenode-cc $(BUILD)/homenode-cxx $(BUILD)/homenode-fc "$(PREFIX)/bin"
	ln -sf homenode-cxx "$(PREFIX)/bin/homenode-c++"
	for name in $(NAMES); do ln -sf $${name#*=} "$(PREFIX)/bin/$${name%=*}"; done
	install $(BUILD)/libhomenode.so $(BUILD)/libhomenode_loops.so $(BUILD)/libhomenode_trace.so \
		$(BUILD)/libhomenode_monitor.so \
		$(BUILD)/libhomenode_guest.so $(BUILD)/homenode-lab-guest "$(PREFIX)/lib/homenode"
	install -m 644 include/homenode.h "$(PREFIX)/include"
	install -m 644 fortran/homenode.f90 fortran/homenode_alone.c "$(PREFIX)/share/homenode/fortran"
	sed 's/@VERSION@/$(VERSION)/' packaging/homenode.pc.in >"$(PREFIX)/lib/pkgconfig/homenode.pc"
	sed 's/@VERSION@/$(VERSION)/' packaging/homenode-config-version.cmake.in \
		>"$(PREFIX)/lib/cmake/homenode/homenode-config-version.cmake"
	install -m 644 packaging/homenode-config.cmake "$(PREFIX)/lib/cmake/homenode"
	install -m 644 packaging/homenode.gdb "$(PREFIX)/share/homenode"
	cp -R kernels "$(PREFIX)/share/homenode/"
	"$(PREFIX)/bin/homenode" man "$(PREFIX)/share/man/man1"

# All checks, as CI runs them.
test: bootstrap
	cargo xtask ci

# The same, then the slow tests and many more cases of every property.
test-long: bootstrap
	cargo xtask ci --long

# The benchmarks, each beside its last result on this machine.
bench: bootstrap
	cargo xtask bench

# Installs missing tools; quick when there is none.
bootstrap:
	@scripts/bootstrap.sh

clean:
	cargo clean
	rm -rf build
