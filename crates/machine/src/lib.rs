//! Machines.
