//! Whether a program was built for CPUs with AVX-512.

use std::fs::File;
use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, EncodingKind};
use object::{Object, ObjectSection, ReadCache};

/// Bytes of code that are looked at.
const MOST: u64 = 64 << 20;

/// Whether the program's own code has instructions of AVX-512, which no emulator of the recorder
/// executes. Libraries are not looked at: they choose by the CPU that they find. A program that
/// does so itself is taken for one that needs AVX-512.
pub fn has_avx512(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let cache = ReadCache::new(file);
    let Ok(file) = object::File::parse(&cache) else { return false };
    let Some(text) = file.section_by_name(".text").filter(|s| s.size() <= MOST) else { return false };
    let Ok(code) = text.data() else { return false };
    let mut decoder = Decoder::with_ip(64, code, text.address(), DecoderOptions::NONE);
    decoder.iter().any(|i| i.code().encoding() == EncodingKind::EVEX)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn code_for_avx512_is_told_from_other_code() {
        let folder = std::env::temp_dir().join(format!("homenode-avx512-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = folder.join("a.c");
        let text = "double a[4096]; int main(void) { for (int i = 0; i < 4096; i++) a[i] = a[i] * 2 + 1; return 0; }";
        std::fs::write(&source, text).unwrap();
        let mut found = Vec::new();
        for march in ["skylake-avx512", "haswell"] {
            let program = folder.join(march);
            let mut gcc = Command::new("gcc");
            gcc.args(["-O3", "-mprefer-vector-width=512", &format!("-march={march}"), "-o"]);
            match gcc.arg(&program).arg(&source).output() {
                Ok(built) if built.status.success() => found.push(has_avx512(&program)),
                _ => println!("skipped: gcc does not build for {march}"),
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
        if found.len() == 2 {
            assert_eq!(found, [true, false]);
        }
        assert!(!has_avx512(Path::new("/etc/passwd")));
    }
}
