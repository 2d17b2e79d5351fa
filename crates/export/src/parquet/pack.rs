//! Packing with zstd.

use std::io;

use zstd_safe::{CCtx, CParameter, compress_bound, get_error_name};

/// Low: a page is packed while somebody waits, and its numbers are small already.
const LEVEL: i32 = 1;

/// Packs pages, one after the other.
pub struct Packer {
    context: CCtx<'static>,
    out: Vec<u8>,
}

impl Packer {
    pub fn new() -> io::Result<Self> {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(error)?;
        Ok(Self { context, out: Vec::new() })
    }

    /// The packed bytes.
    pub fn pack(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        let bound = compress_bound(bytes.len());
        if self.out.len() < bound {
            self.out.resize(bound, 0);
        }
        let length = self.context.compress2(&mut self.out[..], bytes).map_err(error)?;
        Ok(&self.out[..length])
    }
}

fn error(code: usize) -> io::Error {
    io::Error::other(format!("zstd: {}", get_error_name(code)))
}
