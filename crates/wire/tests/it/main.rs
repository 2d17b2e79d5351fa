//! Every message survives its frame, and no damage to a frame goes unnoticed.

mod damage;
mod facts;
mod lab;
mod live;
mod orders;
