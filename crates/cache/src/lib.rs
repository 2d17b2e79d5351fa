//! Cache and directory models.
