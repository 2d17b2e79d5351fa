//! Commands end to end: with compilers, programs and kernels.

mod kernel;
mod machine;
mod rec;
mod record;
mod run;
mod support;
