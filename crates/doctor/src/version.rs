//! What `homenode --version` says: the release, the commit, the build, and what is there of what
//! homenode needs beside itself.

use std::path::PathBuf;

use homenode_error::Result;
use homenode_lab::{kernel, qemu::Qemu};
use homenode_launch::places;

/// The whole text, a line each.
pub fn text() -> String {
    let qemu =
        Qemu::find(None).map_or_else(|e| e.message, |q| format!("QEMU {}.{}", q.version.0, q.version.1));
    let kernel =
        kernel::present().map_or_else(|| "no kernel yet".to_owned(), |path| path.display().to_string());
    format!(
        "homenode {} (commit {})\nbuild: {}\nrecorder: {}\nlive runtime: {}\nkernels: {}\nlab: {qemu}, {kernel}\n",
        env!("CARGO_PKG_VERSION"),
        env!("HOMENODE_COMMIT"),
        env!("HOMENODE_BUILD"),
        place(places::libraries()),
        place(places::live_library()),
        place(places::kernels()),
    )
}

fn place(found: Result<PathBuf>) -> String {
    found.map_or_else(
        |_| "missing ('homenode doctor' says what to do)".to_owned(),
        |path| path.display().to_string(),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_says_what_it_is_about() {
        let text = super::text();
        assert!(text.starts_with("homenode 0"), "{text}");
        for line in text.lines().skip(1) {
            let (name, value) = line.split_once(": ").expect(line);
            assert!(!name.is_empty() && !value.is_empty(), "{line}");
        }
        assert_eq!(text.lines().count(), 6);
    }
}
