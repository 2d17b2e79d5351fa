//! From a program to a result: the programs of `kernels/` are built with homenode's compilers,
//! recorded and simulated.

mod determinism;
mod false_sharing;
mod fidelity;
mod flags;
mod hostile;
mod journals;
mod support;
