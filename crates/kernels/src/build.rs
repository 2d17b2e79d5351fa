//! Building the kernels: with CMake, in a folder of the user's cache, once for each variant and
//! compiler.
//!
//! A stamp beside the binaries holds what they were built from. When homenode's compilers or
//! libraries change, the folder is made anew; when sources change, CMake sees to it. A lock keeps
//! two commands from building in one folder.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use homenode_error::{Context, Error, Result};
use homenode_launch::places;
use homenode_task::Task;

use super::Kernel;

/// How a kernel is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuildVariant {
    /// By the compiler as it is: to run and to verify.
    Native,
    /// By the compiler as it is, with homenode's C library: to record under emulation.
    Linked,
    /// By `homenode-cc` and `homenode-fc`: to record.
    Instrumented,
    /// By the compiler as it is, linked with `libhomenode`: to place threads and memory by its own
    /// calls.
    Placed,
}

impl BuildVariant {
    /// Its name in the cache and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Linked => "linked",
            Self::Instrumented => "instrumented",
            Self::Placed => "placed",
        }
    }
}

/// Lines of a failed build that are shown.
const TAIL: usize = 12;
/// Bytes of a file that is read to see whether it has changed, at most.
const SOURCE: u64 = 1 << 20;
/// The log of the last build, in its folder.
const LOG: &str = "homenode-build.log";
/// What the binaries were built with, in their folder.
const TOOLS: &str = "homenode-tools";
/// Variables that choose compilers or their options.
const CHOOSING: [&str; 8] =
    ["CC", "FC", "CFLAGS", "FFLAGS", "LDFLAGS", "HOMENODE_CC", "HOMENODE_FC", "HOMENODE_LIB_DIR"];

impl Kernel {
    /// Builds it, unless that has been done, and says where it is.
    ///
    /// # Errors
    /// What failed, the end of the build's output, and what to install.
    pub fn build(&self, variant: BuildVariant, task: &dyn Task) -> Result<PathBuf> {
        let job = Job::new(self, variant)?;
        let _lock = job.lock(task)?;
        job.renew_for_tools()?;
        let binary = job.folder.join(&self.binary);
        let stamp = job.folder.join(format!("homenode-built-{}", self.binary));
        let sources = fingerprint(&sources(&self.folder));
        if binary.is_file() && fs::read_to_string(&stamp).is_ok_and(|s| s == sources) {
            return Ok(binary);
        }
        task.say(&format_args!("building {} ({}) in {}", self.name, variant.name(), job.folder.display()));
        if job.configured() && !job.knows(&self.binary) {
            // A compiler was missing when the folder was set up; it may be there now.
            job.empty()?;
        }
        job.configure()?;
        if !job.knows(&self.binary) {
            return Err(job.failed("its compiler was not found", &self.language));
        }
        job.make(&self.binary)?;
        if !binary.is_file() {
            return Err(job.failed("the build made no such program", &self.language));
        }
        fs::write(&stamp, sources).context(|| format!("cannot write {}", stamp.display()))?;
        Ok(binary)
    }
}

/// Which package brings what a failed build lacked, by its output.
pub fn remedy(output: &str, language: &str) -> String {
    let install = |debian: &str, fedora: &str| {
        format!("install it: apt install {debian} (Debian, Ubuntu), dnf install {fedora} (Fedora, RHEL)")
    };
    if output.contains("OpenMP") && output.contains("Could NOT find") {
        return install("gcc libgomp1, or for clang libomp-dev", "gcc libgomp, or for clang libomp-devel");
    }
    if output.contains("No CMAKE_C_COMPILER") || output.contains("cannot run the compiler 'gcc'") {
        return install("gcc make", "gcc make");
    }
    // CMake before 3.13 takes '-S' for nothing, and looks for the sources in the build folder.
    if output.contains("does not appear to contain CMakeLists.txt") || output.contains("CMake 3.16 or higher")
    {
        return "this CMake is too old: kernels take CMake 3.16 or later (RHEL 8: dnf install cmake; with pip: pip install cmake)".into();
    }
    if output.contains("tsan-instrument-func-entry-exit") {
        return "this GCC is too old to record with: homenode-cc takes GCC 11 or later (RHEL 8: dnf install gcc-toolset-13); \
                HOMENODE_CC names a compiler"
            .into();
    }
    if output.contains("CMAKE_MAKE_PROGRAM") {
        return install("make", "make");
    }
    if language == "Fortran" && (output.contains("No Fortran compiler") || output.contains("'gfortran'")) {
        return install("gfortran", "gcc-gfortran");
    }
    "the whole output is in the log".into()
}

struct Job<'a> {
    kernel: &'a Kernel,
    variant: BuildVariant,
    folder: PathBuf,
    /// Environment of CMake.
    set: BTreeMap<&'static str, PathBuf>,
    options: Vec<String>,
    /// Files whose change makes all binaries old.
    tools: Vec<PathBuf>,
}

impl<'a> Job<'a> {
    fn new(kernel: &'a Kernel, variant: BuildVariant) -> Result<Self> {
        let mut set = BTreeMap::new();
        let mut options = Vec::new();
        let mut tools = Vec::new();
        if variant != BuildVariant::Native {
            let libraries = places::libraries()?;
            let agent = libraries.join("libhomenode.so");
            if agent.is_file() {
                options.push(format!("-DHOMENODE_LIB_DIR={}", libraries.display()));
                tools.push(agent);
            }
            set.insert("HOMENODE_LIB_DIR", libraries);
        }
        if variant == BuildVariant::Instrumented {
            let libraries = places::libraries()?;
            set.insert("CC", places::beside("homenode-cc")?);
            set.insert("FC", places::beside("homenode-fc")?);
            tools.extend(set.values().filter(|p| p.is_file()).cloned());
            tools.push(libraries.join("libhomenode_trace.so"));
        }
        if variant == BuildVariant::Placed {
            let agent = places::live_library()?;
            let folder = agent.parent().unwrap_or(&agent);
            options.push(format!("-DHOMENODE_LIB_DIR={}", folder.display()));
            tools.push(agent);
        }
        let mut key = Hash::default();
        key.add(kernel.folder.as_os_str().as_encoded_bytes());
        for (name, path) in &set {
            key.add(name.as_bytes());
            key.add(path.as_os_str().as_encoded_bytes());
        }
        for name in CHOOSING.iter().filter(|n| !set.contains_key(**n)) {
            key.add(env::var_os(name).unwrap_or_default().as_encoded_bytes());
        }
        let folder = cache()?.join(format!("{}-{:016x}", variant.name(), key.0));
        Ok(Self { kernel, variant, folder, set, options, tools })
    }

    /// Waits until nobody else builds in the folder.
    fn lock(&self, task: &dyn Task) -> Result<File> {
        let parent = self.folder.parent().unwrap_or(&self.folder);
        let failed = || format!("cannot make the folder {}", parent.display());
        fs::create_dir_all(parent)
            .context(failed)
            .map_err(|e| e.hint("set XDG_CACHE_HOME to a folder to write in"))?;
        let path = self.folder.with_extension("lock");
        let failed = || format!("cannot lock {}", path.display());
        let file = OpenOptions::new().create(true).append(true).open(&path).context(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                task.say(&"waiting for another homenode that builds kernels");
                file.lock().context(failed)?;
            }
            Err(TryLockError::Error(e)) => return Err(Error::failed(failed()).tried(e)),
        }
        Ok(file)
    }

    /// Empties the folder when homenode's compilers or libraries are not those that filled it.
    fn renew_for_tools(&self) -> Result<()> {
        let stamp = self.folder.join(TOOLS);
        let now = fingerprint(&self.tools);
        if fs::read_to_string(&stamp).is_ok_and(|s| s == now) {
            return Ok(());
        }
        self.empty()
    }

    fn empty(&self) -> Result<()> {
        let failed = || format!("cannot renew the folder {}", self.folder.display());
        match fs::remove_dir_all(&self.folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::failed(failed()).tried(e));
            }
            _ => {}
        }
        fs::create_dir_all(&self.folder).context(failed)?;
        fs::write(self.folder.join(TOOLS), fingerprint(&self.tools)).context(failed)
    }

    fn configured(&self) -> bool {
        self.folder.join("CMakeCache.txt").is_file()
    }

    /// Whether CMake found all that a kernel needs.
    fn knows(&self, binary: &str) -> bool {
        self.folder.join("CMakeFiles").join(format!("{binary}.dir")).is_dir()
    }

    fn configure(&self) -> Result<()> {
        if self.configured() {
            return Ok(());
        }
        let mut cmake = self.cmake();
        cmake.arg("-S").arg(&self.kernel.folder).arg("-B").arg(&self.folder).args(&self.options);
        let done = self.run(cmake, true);
        if done.is_err() {
            // CMake would keep what it did not find.
            let _ = fs::remove_file(self.folder.join("CMakeCache.txt"));
        }
        done
    }

    fn make(&self, binary: &str) -> Result<()> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        let mut cmake = self.cmake();
        cmake.arg("--build").arg(&self.folder).args(["--target", binary, "--parallel", &jobs]);
        self.run(cmake, false)
    }

    fn cmake(&self) -> Command {
        let mut cmake = Command::new("cmake");
        // Messages are searched for what is missing.
        cmake.envs(&self.set).env("LC_ALL", "C");
        // Of a make that homenode may have been started from.
        for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "CMAKE_GENERATOR"] {
            cmake.env_remove(name);
        }
        cmake
    }

    fn run(&self, mut cmake: Command, first: bool) -> Result<()> {
        let path = self.folder.join(LOG);
        let failed = || format!("cannot write {}", path.display());
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        if first {
            let _ = fs::remove_file(&path);
        }
        let mut log = options.open(&path).context(failed)?;
        writeln!(log, "$ {cmake:?}").context(failed)?;
        let error = log.try_clone().context(failed)?;
        let status = cmake.stdin(Stdio::null()).stdout(log).stderr(error).status().map_err(|e| {
            Error::failed(self.title()).tried(format!("run cmake: {e}")).hint(
                "kernels are built with CMake and make; install them: apt install cmake make (Debian, Ubuntu), dnf \
                 install cmake make (Fedora, RHEL)",
            )
        })?;
        if status.success() {
            return Ok(());
        }
        let command: Vec<_> = cmake.get_args().take(2).map(OsStr::to_string_lossy).collect();
        Err(self.failed(&format!("cmake {} …: {status}", command.join(" ")), &self.kernel.language))
    }

    fn title(&self) -> String {
        format!("cannot build the kernel {} ({})", self.kernel.name, self.variant.name())
    }

    fn failed(&self, what: &str, language: &str) -> Error {
        let path = self.folder.join(LOG);
        let text = fs::read(&path).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let mut tried = what.to_owned();
        for line in &lines[lines.len().saturating_sub(TAIL)..] {
            let clean: String = line.chars().filter(|c| !c.is_control()).take(300).collect();
            tried += &format!("\n         | {clean}");
        }
        Error::failed(self.title()).tried(tried).hint(format!(
            "{} ({})",
            remedy(&text, language),
            path.display()
        ))
    }
}

/// The folder for everybody's builds.
///
/// # Errors
/// Neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn cache() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| set("HOME").map(|h| h.join(".cache")))
        .ok_or_else(|| {
            Error::failed("there is no folder to build kernels in")
                .tried("read XDG_CACHE_HOME and HOME: neither is set")
                .hint("set XDG_CACHE_HOME to a folder to write in")
        })?;
    Ok(base.join("homenode/kernels"))
}

/// All files that kernels are built from.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned(), folder.join("../include"), folder.join("../fortran")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(t) if t.is_dir() => folders.push(path),
                Ok(_) => files.push(path),
                Err(_) => {}
            }
        }
    }
    files
}

/// Names and sizes of files, and contents of small or times of large ones, as one word.
fn fingerprint(files: &[PathBuf]) -> String {
    let mut files: Vec<&PathBuf> = files.iter().collect();
    files.sort();
    let mut hash = Hash::default();
    for file in files {
        hash.add(file.as_os_str().as_encoded_bytes());
        let Ok(m) = fs::metadata(file) else { continue };
        hash.add(&m.len().to_le_bytes());
        // Not a source's time, and not a part of a second: a copy, on a lab's disk for one, is the
        // same.
        match (m.len() <= SOURCE).then(|| fs::read(file)) {
            Some(Ok(bytes)) => hash.add(&bytes),
            _ => hash.add(&m.mtime().to_le_bytes()),
        }
    }
    format!("{:016x}\n", hash.0)
}

/// FNV-1a, 64 bits: the same in every version of homenode.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_follows_from_the_output() {
        assert!(remedy("Could NOT find OpenMP_C (missing: …)", "C").contains("libgomp"));
        assert!(remedy("-- No Fortran compiler: nas-mg is left out", "Fortran").contains("gfortran"));
        assert!(remedy("-- No Fortran compiler: nas-mg is left out\nmain.c: error", "C").contains("log"));
        let old = "CMake Error: The source directory \"/b\" does not appear to contain CMakeLists.txt.";
        assert!(remedy(old, "C").contains("CMake 3.16 or later"));
        let old = "cc1: error: invalid --param name 'tsan-instrument-func-entry-exit'";
        assert!(remedy(old, "C").contains("GCC 11 or later"));
        assert!(remedy("", "C").contains("log"));
    }

    #[test]
    fn a_changed_file_changes_the_fingerprint() {
        let file = env::temp_dir().join(format!("homenode-fingerprint-{}", std::process::id()));
        let files = [file.clone()];
        let absent = fingerprint(&files);
        fs::write(&file, "1").unwrap();
        let one = fingerprint(&files);
        fs::write(&file, "12").unwrap();
        assert!(absent != one && one != fingerprint(&files));
        fs::remove_file(file).unwrap();
    }
}
