//! The page, the server, and what a browser makes of them.

mod assets;
mod browser;
mod cache;
mod colours;
mod drive;
mod extremes;
mod live;
mod numbers;
mod page;
mod pyramid;
mod server;
mod sql;
mod support;
