//! Streams between this process and the guest's ports, byte for byte.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Number of bytes that have arrived, readable while more arrive.
#[derive(Clone, Debug, Default)]
pub struct ByteCount(Arc<AtomicU64>);

impl ByteCount {
    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Relays the port's output to `to`, on a thread. Bytes that cannot be written are counted and
/// dropped, because the guest must not wait for a reader that is gone.
pub fn out_of(port: UnixStream, mut to: Box<dyn Write + Send>) -> ByteCount {
    let count = ByteCount::default();
    let counted = count.clone();
    thread::spawn(move || {
        let mut port = port;
        let mut buffer = vec![0; 64 << 10];
        let mut gone = false;
        while let Some(n) = read(&mut port, &mut buffer) {
            if !gone {
                gone = to.write_all(&buffer[..n]).and_then(|()| to.flush()).is_err();
            }
            counted.0.fetch_add(n as u64, Ordering::Release);
        }
    });
    count
}

/// Relays `from` to the port, on a thread that nobody waits for: a terminal never ends.
///
/// At the end this closes only its own direction, and another handle of the port must stay open:
/// QEMU drops unread bytes of a socket that is closed altogether.
pub fn into(port: UnixStream, from: Option<Box<dyn Read + Send>>) {
    thread::spawn(move || {
        let mut port = port;
        if let Some(mut from) = from {
            let mut buffer = vec![0; 64 << 10];
            while let Some(n) = read(&mut from, &mut buffer) {
                if port.write_all(&buffer[..n]).is_err() {
                    return;
                }
            }
        }
        let _ = port.shutdown(Shutdown::Write);
    });
}

/// Reads some bytes; `None` at the end, or on an error.
fn read(from: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(n) => return Some(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
