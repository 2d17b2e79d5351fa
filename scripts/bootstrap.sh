#!/usr/bin/env bash
# Makes sure that everything needed to build and test homenode is there, and installs what is
# missing: Debian packages with apt-get, Rust with rustup. Says nothing and takes well under a
# second when nothing is missing.
#
# As root it installs; otherwise it asks and uses sudo. With CI set it does not ask. Run it as often
# as you like.
set -euo pipefail

# The oldest Rust that builds homenode; rust-version in Cargo.toml says the same.
readonly RUST_MINOR=89

say() { printf 'bootstrap: %s\n' "$*" >&2; }
die() {
    say "$1"
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- Debian packages --------------------------------------------------------------------------------------------------

# What a compiler finds matters, not which package brought it: it may be a distribution that names
# them differently. A header of clang's OpenMP lies outside of the usual folders, so clang itself is
# asked.
has_clang_openmp() { have clang && clang -fopenmp -fsyntax-only -x c - <<<'#include <omp.h>' 2>/dev/null; }
has_hwloc() { have pkg-config && pkg-config --exists hwloc 2>/dev/null; }
has_libzstd() { have pkg-config && pkg-config --exists libzstd 2>/dev/null; }
# A Debian without python3-venv has the module, but not what it copies into a new environment.
has_python_venv() { have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null; }
has_libc_headers() { have gcc && gcc -fsyntax-only -x c - <<<'#include <stdio.h>' 2>/dev/null; }

# A dynamic loader in it means that it needs libraries.
has_static_busybox() { have busybox && ! grep -q /ld-linux "$(command -v busybox)"; }

has_library() { compgen -G "/usr/lib/*/$1" >/dev/null || [ -e "/usr/lib/$1" ] || [ -e "/usr/lib64/$1" ]; }

missing_packages() {
    local tool
    for tool in gcc g++ gfortran clang cmake make pkg-config git curl; do
        have "$tool" || printf '%s\n' "$tool"
    done
    # The lab: QEMU, a shell for its guest, its disk, its kernels, which are packed.
    have qemu-system-x86_64 || printf 'qemu-system-x86\n'
    have qemu-x86_64 || printf 'qemu-user\n'
    has_static_busybox || printf 'busybox-static\n'
    PATH="$PATH:/usr/sbin:/sbin" have mke2fs || printf 'e2fsprogs\n'
    have xz || printf 'xz-utils\n'
    have zstd || printf 'zstd\n'
    has_libc_headers || printf 'libc6-dev\n'
    has_clang_openmp || printf 'libomp-dev\n'
    has_hwloc || printf 'libhwloc-dev\n'
    # An export packs its Parquet files with it.
    has_libzstd || printf 'libzstd-dev\n'
    # The tests read exports with DuckDB and Polars, in an environment of their own.
    have python3 || printf 'python3\n'
    has_python_venv || printf 'python3-venv\n'
    # Allocators and a policy of memory that the live runtime is tested under.
    have numactl || printf 'numactl\n'
    has_library libjemalloc.so.2 || printf 'libjemalloc2\n'
    has_library libmimalloc.so.2 || printf 'libmimalloc2.0\n'
    # The tests have hwloc's own program read what 'homenode measure' writes.
    have lstopo-no-graphics || printf 'hwloc-nox\n'
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -d /etc/pki/tls/certs ] || [ -e /etc/ssl/cert.pem ] ||
        printf 'ca-certificates\n'
}

# Good to have: tests that lack it print that they are skipped. On Ubuntu the package only fetches a
# snap, which a container cannot run.
wanted_packages() {
    have chromium || have chromium-browser || have google-chrome || printf 'chromium\n'
    have shellcheck || printf 'shellcheck\n'
    # Tests click and type on the page of 'homenode view' with playwright-core, which npm fetches.
    have node || printf 'nodejs\n'
    have npm || printf 'npm\n'
    # Tests start ranks with Open MPI's mpirun.
    have mpirun || printf 'openmpi-bin\n'
    have mpicc || printf 'libopenmpi-dev\n'
}

# The packages of viewer/. Never fails, and asks the network only when package-lock.json is newer.
viewer_packages() {
    have npm || return 0
    [ -z "$(find viewer/node_modules/.package-lock.json -newer viewer/package-lock.json 2>/dev/null)" ] || return 0
    say "fetching the packages of viewer/, for tests"
    (cd viewer && npm ci --no-audit --no-fund --loglevel=error >&2) ||
        say "without the packages of viewer/: tests that click and type on the page are skipped"
}

# A package that only fetches a snap is left alone, and so is one that this system does not have.
is_installable() {
    local version
    have apt-cache || return 1
    version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
    [ -n "$version" ] && [ "$version" != "(none)" ] && [[ $version != *snap* ]] &&
        ! apt-cache show "$1" 2>/dev/null | grep -qi 'transitional.*snap'
}

# Never fails: what cannot be had is told once a day at most, so that a build does not wait for the
# network each time.
install_wanted() {
    local root note="${XDG_CACHE_HOME:-$HOME/.cache}/homenode-bootstrap-wanted"
    [ -z "$(find "$note" -mmin -1440 2>/dev/null)" ] || return 0
    mkdir -p "${note%/*}" 2>/dev/null && : 2>/dev/null >"$note" || return 0
    # Nobody is asked for what is only good to have.
    if [ "$(id -u)" = 0 ]; then root=; elif [ -n "${CI:-}" ] && have sudo; then root='sudo -n'; else return 0; fi
    # shellcheck disable=SC2086 # $root is empty or a command with its option
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >&2 2>/dev/null || true
    local package
    for package in "$@"; do
        if is_installable "$package"; then
            say "installing $package, for tests"
            # shellcheck disable=SC2086
            $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$package" >&2 ||
                say "without $package: tests that need it are skipped"
        else
            say "there is no package $package here: tests that need it are skipped"
        fi
    done
}

# Prints the command that gives root's rights, or nothing for root itself; fails when there is none.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        return 0
    fi
    local install="$1" answer
    have sudo || die "these are missing and neither root's rights nor sudo are there:" "$install"
    if [ -n "${CI:-}" ]; then
        printf 'sudo -n'
        return 0
    fi
    if ! { : >/dev/tty; } 2>/dev/null; then
        die "these are missing, and there is no terminal to ask on whether sudo may be used:" "$install" \
            "run that, or set CI=1 to allow it"
    fi
    printf 'bootstrap: missing; run "sudo %s"? [Y/n] ' "$install" >/dev/tty
    read -r answer </dev/tty
    case "$answer" in
    '' | y | Y | yes | Yes) printf 'sudo' ;;
    *) die "not installed; homenode needs it:" "sudo $install" ;;
    esac
}

install_packages() {
    local root install="apt-get install $*"
    have apt-get || die "these are missing, and this is not Debian or Ubuntu, so install them by hand:" "$*"
    root=$(as_root "$install")
    say "installing $*"
    # shellcheck disable=SC2086 # $root is empty or a command with its option
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >&2 ||
        say "the package lists could not be renewed; trying with those that are there"
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$@" >&2 ||
        die "apt-get could not install:" "$*"
}

# --- Rust -------------------------------------------------------------------------------------------------------------

# The version in rust-toolchain.toml; the source tarball has no such file.
pinned_rust() {
    local key value
    if ! [ -e rust-toolchain.toml ]; then
        printf 'stable'
        return 0
    fi
    while IFS=' =' read -r key value; do
        [ "$key" != channel ] || printf '%s' "${value//\"/}"
    done <rust-toolchain.toml
}

rust_is_recent() {
    local version
    version=$(cargo --version 2>/dev/null) || return 1
    [[ $version =~ ^cargo\ 1\.([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge "$RUST_MINOR" ]
}

# rustfmt and clippy, which the tests use.
rust_is_complete() { rust_is_recent && cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }

install_rust() {
    if have rustup; then
        if ! rust_is_recent; then
            say "installing Rust $(pinned_rust) with rustup"
            if ! rustup toolchain install "$(pinned_rust)" --profile minimal --component rustfmt --component clippy >&2; then
                say "Rust $(pinned_rust) could not be fetched; taking rustup's stable toolchain in this folder"
                rustup toolchain install stable --profile minimal --component rustfmt --component clippy >&2 ||
                    say "the stable toolchain could not be renewed; trying with the one that is there"
                rustup override set stable >&2 || die "rustup could not select the stable toolchain"
            fi
        fi
        rust_is_complete || rustup component add rustfmt clippy >&2 || die "rustup could not add rustfmt and clippy"
    else
        say "installing Rust with rustup into ${CARGO_HOME:-$HOME/.cargo}"
        local script url fetched=
        script=$(mktemp)
        # The same script at two addresses: some networks let only the second one through.
        for url in https://sh.rustup.rs https://static.rust-lang.org/rustup/rustup-init.sh; do
            curl --proto '=https' --tlsv1.2 -sSf --retry 2 -o "$script" "$url" && fetched=1 && break
        done
        [ -n "$fetched" ] ||
            die "rustup's installer could not be fetched; install Rust 1.$RUST_MINOR or later by hand (https://rustup.rs)"
        sh "$script" -y -q --no-modify-path --profile minimal --default-toolchain "$(pinned_rust)" \
            --component rustfmt --component clippy >&2 || die "rustup's installer failed"
        rm -f "$script"
    fi
    hash -r
    rust_is_complete || die "there is still no cargo of Rust 1.$RUST_MINOR or later with rustfmt and clippy" \
        "found: $(cargo --version 2>&1 || true) at $(command -v cargo || echo nowhere)"
}

# ----------------------------------------------------------------------------------------------------------------------

# Where rustup puts cargo; the Makefile does the same.
PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
cd "$(dirname "$0")/.."

mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
    install_packages "${missing[@]}"
    mapfile -t missing < <(missing_packages)
    [ "${#missing[@]}" = 0 ] || die "still missing after installation:" "${missing[*]}"
fi
rust_is_complete || install_rust
mapfile -t wanted < <(wanted_packages)
[ "${#wanted[@]}" = 0 ] || install_wanted "${wanted[@]}"
viewer_packages
