//! Models of what the live runtime's threads share, for loom.
//!
//! Loom runs a scenario in every order of the threads' steps, and with every value that the memory
//! orderings allow a thread to read. The scenarios run the product's own files: `sound.rs` compiles
//! them with loom's atomic types. Each scenario also runs on types with a planted race, and must
//! fail there:
//!
//! | module | plant |
//! |---|---|
//! | `unordered` | every ordering is `Relaxed` |
//! | `unfenced` | `SeqCst` is acquire and release; there are no fences |
//! | `torn` | a read-modify-write operation is a load and a store |
//!
//! Loom's rules differ from the language's in two points, so `atomics.rs` adds to them:
//!
//! - Loom takes `SeqCst` loads and stores as acquire and release. Its `SeqCst` fences are exact.
//!   So a fence stands before each `SeqCst` load. A weaker store before such a load then looks
//!   ordered, which the language does not promise.
//! - Loom lets a store come between the two halves of another thread's read-modify-write operation.
//!   So a store is a swap. It then also passes on what earlier writers of the same place released.

// Each module compiles the product's files with other atomic types.
#![allow(clippy::duplicate_mod)]
#![allow(dead_code)]

#[macro_use]
mod atomics;
mod memory;
mod sound;
mod torn;
mod unfenced;
mod unordered;

/// Runs a scenario in every order.
fn holds(scenario: fn()) {
    loom::model(scenario);
}

/// Checks that loom finds an order in which the scenario fails, for this reason.
fn fails(scenario: fn(), why: &str) {
    let found = std::panic::catch_unwind(|| loom::model(scenario)).expect_err("loom finds no race");
    let said = found.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| found.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(said.contains(why), "loom finds '{said}', not '{why}'");
}

/// What loom says of two threads that use memory at a time.
const RACE: &str = "Causality violation";

#[test]
fn one_thread_owns_a_block_at_a_time() {
    holds(sound::scenarios::two_claim_one_block);
    fails(unordered::scenarios::two_claim_one_block, RACE);
    fails(torn::scenarios::two_claim_one_block, RACE);
}

#[test]
fn one_thread_owns_each_of_many_blocks_at_a_time() {
    holds(sound::scenarios::one_claims_many);
    fails(unordered::scenarios::one_claims_many, RACE);
    fails(torn::scenarios::one_claims_many, RACE);
}

#[test]
fn two_owners_do_not_get_each_others_blocks() {
    holds(sound::scenarios::two_want_the_others);
    fails(unordered::scenarios::two_want_the_others, RACE);
    fails(torn::scenarios::two_want_the_others, RACE);
}

#[test]
fn a_released_block_has_its_owners_state() {
    holds(sound::scenarios::the_state_of_a_released_block);
    fails(unordered::scenarios::the_state_of_a_released_block, "the state is old");
}

#[test]
fn no_memory_is_armed_during_a_system_call() {
    holds(sound::scenarios::arming_and_a_system_call);
    fails(unfenced::scenarios::arming_and_a_system_call, RACE);
}

#[test]
fn no_memory_is_armed_during_a_system_call_without_a_slot() {
    holds(sound::scenarios::arming_and_more_buffers_than_slots);
    fails(unfenced::scenarios::arming_and_more_buffers_than_slots, RACE);
}

#[test]
fn each_buffer_has_a_slot_of_its_own() {
    holds(sound::scenarios::two_publish);
    fails(torn::scenarios::two_publish, "a buffer is not published");
}

#[test]
fn no_memory_is_armed_in_quiet() {
    holds(sound::scenarios::arming_and_quiet);
    fails(unfenced::scenarios::arming_and_quiet, RACE);
}

#[test]
fn no_memory_is_armed_by_an_old_look_at_its_mappings() {
    const WHY: &str = "armed by an old look";
    holds(sound::scenarios::arming_and_a_change);
    fails(sound::scenarios::arming_and_a_change_noted_before, WHY);
    fails(unordered::scenarios::arming_and_a_change, WHY);
}

#[test]
fn each_touch_is_told_once() {
    holds(sound::scenarios::two_write_one_reads);
    fails(unordered::scenarios::two_write_one_reads, RACE);
    fails(torn::scenarios::two_write_one_reads, "an entry is lost or told twice");
}

#[test]
fn a_full_ring_loses_no_touch_unnoticed() {
    holds(sound::scenarios::the_ring_is_full);
    fails(unordered::scenarios::the_ring_is_full, RACE);
}
