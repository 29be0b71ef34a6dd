//! Conversions between the generated types and the core's own. They never fail, because the core checks the answers.

mod authorize;
mod events;
mod form;
mod images;
mod inject;
mod lab_server;
mod pod;
mod quota;
mod subject;
mod user;

pub(super) use authorize::{authorize_request, verdict};
pub(super) use events::lab_event;
pub(super) use form::{form, form_context};
pub(super) use images::{image_menu, image_menu_request, known_image, wanted_images};
pub(super) use inject::{inject_request, inject_verdict};
pub(super) use lab_server::{lab_server, lab_server_request};
pub(super) use pod::{customization, lab_request};
pub(super) use quota::{quota, usage};
pub(super) use subject::{blueprint, child, past_use, present_use};
pub(super) use user::{field_errors, hook_error, option_entries, options, user};
