//! Reads the metrics in the `OpenMetrics` text that `/metrics` shows, so that both ways give the same numbers.

use std::collections::BTreeMap;

/// The metrics of one name.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Family {
    pub(super) name: String,
    /// `counter`, `gauge`, `histogram`, `info` or `unknown`.
    pub(super) kind: String,
    pub(super) help: String,
    /// Such as `seconds`; empty for a number of things.
    pub(super) unit: String,
    pub(super) samples: Vec<Sample>,
}

/// One number.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sample {
    /// What the name of the family is followed by: `_total`, `_bucket`, `_sum`, `_count`, `_info` or nothing.
    pub(super) suffix: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
    pub(super) exemplar: Option<Exemplar>,
}

/// An example of what a number counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exemplar {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// The families of a text. Lines that are not `OpenMetrics` are left out.
pub(super) fn read(text: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let mut words = about.splitn(3, ' ');
            let (Some(what), Some(name), Some(value)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if families.last().is_none_or(|family| family.name != name) {
                families.push(Family { name: name.to_owned(), ..Family::default() });
            }
            let Some(family) = families.last_mut() else { continue };
            match what {
                "TYPE" => value.clone_into(&mut family.kind),
                "HELP" => value.clone_into(&mut family.help),
                "UNIT" => value.clone_into(&mut family.unit),
                _ => {}
            }
        } else if let Some(family) = families.last_mut() {
            family.samples.extend(sample(&family.name, line));
        }
    }
    families
}

fn sample(family: &str, line: &str) -> Option<Sample> {
    let rest = line.strip_prefix(family)?;
    let end = rest.find(['{', ' '])?;
    let (suffix, rest) = rest.split_at(end);
    let (labels, rest) = labels(rest)?;
    let (value, exemplar) = match rest.split_once(" # ") {
        Some((value, exemplar)) => (value, self::exemplar(exemplar)),
        None => (rest, None),
    };
    Some(Sample { suffix: suffix.to_owned(), labels, value: number(value)?, exemplar })
}

fn exemplar(text: &str) -> Option<Exemplar> {
    let (labels, value) = labels(text)?;
    Some(Exemplar { labels, value: number(value)? })
}

/// The first number of a text; a time may follow it.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The labels in braces at the beginning of a text, if there are any, and what follows them.
fn labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut found = BTreeMap::new();
    let Some(mut rest) = text.strip_prefix('{') else { return Some((found, text)) };
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(after) = rest.strip_prefix('}') {
            return Some((found, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let (value, after) = unquoted(quoted)?;
        found.insert(name.to_owned(), value);
        rest = after;
    }
}

/// The text up to the next quote, without its escapes, and what follows the quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family as Metric;
    use prometheus_client::registry::Registry;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_line_has_its_place() {
        let text = r#"# HELP spawn_seconds How long.
# TYPE spawn_seconds histogram
# UNIT spawn_seconds seconds
spawn_seconds_sum{outcome="complete"} 7.5
spawn_seconds_bucket{le="1.0",outcome="complete"} 1 # {trace_id="0af7"} 0.00003
spawn_seconds_bucket{le="+Inf",outcome="complete"} 2
# HELP up Whether it runs.
# TYPE up gauge
up 1
no such line
# EOF
"#;
        let families = read(text);
        let [spawns, up] = families.as_slice() else { panic!("{families:#?}") };
        assert_eq!(
            (spawns.kind.as_str(), spawns.unit.as_str(), spawns.help.as_str()),
            ("histogram", "seconds", "How long.")
        );
        assert_eq!(spawns.samples.len(), 3);
        assert_eq!(spawns.samples[1].exemplar.as_ref().unwrap().labels["trace_id"], "0af7");
        assert_eq!(spawns.samples[2].labels["le"], "+Inf");
        assert_eq!(up.samples, [Sample { value: 1.0, ..Sample::default() }]);
    }

    proptest! {
        #[test]
        fn labels_are_read_as_they_were_written(value in any::<String>(), count in 0_u32..1_000_000) {
            let mut registry = Registry::default();
            let counter = Metric::<Vec<(String, String)>, Counter>::default();
            registry.register("things", "Things", counter.clone());
            counter.get_or_create(&vec![("kind".to_owned(), value.clone())]).inc_by(count.into());
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            // A line cannot hold what ends it; the encoder escapes only line feeds.
            prop_assume!(!value.contains(['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']));
            let families = read(&text);
            prop_assert_eq!(&families[0].samples[0].labels["kind"], &value);
            prop_assert!((families[0].samples[0].value - f64::from(count)).abs() < 0.5);
        }

        #[test]
        fn no_text_stops_the_reading(text in any::<String>()) {
            read(&text);
        }
    }
}
