//! Commands end to end: with compilers, programs and kernels.

mod kernel;
mod lab;
mod machine;
mod rec;
mod record;
mod support;
