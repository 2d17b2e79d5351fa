//! What is loaded into an emulated program (`homenode record --on emulator`).
//!
//! The program is as it is: the emulator's plug-in sees its accesses. This library tells the
//! plug-in all else, and has the recorder's front ends (`homenode_trace`: teams, threads, OpenMP's
//! locks, the program's own marks) for that. What `homenode-cc` redirects when it links stands here
//! under the functions' own names, because nothing is linked anew: allocations ([`alloc`]) and
//! mutexes ([`mutex`]).

mod alloc;
mod mutex;
