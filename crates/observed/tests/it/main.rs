//! From streams to a data set.

mod cut_off;
mod hostile;
mod processes;
mod support;
mod tables;
