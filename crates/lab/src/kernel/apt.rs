//! Fetches packages by apt, as an ordinary user. It installs nothing and changes nothing of the
//! system's.
//!
//! apt checks the archive's signatures itself. Packages that the system's lists do not have come
//! from Debian's next release, from the archive of the system's own packages, with lists and
//! settings in a folder of homenode's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{self, Error, Result};

/// The first release of Debian with a kernel of [`super::RECENT`]: 13, Linux 6.12.
const NEXT: &str = "trixie";

/// apt, with the system's lists or with other ones.
pub struct Apt {
    folder: PathBuf,
    options: Vec<String>,
}

impl Apt {
    /// apt with the system's lists. Packages go to `folder`.
    pub fn system(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), options: vec!["-q".into()] }
    }

    /// apt with the lists of Debian's next release. It fetches them into `folder`, where packages
    /// go, too.
    ///
    /// # Errors
    /// The system's packages are not Debian's, or there is no network.
    pub fn next(folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Self> {
        let archive = archive(folder)?;
        let at = |name: &str| folder.join(name);
        for sub in ["lists/partial", "apt/archives/partial"] {
            fs::create_dir_all(at(sub)).map_err(|e| error::of_file("create", &at(sub), &e))?;
        }
        let write = |name: &str, text: String| {
            fs::write(at(name), text).map_err(|e| error::of_file("write", &at(name), &e))
        };
        write("sources.list", format!("deb [arch=amd64 target=Packages lang=none] {archive} {NEXT} main\n"))?;
        // Hooks of an update are the system's. Without an error mode of 'any', a list that cannot
        // be fetched is only a warning.
        write(
            "apt.conf",
            format!(
                "#clear APT::Update;\nAPT::Update::Error-Mode \"any\";\nDir::Etc::SourceList \"{}\";\n\
                 Dir::Etc::SourceParts \"-\";\nDir::State::Lists \"{}\";\nDir::Cache \"{}\";\n",
                at("sources.list").display(),
                at("lists").display(),
                at("apt").display()
            ),
        )?;
        let apt =
            Self { options: ["-q", "-c", "apt.conf"].map(str::to_owned).to_vec(), ..Self::system(folder) };
        say(&format!("fetching the package list of Debian's {NEXT}"));
        apt.run("apt-get", &["-o", "APT::Sandbox::User=", "update"])?;
        Ok(apt)
    }

    /// The dependencies of a package, one a line.
    ///
    /// # Errors
    /// There is no such package, or no apt.
    pub fn depends(&self, package: &str) -> Result<String> {
        self.run("apt-cache", &["depends", "--important", package])
    }

    /// Fetches a package.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn download(&self, package: &str) -> Result<()> {
        self.run("apt-get", &["-o", "APT::Sandbox::User=", "download", package]).map(drop)
    }

    fn run(&self, name: &str, args: &[&str]) -> Result<String> {
        let options = self.options.iter().map(String::as_str);
        tool(&self.folder, name, &options.chain(args.iter().copied()).collect::<Vec<_>>())
    }
}

/// The address of Debian's archive in the system's configuration.
fn archive(folder: &Path) -> Result<String> {
    let of = ["Created-By: Packages", "Origin: Debian", "Label: Debian", "Component: main"];
    let list = tool(folder, "apt-get", &[&["indextargets", "--format", "$(REPO_URI)"][..], &of].concat())?;
    let first = list.lines().map(str::trim).find(|l| !l.is_empty() && !l.contains(char::is_whitespace));
    first.map(str::to_owned).ok_or_else(|| {
        Error::failed("there is no recent kernel for the lab")
            .tried(
                "apt-get indextargets: the system's packages are not Debian's, or their lists are not here",
            )
            .hint(help())
    })
}

/// The remedy if no kernel is found.
pub const fn help() -> &'static str {
    "on Debian and Ubuntu 'apt-get update' as root brings the package lists up to date; elsewhere name a kernel: \
     --kernel IMAGE --modules DIR"
}

/// Runs a command in a folder and returns its output.
///
/// # Errors
/// The command fails or does not exist.
pub fn tool(folder: &Path, name: &str, args: &[&str]) -> Result<String> {
    let failed = |why: String| {
        let line = [&[name], args].concat().join(" ");
        Error::failed("cannot fetch a kernel for the lab").tried(format!("{line}: {why}")).hint(help())
    };
    let out =
        Command::new(name).args(args).current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null()).output();
    match out {
        Ok(out) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stderr);
            let line = text.lines().rfind(|l| l.starts_with("E:")).or(text.lines().last());
            Err(failed(line.unwrap_or("it failed").trim().to_owned()))
        }
        Err(e) => Err(failed(e.to_string())),
    }
}
