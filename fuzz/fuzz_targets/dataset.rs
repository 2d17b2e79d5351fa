//! Tables of strangers: `cargo +nightly fuzz run dataset` (see `fuzz/Cargo.toml`).

#![no_main]

mod table;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    table::any(data);
    // No fuzzer guesses a CRC, or packs what it has found.
    table::any(&table::repaired(data));
    table::any(&table::packed(data));
});
