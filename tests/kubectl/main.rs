//! kubectl as a client of the embedded API server, over loopback.

mod logs;
mod session;
mod shell;
