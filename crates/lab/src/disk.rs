//! The guest's disk: an ext4 image, made without mounting anything.
//!
//! Its contents do not depend on when or where it was made, except for the times of the files.
//!
//! The guest needs a disk because a program's `.data` behaves differently in memory. On a disk, as
//! on a real machine, a private page of it belongs to the page cache until it is written.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use homenode_model::Bytes;

use crate::carry::{Carry, DiskItem};
use crate::error::{self, Error, Result};

/// Default space for the program's files. It costs nothing before it is written.
pub const SPARE: Bytes = Bytes::gib(1);

/// The file system's identifier, and the key by which its folders are sorted: the same each time.
const NAME: &str = "686f6d65-6e6f-4465-8c61-620000000001";
/// The file system's time: 2026-01-01, as the guest's clock (seconds since 1970).
const MADE: &str = "1767225600";

/// Where `mke2fs` may be; it is not always in a user's PATH.
const TOOLS: [&str; 4] = ["mke2fs", "/usr/sbin/mke2fs", "/sbin/mke2fs", "/usr/local/sbin/mke2fs"];

/// Makes the image in `scratch`.
///
/// # Errors
/// No `mke2fs`, no space, a file that cannot be read.
pub fn make(carry: &Carry, spare: Bytes, scratch: &Path) -> Result<PathBuf> {
    let stage = scratch.join("stage");
    fs::create_dir(&stage).map_err(|e| error::of_file("create", &stage, &e))?;
    let (mut bytes, mut files) = (0_u64, 0_u64);
    let mut folders = Vec::new();
    for (path, item) in carry.items() {
        let to = stage.join(path.strip_prefix("/").unwrap_or(path));
        put(item, &to).map_err(|e| error::of_file("write", &to, &e))?;
        files += 1;
        match item {
            DiskItem::File(_, size) => bytes += size.next_multiple_of(4096),
            DiskItem::Made(data, _) => bytes += (data.len() as u64).next_multiple_of(4096),
            // Sets permissions last: a folder may be read-only.
            DiskItem::Folder(mode) => folders.push((to, *mode)),
            DiskItem::Link(_) => {}
        }
    }
    let image = scratch.join("disk");
    for (folder, mode) in folders.iter().rev() {
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(*mode));
    }
    // An inode has 256 bytes; a folder takes a block.
    let inodes = files + 16_384;
    let size = bytes + inodes * 256 + files * 4096 / 2 + (bytes >> 5) + (16 << 20) + spare.0;
    let size = size.next_multiple_of(crate::qemu::MEMORY_DISK_UNIT.0);
    let made = format(&stage, &image, size, inodes);
    for (folder, _) in &folders {
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    }
    let _ = fs::remove_dir_all(&stage);
    made.map(|()| image)
}

fn put(item: &DiskItem, to: &Path) -> io::Result<()> {
    match item {
        DiskItem::Folder(_) => fs::create_dir(to),
        DiskItem::Link(target) => symlink(target, to),
        // A hard link is cheapest. Another disk or another owner needs a copy.
        DiskItem::File(from, _) => fs::hard_link(from, to).or_else(|_| copy(from, to)),
        DiskItem::Made(bytes, mode) => {
            let mut file = File::create(to)?;
            file.write_all(bytes)?;
            file.set_permissions(fs::Permissions::from_mode(*mode))
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    // The guest compares times, and so does make.
    let modified = fs::metadata(from)?.modified()?;
    // A read-only file cannot be opened for writing; its time does not matter then.
    match File::options().write(true).open(to) {
        Ok(file) => file.set_modified(modified),
        Err(_) => Ok(()),
    }
}

fn format(stage: &Path, image: &Path, size: u64, inodes: u64) -> Result<()> {
    let file = File::create(image).map_err(|e| error::of_file("create", image, &e))?;
    file.set_len(size).map_err(|e| error::of_file("write", image, &e))?;
    drop(file);
    let failed = |why: String| Error::failed("cannot make the guest's disk").tried(format!("mke2fs: {why}"));
    for tool in TOOLS {
        let out = Command::new(tool)
            .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-I", "256", "-m", "0"])
            .args(["-O", "^has_journal,^resize_inode,^metadata_csum", "-E"])
            .arg(format!("lazy_itable_init=1,root_owner=0:0,nodiscard,hash_seed={NAME}"))
            .args(["-U", NAME])
            .env("E2FSPROGS_FAKE_TIME", MADE)
            .arg("-N")
            .arg(inodes.to_string())
            .arg("-d")
            .arg(stage)
            .arg(image)
            .stdin(Stdio::null())
            .output();
        match out {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e.to_string())),
            Ok(out) if out.status.success() => return Ok(()),
            Ok(out) => {
                let text = String::from_utf8_lossy(&out.stderr);
                let error = failed(text.lines().last().unwrap_or("it failed").trim().to_owned());
                let full = text.contains("No space") || text.contains("not allocate block");
                return Err(if full {
                    error.hint("the disk is full: free some space, or set TMPDIR to a folder on another disk")
                } else {
                    error
                });
            }
        }
    }
    Err(failed("it is not there".into()).hint("install e2fsprogs"))
}
