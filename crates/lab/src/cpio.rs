//! Archives as the kernel unpacks them into its first file system: "newc"
//! (Documentation/driver-api/early-userspace/ buffer-format.rst).

/// An archive under construction. Parents must be added before what is in them.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

impl Archive {
    /// A folder.
    pub fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER | 0o755, (0, 0), &[]);
    }

    /// A file with these permissions.
    pub fn file(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entry(name, FILE | mode, (0, 0), data);
    }

    /// A symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// A character device.
    pub fn device(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, DEVICE | 0o600, (major, minor), &[]);
    }

    /// The archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), data: &[u8]) {
        self.inode += 1;
        // inode, mode, uid, gid, links, mtime, size, major, minor, device major, minor, length of
        // the name, checksum
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            data.len() as u32,
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_110_bytes_and_everything_is_padded_to_4() {
        let mut a = Archive::default();
        a.folder("bin");
        a.file("bin/x", 0o755, b"abcde");
        a.link("sh", "bin/x");
        let bytes = a.finish();
        assert_eq!(bytes.len() % 4, 0);
        // 110 + "bin\0" + 2, then the file's header with its size at offset 54.
        assert_eq!(&bytes[116..122], b"070701");
        assert_eq!(&bytes[116 + 54..116 + 62], b"00000005");
        assert!(bytes.windows(10).any(|w| w == b"TRAILER!!!"));
    }
}
