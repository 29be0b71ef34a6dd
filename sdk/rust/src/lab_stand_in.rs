//! Stands in for the host in native tests: the lab whose fields are filled into templates.

use std::cell::RefCell;

use crate::bindings::types::User;

thread_local! {
    static USER: RefCell<Option<User>> = const { RefCell::new(None) };
}

/// Runs `hook` for the lab of `user`.
pub(crate) fn of<T>(user: &User, hook: impl FnOnce() -> T) -> T {
    USER.set(Some(user.clone()));
    let result = hook();
    USER.set(None);
    result
}

/// Expands a template as the service does. Without a lab, the template is only checked.
pub(crate) fn expand(template: &str) -> Result<String, String> {
    let user = USER.with_borrow(Option::clone);
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let from_brace = &rest[at..];
        if from_brace.starts_with("{{") || from_brace.starts_with("}}") {
            out.push_str(&from_brace[..1]);
            rest = &from_brace[2..];
            continue;
        }
        let closed = from_brace.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let (field, after) = closed.ok_or("unbalanced brace; for a brace itself write it twice")?;
        out.push_str(&value(field, user.as_ref())?);
        rest = after;
    }
    out.push_str(rest);
    Ok(if user.is_some() { out } else { template.into() })
}

fn value(field: &str, user: Option<&User>) -> Result<String, String> {
    let number = |number: Option<u32>| number.unwrap_or_default().to_string();
    let gid = user.and_then(|user| user.gid);
    let others = user.iter().flat_map(|user| &user.groups).filter_map(|group| group.gid);
    let user_name = user.map_or("", |user| user.name.as_str());
    Ok(match field {
        "uid" => number(user.and_then(|user| user.uid)),
        "gid" => number(gid),
        "supplemental_gids" => others
            .filter(|other| Some(*other) != gid)
            .map(|other| other.to_string())
            .collect::<Vec<_>>()
            .join(","),
        "home" => format!("/home/{user_name}"),
        "username"
        | "unescaped_username"
        | "safe_username"
        | "escaped_username"
        | "user_server"
        | "safe_user_server"
        | "escaped_user_server" => user_name.into(),
        "servername" | "unescaped_servername" | "safe_servername" | "escaped_servername" => String::new(),
        "hubnamespace" => "jhub".into(),
        "namespace" => format!("ns-{user_name}"),
        "pod_name" => format!("nb-{user_name}"),
        "pvc_name" => format!("claim-{user_name}"),
        _ => return Err(format!("unknown field {{{field}}}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_expanded_for_a_lab_and_only_checked_without_one() {
        let text = "a {username} {{b}} {pvc_name}";
        assert_eq!(expand(text).as_deref(), Ok(text), "only checked");
        of(&User::named("ada"), || assert_eq!(expand(text).as_deref(), Ok("a ada {b} claim-ada")));
        let ada = User { uid: Some(1000), gid: Some(100), ..User::named("ada") };
        of(&ada, || assert_eq!(expand("{uid}:{gid} {home}").as_deref(), Ok("1000:100 /home/ada")));
        for wrong in ["{usrname}", "{", "}", "{userid}", "{username!r}"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }
}
