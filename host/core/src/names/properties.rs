//! Properties that hold for every possible name of a user.

use proptest::prelude::*;

use super::kubespawner::{KubeSpawner, NameQuery};
use super::slug;
use super::{Compat, LabelValue, NameTemplates, NamesConfig, ServerName, SlugScheme, Template, Username};
use super::{Field, TemplateScope};

/// Unicode strings of every kind, and strings of the characters that matter to the rules.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-c9A._@ \u{130}\u{131}\u{17f}\u{212a}-]{0,70}",
        "[a-z0-9-]{0,70}",
        "\\PC{1,80}"
    ]
}

fn username() -> impl Strategy<Value = Username> {
    any_name().prop_filter_map("not a username", |name| Username::parse(name).ok())
}

fn server_name() -> impl Strategy<Value = ServerName> {
    prop_oneof![
        1 => Just(ServerName::default()),
        3 => any_name().prop_filter_map("not a server name", |name| ServerName::parse(name).ok()),
    ]
}

fn compat() -> impl Strategy<Value = Compat> {
    prop_oneof![Just(Compat::V7_1_0), Just(Compat::Documented)]
}

fn templates(compat: Compat) -> NameTemplates {
    NameTemplates::parse(&NamesConfig { compat, ..NamesConfig::default() }).unwrap()
}

proptest! {
    #[test]
    fn safe_slugs_are_valid_and_short(name in any_name(), limit in 16_usize..=63) {
        let slug = slug::safe(&name, slug::is_object, Some(limit));
        prop_assert!(slug.len() <= limit);
        prop_assert!(slug.starts_with(|c: char| c.is_ascii_lowercase()));
        prop_assert!(slug.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()));
        prop_assert!(slug.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-'));
    }

    #[test]
    fn a_name_that_is_already_safe_is_not_changed(name in "[a-z]([a-z0-9]|-[a-z0-9]){0,15}") {
        prop_assert_eq!(slug::safe(&name, slug::is_object, Some(48)), name.clone());
        prop_assert_eq!(LabelValue::for_name(&name), name.as_str());
    }

    #[test]
    fn labels_are_valid_for_any_text(name in any::<String>()) {
        let value = LabelValue::for_name(&name);
        prop_assert!(LabelValue::parse(value.as_str()).is_ok());
        prop_assert!(!value.as_str().contains("--") || value.as_str().len() <= 32);
    }

    #[test]
    fn multi_slugs_are_valid_and_short(user in any_name(), server in any_name()) {
        let slug = slug::multi(&[&user, &server], 48);
        prop_assert!(slug.len() <= 48, "{slug}");
        prop_assert!(slug::is_object(&slug), "{slug}");
    }

    #[test]
    fn every_accepted_name_gives_names_that_kubernetes_accepts(
        user in username(), server in server_name(), compat in compat(),
    ) {
        let names = templates(compat).resolve(&user, &server, None);
        prop_assert!(names.is_ok(), "{names:?}");
    }

    #[test]
    fn different_labs_have_different_names(
        a in (username(), server_name()), b in (username(), server_name()), of_one_user: bool, compat in compat(),
    ) {
        let b = if of_one_user { (a.0.clone(), b.1) } else { b };
        prop_assume!(a != b);
        let templates = templates(compat);
        let (first, second) = (templates.resolve(&a.0, &a.1, None).unwrap(), templates.resolve(&b.0, &b.1, None).unwrap());
        prop_assert_ne!(&first.pod, &second.pod);
        prop_assert_ne!(&first.pvc, &second.pvc);
        prop_assert_ne!(&first.object, &second.object);
        prop_assert_ne!(&first.namespace, &second.namespace);
    }

    #[test]
    fn escaped_names_of_accepted_users_differ(a in username(), b in username()) {
        prop_assume!(a != b);
        prop_assert_ne!(slug::escape(a.as_str()), slug::escape(b.as_str()));
    }

    #[test]
    fn parsing_and_rendering_do_not_panic(text in prop_oneof![any::<String>(), "[{}!:.<^0-9a-z_\\[-]{0,40}"]) {
        let fields = super::Fields::new("a", "b", Some(-7), SlugScheme::Safe, Compat::V7_1_0);
        if let Ok(template) = Template::parse("key", &text, TemplateScope::Lab) {
            prop_assert!(template.render(&fields).len() <= 10_000 + text.len());
        }
    }

    #[test]
    fn every_field_takes_padding(field in 0..Field::ALL.len(), width in 0..60_usize, user in any_name()) {
        let fields = super::Fields::new(&user, "", Some(42), SlugScheme::Safe, Compat::V7_1_0);
        let text = format!("{{{}:*>{width}}}!", Field::ALL[field].as_str());
        let template = Template::parse("key", &text, TemplateScope::Lab).unwrap();
        prop_assert!(template.render(&fields).chars().count() > width);
    }

    #[test]
    fn a_username_is_never_expanded_as_a_template(inside in "\\PC{0,30}") {
        let user = format!("{{{inside}}}");
        let names = KubeSpawner::new(Some("{unescaped_username}!")).unwrap();
        let report = names.answer(&NameQuery::new(&user, "", SlugScheme::Safe)).unwrap();
        prop_assert_eq!(report.rendered, Some(format!("{user}!")));
    }
}
