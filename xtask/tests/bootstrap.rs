//! `scripts/bootstrap.sh` on machines that lack something, made of a folder of stand-ins that is
//! all its PATH.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TOOLS: [&str; 24] = [
    "chromium",
    "gcc",
    "g++",
    "gfortran",
    "clang",
    "cmake",
    "make",
    "pkg-config",
    "git",
    "curl",
    "busybox",
    "mke2fs",
    "lstopo-no-graphics",
    "qemu-system-x86_64",
    "qemu-x86_64",
    "numactl",
    "xz",
    "zstd",
    "python3",
    "shellcheck",
    "node",
    "npm",
    "mpirun",
    "mpicc",
];
const NEW_CARGO: &str = "echo 'cargo 1.89.0 (abc 2025-08-01)'";
const OLD_CARGO: &str = "echo 'cargo 1.63.0'";

/// Finds the packages of `viewer/` where they are looked for, and nothing else.
const FIND: &str = "case $1 in viewer/*) echo there ;; esac";

/// Makes a stand-in for each package that it is asked to install.
const APT_GET: &str = r#"echo "apt-get $*" >>"$BIN/log"
for word; do case $word in -*|update|install|qq) ;; *) printf '#!/bin/sh\n' >"$BIN/$word"; chmod +x "$BIN/$word" ;; esac; done"#;

struct Machine {
    bin: PathBuf,
}

impl Machine {
    /// Has everything.
    fn new(name: &str) -> Self {
        let bin = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bootstrap-{name}"));
        let _ = fs::remove_dir_all(&bin);
        fs::create_dir_all(&bin).unwrap();
        for real in ["bash", "sh", "dirname", "mktemp", "rm", "env", "chmod", "setsid", "cp", "mkdir", "grep"]
        {
            let at = ["/usr/bin", "/bin"].iter().map(|d| Path::new(d).join(real)).find(|p| p.exists());
            symlink(at.unwrap(), bin.join(real)).unwrap();
        }
        let this = Self { bin };
        for tool in TOOLS {
            this.with(tool, "");
        }
        this.with("cargo", NEW_CARGO).with("apt-get", APT_GET).with("id", "echo 0").with("find", FIND);
        this
    }
    fn with(&self, tool: &str, script: &str) -> &Self {
        let path = self.bin.join(tool);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }
    fn without(&self, tool: &str) -> &Self {
        fs::remove_file(self.bin.join(tool)).unwrap();
        self
    }
    /// Runs it with neither terminal nor input; whether it succeeded, what it said, what was
    /// called.
    fn bootstrap(&self, ci: bool) -> (bool, String, String) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/bootstrap.sh");
        let mut command = Command::new(self.bin.join("setsid"));
        command.args(["--wait", "bash", script]).env_clear().stdin(Stdio::null());
        command.env("PATH", &self.bin).env("BIN", &self.bin).env("HOME", &self.bin);
        command.env("CARGO_HOME", self.bin.join("cargo-home"));
        if ci {
            command.env("CI", "true");
        }
        let out = command.output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap() + &String::from_utf8(out.stdout).unwrap();
        (out.status.success(), said, fs::read_to_string(self.bin.join("log")).unwrap_or_default())
    }
}

#[test]
fn it_is_silent_when_nothing_is_missing() {
    assert_eq!(Machine::new("full").bootstrap(false), (true, String::new(), String::new()));
}

#[test]
fn root_installs_what_is_missing_and_nothing_else() {
    let (good, said, log) = Machine::new("root").without("gfortran").without("cmake").bootstrap(false);
    assert!(good, "{said}");
    assert_eq!(log, "apt-get -qq update\napt-get -qq -y install --no-install-recommends gfortran cmake\n");
    assert!(said.contains("installing gfortran cmake"), "{said}");
}

#[test]
fn a_user_without_sudo_is_told_what_to_install() {
    let (good, said, log) = Machine::new("user").with("id", "echo 1000").without("gfortran").bootstrap(false);
    assert!(!good && log.is_empty());
    assert!(said.contains("sudo") && said.contains("apt-get install gfortran"), "{said}");
}

#[test]
fn sudo_is_not_used_without_asking() {
    let machine = Machine::new("ask");
    machine
        .with("id", "echo 1000")
        .with("sudo", "echo sudo >>$BIN/log; shift; exec \"$@\"")
        .without("gfortran");
    let (good, said, log) = machine.bootstrap(false);
    assert!(!good && log.is_empty(), "{log}");
    assert!(said.contains("no terminal to ask on"), "{said}");
    let (good, said, log) = machine.bootstrap(true);
    assert!(good, "{said}");
    assert!(log.starts_with("sudo\napt-get -qq update\nsudo\n"), "{log}");
}

#[test]
fn other_systems_are_told_what_is_missing() {
    let (good, said, _) = Machine::new("other").without("apt-get").without("clang").bootstrap(true);
    assert!(!good);
    assert!(said.contains("not Debian or Ubuntu") && said.contains("clang libomp-dev"), "{said}");
}

#[test]
fn an_old_cargo_is_replaced_through_the_rustup_that_is_there() {
    let machine = Machine::new("rustup");
    machine.with("cargo", OLD_CARGO).with("new-cargo", NEW_CARGO);
    machine.with("rustup", "echo \"rustup $*\" >>$BIN/log; cp $BIN/new-cargo $BIN/cargo");
    let (good, said, log) = machine.bootstrap(true);
    assert!(good, "{said}");
    let pinned = include_str!("../../rust-toolchain.toml");
    let version = pinned.lines().find_map(|l| l.strip_prefix("channel = ")).unwrap().trim_matches('"');
    assert!(log.starts_with(&format!("rustup toolchain install {version} ")), "{log}");
}

#[test]
fn where_the_pinned_rust_cannot_be_fetched_the_stable_one_is_taken() {
    let machine = Machine::new("offline");
    machine.with("cargo", OLD_CARGO).with("new-cargo", NEW_CARGO);
    let rustup = "echo \"rustup $*\" >>$BIN/log; case $1 in override) cp $BIN/new-cargo $BIN/cargo ;; *) exit 1 ;; esac";
    machine.with("rustup", rustup);
    let (good, said, log) = machine.bootstrap(true);
    assert!(good, "{said}");
    assert!(log.ends_with("rustup override set stable\n"), "{log}");
    assert!(said.contains("could not be fetched; taking rustup's stable toolchain"), "{said}");
}

#[test]
fn without_rustup_its_installer_is_fetched() {
    let machine = Machine::new("installer");
    machine.with("cargo", OLD_CARGO).with("new-cargo", NEW_CARGO);
    // The installer puts cargo where rustup would.
    machine.with("installer", "mkdir -p $CARGO_HOME/bin && cp $BIN/new-cargo $CARGO_HOME/bin/cargo");
    machine.with("curl", "while [ \"$1\" != -o ]; do shift; done; cp $BIN/installer \"$2\"");
    let (good, said, _) = machine.bootstrap(true);
    assert!(good, "{said}");
    assert!(said.contains("installing Rust with rustup"), "{said}");
}
