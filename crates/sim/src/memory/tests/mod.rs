//! The third stage against closed forms, and against itself.

mod bandwidth;
mod chunks;
mod copies;
mod frames;
mod latency;
mod moving;
mod refusals;
mod waiting;
