//! The Fortran compiler driver: see [`homenode_compilers`].

fn main() -> std::process::ExitCode {
    homenode_compilers::main(homenode_compilers::SourceLanguage::Fortran)
}
