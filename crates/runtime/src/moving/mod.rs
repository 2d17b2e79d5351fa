//! Pages to their nodes.
