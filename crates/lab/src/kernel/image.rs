//! Kernel images: what is in them, and unpacking them on the host.
//!
//! A `bzImage` unpacks itself, which takes seconds under emulation. QEMU also takes the unpacked
//! kernel, if it was built with a PVH entry. Documentation/x86/boot.rst describes the header.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use crate::error::{self, Error, Result};

/// Facts in a kernel image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFacts {
    /// The version, as `uname -r` will print it; a plain `vmlinux` has none.
    pub version: Option<String>,
    /// The place of the compressed kernel in the file.
    payload: Option<(usize, usize)>,
}

/// Larger than any kernel.
const LARGEST: usize = 512 << 20;
/// Magic number of LZ4's old format, which `lz4 -l` writes and kernels use.
const LZ4_LEGACY: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];
/// Magic number of a zstd frame (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Uncompressed size of LZ4's blocks.
const LZ4_BLOCK: usize = 8 << 20;

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path)
        .map_err(|e| error::of_file("read", path, &e).hint("a kernel that one may read: --kernel IMAGE"))
}

/// Reads an image's facts.
///
/// # Errors
/// The image cannot be read, or it is no x86-64 kernel.
pub fn look(path: &Path) -> Result<ImageFacts> {
    let bytes = read(path)?;
    parse(&bytes).ok_or_else(|| {
        Error::usage(format!("{} is not a Linux kernel for x86-64", path.display()))
            .hint("give --kernel a bzImage (/boot/vmlinuz-…) or a vmlinux")
    })
}

fn parse(bytes: &[u8]) -> Option<ImageFacts> {
    if bytes.starts_with(b"\x7fELF\x02\x01") && u16_at(bytes, 18) == Some(62) {
        return Some(ImageFacts { version: None, payload: None });
    }
    // Protocol 2.08, from 2007, is the first with the place of the compressed kernel.
    if bytes.get(0x202..0x206)? != b"HdrS" || u16_at(bytes, 0x206)? < 0x208 {
        return None;
    }
    let sectors = usize::from(*bytes.get(0x1f1)?);
    let setup = (if sectors == 0 { 4 } else { sectors } + 1) * 512;
    let start = setup.checked_add(u32_at(bytes, 0x248)? as usize)?;
    let length = u32_at(bytes, 0x24c)? as usize;
    let text = bytes.get(0x200 + usize::from(u16_at(bytes, 0x20e)?)..)?;
    let text = &text[..text.iter().position(|b| *b == 0 || *b == b' ')?];
    let version = std::str::from_utf8(text).ok()?;
    // The version becomes part of a path.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+~".contains(c);
    let version = (!version.is_empty() && version.chars().all(plain)).then(|| version.to_owned());
    bytes.get(start..start.checked_add(length)?)?;
    Some(ImageFacts { version, payload: Some((start, length)) })
}

/// The fastest file to boot: the kernel unpacked from `image`, kept in `cache`; or `image` itself,
/// if its compression is not supported here.
///
/// # Errors
/// The image or the cache cannot be read or written.
pub fn unpacked(image: &Path, facts: &ImageFacts, cache: &Path) -> Result<PathBuf> {
    let Some((start, length)) = facts.payload else { return Ok(image.to_owned()) };
    let about = fs::metadata(image).map_err(|e| error::of_file("read", image, &e))?;
    let changed = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let version = facts.version.as_deref().unwrap_or("unknown");
    let folder = cache.join("vmlinux");
    let kept = folder.join(format!("{version}-{}-{}", about.len(), changed.as_nanos()));
    if kept.is_file() {
        return Ok(kept);
    }
    let bytes = read(image)?;
    // The last four bytes are the unpacked size.
    let payload = bytes.get(start..start + length.saturating_sub(4)).unwrap_or_default();
    let kernel = lz4_legacy(payload).or_else(|| zstd(payload));
    let Some(kernel) = kernel.filter(|k| k.starts_with(b"\x7fELF")) else {
        return Ok(image.to_owned());
    };
    fs::create_dir_all(&folder)
        .map_err(|e| error::of_file("create", &folder, &e).hint(error::ANOTHER_CACHE))?;
    // Writes under another name first, because another homenode may be looking.
    let part = folder.join(format!("{version}.{}.part", std::process::id()));
    fs::write(&part, kernel).and_then(|()| fs::rename(&part, &kept)).map_err(|e| {
        let _ = fs::remove_file(&part);
        error::of_file("write", &kept, &e)
    })?;
    Ok(kept)
}

fn lz4_legacy(mut packed: &[u8]) -> Option<Vec<u8>> {
    packed = packed.strip_prefix(&LZ4_LEGACY)?;
    let mut out = Vec::new();
    let mut block = vec![0; LZ4_BLOCK];
    while let Some(size) = u32_at(packed, 0) {
        if size == u32::from_le_bytes(LZ4_LEGACY) {
            packed = &packed[4..];
            continue;
        }
        let (this, rest) = packed[4..].split_at_checked(size as usize)?;
        let n = lz4_flex::block::decompress_into(this, &mut block).ok()?;
        out.extend_from_slice(&block[..n]);
        if out.len() > LARGEST {
            return None;
        }
        packed = rest;
    }
    Some(out)
}

/// Unpacks by the tool `zstd`, if it is installed. The kernel can also unpack itself.
fn zstd(packed: &[u8]) -> Option<Vec<u8>> {
    if !packed.starts_with(&ZSTD) {
        return None;
    }
    let mut tool = Command::new("zstd");
    tool.args(["-q", "-d", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = tool.spawn().ok()?;
    let mut to = child.stdin.take()?;
    let out = std::thread::scope(|scope| {
        // The tool may stop reading early; its exit status tells.
        scope.spawn(move || drop(to.write_all(packed)));
        child.wait_with_output()
    });
    out.ok().filter(|o| o.status.success() && o.stdout.len() <= LARGEST).map(|o| o.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bz_image(payload: &[u8]) -> Vec<u8> {
        let mut b = vec![0; 2 * 512];
        b[0x1f1] = 1;
        b[0x202..0x206].copy_from_slice(b"HdrS");
        b[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        b[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        b[0x300..0x30c].copy_from_slice(b"6.1.0-x (me)");
        b[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        b.extend_from_slice(payload);
        b
    }

    #[test]
    fn the_header_says_version_and_payload() {
        let facts = parse(&bz_image(b"payload")).unwrap();
        assert_eq!(facts, ImageFacts { version: Some("6.1.0-x".into()), payload: Some((1024, 7)) });
    }

    #[test]
    fn damage_is_no_kernel() {
        let whole = bz_image(b"payload");
        for n in 0..whole.len() {
            assert_eq!(parse(&whole[..n]), None, "{n} bytes");
        }
        let mut far = whole;
        far[0x248..0x24c].fill(0xff);
        assert_eq!(parse(&far), None);
    }

    #[test]
    fn blocks_are_joined_and_damage_is_noticed() {
        // A literal run of five, as LZ4 writes it.
        let block = [&[0x50_u8][..], b"hello"].concat();
        let size = (block.len() as u32).to_le_bytes();
        let packed = [&LZ4_LEGACY[..], &size, &block, &size, &block].concat();
        assert_eq!(lz4_legacy(&packed).as_deref(), Some(&b"hellohello"[..]));
        assert_eq!(lz4_legacy(&packed[..packed.len() - 1]), None);
        assert_eq!(lz4_legacy(b"\x1f\x8b"), None);
    }
}
