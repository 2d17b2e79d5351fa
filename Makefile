# Everything that a user or a contributor runs. 'make demo' and 'make test' set up what is missing.

# Where rustup puts cargo, for the first run after it was installed.
CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH)

.PHONY: demo test test-long bench build install bootstrap clean

PREFIX ?= /usr/local

# Two programs, every placement, one table each.
demo: build
	scripts/demo.sh

# Everything, in target/release. A crate's name cannot hold a '+', so the C++ driver gets its name here.
build: bootstrap
	cargo build --release --locked
	ln -sf homenode-cxx target/release/homenode-c++

# Into PREFIX: commands, libraries, header, Fortran module, kernels, manual pages. Run 'make build' first.
install:
	install -d "$(PREFIX)/bin" "$(PREFIX)/lib/homenode" "$(PREFIX)/include" "$(PREFIX)/share/homenode/fortran"
	install target/release/homenode target/release/homenode-cc target/release/homenode-cxx \
		target/release/homenode-fc "$(PREFIX)/bin"
	ln -sf homenode-cxx "$(PREFIX)/bin/homenode-c++"
	install target/release/libhomenode.so target/release/libhomenode_trace.so target/release/libhomenode_monitor.so target/release/libhomenode_guest.so \
		target/release/homenode-lab-guest "$(PREFIX)/lib/homenode"
	install -m 644 include/homenode.h "$(PREFIX)/include"
	install -m 644 fortran/homenode.f90 "$(PREFIX)/share/homenode/fortran"
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
