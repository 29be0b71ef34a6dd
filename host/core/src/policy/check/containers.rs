use super::{Findings, env, image_reference, resources, volumes};
use crate::names::DnsLabel;
use crate::policy::{Customization, InitContainer};
use crate::values::path;

pub(super) fn init_containers(containers: &[InitContainer], found: &mut Findings) {
    found.each("init_containers", containers, ("name", |init| init.name.clone()), |init, found| {
        found.parsed("name", DnsLabel::parse(init.name.as_str()));
        image_reference("image", &init.image, found);
        words("command", &init.command, found);
        words("args", &init.args, found);
        env::check(&init.env, found);
        volumes::mounts(&init.mounts, found);
        if let Some(asked) = &init.resources {
            found.at("resources", |found| resources::check(asked, found));
        }
    });
}

pub(super) fn command(asked: &Customization, found: &mut Findings) {
    if let Some(command) = &asked.command {
        found.refuse_if(command.is_empty(), "command", "is empty; leave it out for the image's own");
        words("command", command, found);
    }
    if let Some(args) = &asked.args {
        words("args", args, found);
    }
    if let Some(path) = &asked.working_dir {
        found.refuse_if(
            !path::is_absolute(path),
            "working_dir",
            "must be an absolute path without `..` and `:`",
        );
    }
}

fn words(field: &str, words: &[String], found: &mut Findings) {
    found.refuse_if(words.iter().any(|word| word.contains('\0')), field, "contains a NUL");
}
