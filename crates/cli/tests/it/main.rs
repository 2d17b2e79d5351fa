//! Commands end to end: with compilers, programs and kernels.

mod c_api;
mod container;
mod doctor;
mod emulator;
mod kernel;
mod kernel_work;
mod lab;
mod lab_homes;
mod lab_interleaved;
mod lab_known;
mod lab_matrix;
mod lab_record;
mod lab_run;
mod lab_sources;
mod machine;
mod measure;
mod paper;
mod plan;
mod rec;
mod record;
mod run;
mod run_limits;
mod run_matrix;
mod support;
