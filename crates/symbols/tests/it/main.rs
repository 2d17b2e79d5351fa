//! Names of real programs' data: small programs are compiled with several compilers and options,
//! run, and asked about.

mod allocations;
mod mutations;
mod programs;
