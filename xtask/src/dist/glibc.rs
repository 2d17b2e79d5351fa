//! A linker for binaries that run with an old glibc.
//!
//! *Problem.* ld binds a symbol to its newest version in the `libc.so.6` that it finds. A program
//! that is linked on Debian 12 asks for glibc 2.34, because that release moved `pthread_*` and
//! `dlsym` into `libc.so.6`, and because start-up code asks for `__libc_start_main` of it.
//!
//! *Approach.* Link with the interface of an old glibc. The compiler zig has the symbols of each
//! glibc, and makes libraries of the same names with these symbols and no code. It also has the
//! start-up code, and what old releases kept outside of `libc.so.6` (`stat`, `atexit`).
//! PyPI has zig (package `ziglang`). gcc finds the folder with these files before its own, so the
//! system's gcc and rustc's linker do the rest as always.
//!
//! hwloc and zstd are linked statically from the system's archives. Their objects name symbols
//! without versions, so they too get old ones. hwloc calls udev for the names of disks, which
//! homenode does not ask for: functions that find no udev take its place.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::base::{fresh, must, program, read, root, write};
use crate::CommandResult;
use crate::python::environment;

/// The newest glibc that a release may ask for.
pub const PROMISED: (u32, u32) = (2, 28);
/// The glibc that is linked with. A clean root with exactly this one can be had: Ubuntu 18.04.
const LINKED: &str = "2.27";
/// The package with zig; another version is another environment.
const ZIG: &str = "ziglang==0.15.2";
/// The libraries of glibc, each with the name that the linker looks for.
const LIBRARIES: &[(&str, &str)] = &[
    ("libdl.so.2", "libdl.so"),
    ("libm.so.6", "libm.so"),
    ("libpthread.so.0", "libpthread.so"),
    ("libresolv.so.2", "libresolv.so"),
    ("librt.so.1", "librt.so"),
    ("libutil.so.1", "libutil.so"),
];
/// zig's name of the dynamic loader.
const LOADER: &str = "libld.so.2";
/// What of the old glibc is linked statically.
const NONSHARED: &str = "libc_nonshared.a";
/// Start-up code of a position-independent program.
const START: &str = "Scrt1.o";
/// What `-lc` means.
const LIBC: &str = "OUTPUT_FORMAT(elf64-x86-64)\n\
    GROUP(libc.so.6 libc_nonshared.a AS_NEEDED(ld-linux-x86-64.so.2))\n";
/// Archives of the system that are linked instead of the shared libraries, and their packages.
const STATIC: &[(&str, &str)] = &[("libhwloc.a", "libhwloc-dev"), ("libzstd.a", "libzstd-dev")];
/// hwloc's calls of udev, which find nothing.
const UDEV: &str = "\
void *udev_new(void) { return 0; }\n\
void *udev_unref(void *udev) { (void)udev; return 0; }\n\
void *udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem, const char *name)\n\
{ (void)udev; (void)subsystem; (void)name; return 0; }\n\
void *udev_device_unref(void *device) { (void)device; return 0; }\n\
const char *udev_device_get_property_value(void *device, const char *key)\n\
{ (void)device; (void)key; return 0; }\n";

/// Makes the linker; its path.
pub fn linker() -> Result<PathBuf, String> {
    let folder = root().join("target/dist-glibc");
    fresh(&folder)?;
    let lib = folder.join("lib");
    for path in of_zig(&folder)? {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let name = if name == LOADER { "ld-linux-x86-64.so.2".to_owned() } else { name };
        copy(&path, &lib.join(name))?;
    }
    for (name, link) in LIBRARIES {
        symlink(name, lib.join(link)).map_err(|e| format!("{link}: {e}"))?;
    }
    write(&lib.join("libc.so"), LIBC)?;
    for (name, package) in STATIC {
        copy(&archive(name, package)?, &lib.join(name))?;
    }
    write(&folder.join("udev.c"), UDEV)?;
    let object = folder.join("udev.o");
    must(program("gcc").args(["-O2", "-fPIC", "-c"]).arg(folder.join("udev.c")).arg("-o").arg(&object))?;
    must(program("ar").arg("rcs").arg(lib.join("libudev.a")).arg(&object))?;
    let cc = folder.join("cc");
    // The system's libgcc_s may ask for symbols that the old glibc lacks.
    let text =
        format!("#!/bin/sh\nexec gcc -B'{0}' -L'{0}' \"$@\" -Wl,--allow-shlib-undefined\n", lib.display());
    write(&cc, text)?;
    fs::set_permissions(&cc, fs::Permissions::from_mode(0o755))
        .map_err(|e| format!("{}: {e}", cc.display()))?;
    try_out(&cc, &folder)?;
    Ok(cc)
}

/// Has zig link a program, and finds the files that it made for it.
fn of_zig(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let python = environment::environment(&ZIG.replace("==", "-"), &[ZIG])
        .map_err(|e| format!("no {ZIG} from PyPI, which has the interfaces of old releases of glibc: {e}"))?;
    let source = folder.join("empty.c");
    write(&source, "int main(void) { return 0; }\n")?;
    let mut zig = Command::new(&python);
    zig.current_dir(folder).args(["-m", "ziglang", "cc", "-v", "-pie", "-fPIE", "-lm", "-lpthread"]);
    zig.args(["-target", &format!("x86_64-linux-gnu.{LINKED}")])
        .arg(&source)
        .arg("-o")
        .arg(folder.join("empty"));
    for cache in ["ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"] {
        zig.env(cache, folder.join("zig"));
    }
    let out = zig.output().map_err(|e| format!("{}: {e}", python.display()))?;
    let told = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        return Err(format!("zig cannot link a program with glibc {LINKED}: {told}"));
    }
    let mut wanted: Vec<&str> = vec!["libc.so.6", LOADER, NONSHARED, START];
    wanted.extend(LIBRARIES.iter().map(|(name, _)| *name));
    wanted.iter().map(|name| named(&told, name, folder)).collect()
}

/// The path that ends with `/name` in the linker's command line.
fn named(told: &str, name: &str, folder: &Path) -> Result<PathBuf, String> {
    let mut words = told.split_whitespace().map(Path::new);
    let path = words.find(|w| w.file_name().is_some_and(|f| f == name));
    let path = path.ok_or_else(|| format!("zig links no {name}: has {ZIG} changed its command line?"))?;
    Ok(folder.join(path))
}

/// An archive that the system's gcc finds.
fn archive(name: &str, package: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(read(program("gcc").arg(format!("-print-file-name={name}")))?.trim());
    // gcc says the name again when there is no such file.
    if path.is_absolute() {
        return Ok(path);
    }
    Err(format!("gcc finds no {name}, which a release holds: apt-get install {package}"))
}

/// Links a program that calls what glibc 2.34 moved, and runs it.
fn try_out(cc: &Path, folder: &Path) -> CommandResult {
    const CALLS: &str = "#include <dlfcn.h>\n#include <pthread.h>\n#include <sys/stat.h>\n\
        static int constructed;\n\
        __attribute__((constructor)) static void construct(void) { constructed = 1; }\n\
        static void *thread(void *given) { return given; }\n\
        int main(void)\n{\n    pthread_t id;\n    struct stat about;\n    void *back = 0;\n\
        return !constructed || !dlsym(RTLD_DEFAULT, \"malloc\") || stat(\"/\", &about)\n\
        || pthread_create(&id, 0, thread, &id) || pthread_join(id, &back) || back != &id;\n}\n";
    let (source, binary) = (folder.join("calls.c"), folder.join("calls"));
    write(&source, CALLS)?;
    must(Command::new(cc).arg(&source).arg("-o").arg(&binary).args(["-pie", "-ldl", "-lpthread"]))?;
    must(&mut Command::new(&binary))?;
    let needs = super::needs::of_file(&binary)?;
    if needs.glibc > PROMISED {
        return Err(format!(
            "the linker for old releases of glibc binds {:?}: {:?}",
            needs.glibc, needs.because
        ));
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> CommandResult {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::copy(from, to).map(drop).map_err(|e| format!("{}: {e}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_the_linkers_command_line() {
        let told =
            "ar rcs zig/o/1/libx.a a.o\nld.lld -o empty zig/o/2/Scrt1.o --as-needed zig/o/3/libc.so.6\n";
        assert_eq!(named(told, "libc.so.6", Path::new("/d")), Ok("/d/zig/o/3/libc.so.6".into()));
        assert_eq!(named(told, "Scrt1.o", Path::new("/d")), Ok("/d/zig/o/2/Scrt1.o".into()));
        assert!(named(told, "libdl.so.2", Path::new("/d")).unwrap_err().contains("no libdl.so.2"));
    }
}
