//! Machines from presets, files and hwloc, through the public functions only.

mod files;
mod host;
mod presets;
