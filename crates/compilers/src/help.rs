//! What a driver says of itself for `--homenode-help`.

use crate::toolchain::SourceLanguage;

/// The word that asks for it. `--help` is the compiler's.
pub const WORD: &str = "--homenode-help";

/// The text.
pub fn text(driver: SourceLanguage) -> String {
    let (name, variable, compiler) = (driver.name(), driver.variable(), driver.default_compiler());
    format!(
        "\
{name}: builds programs whose every memory access 'homenode record' can see

Usage: {name} ARGUMENTS OF {compiler}

It stands where {compiler} would stand, takes the same arguments, and returns its status:
  {name} -g -O2 -fopenmp app -o app
  make CC=homenode-cc CXX=homenode-c++ FC=homenode-fc
  CC=homenode-cc CXX=homenode-c++ FC=homenode-fc cmake -B build

Then:
  homenode explain -- ./app    what is wrong, in which line, what to do
  ./app                        runs as ever, a few times slower, and records nothing

Options:
  --homenode-compiler=PATH     the compiler behind it; outlives the shell of a configure run
  --homenode-help              this text; --help is the compiler's

Environment:
  {variable:22} the compiler behind it [default: {compiler}]
  HOMENODE_LIB_DIR       folder of libhomenode_trace.so
  HOMENODE_INCLUDE_DIR   folder of homenode.h
  HOMENODE_CC_INLINE=0   calls in place of the recorder's own instructions: slower
  HOMENODE_CC_VERBOSE=1  print each command before it runs

Build systems that look for 'gcc' in a compiler's name take homenode-gcc, homenode-g++, homenode-gfortran.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_driver_names_itself_and_its_compiler() {
        for driver in [SourceLanguage::C, SourceLanguage::Cxx, SourceLanguage::Fortran] {
            let text = text(driver);
            assert!(text.starts_with(driver.name()) && text.contains(driver.variable()), "{text}");
        }
    }
}
