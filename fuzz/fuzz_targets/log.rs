//! Logs of strangers: `cargo +nightly fuzz run log` (see `fuzz/Cargo.toml`).

#![no_main]

mod read;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read::log(data);
    // No fuzzer guesses a CRC, or packs what it has found.
    read::log(&read::repaired(data));
    read::log(&read::packed(data));
});
