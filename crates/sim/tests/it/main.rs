//! From a program to a result: the programs of `kernels/` are built with homenode's compilers, recorded and simulated.

mod fidelity;
mod support;
