//! Selects the tags to request from the registry, so that a refresh of an unchanged repository costs few requests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{KnownTag, RepositoryImages, Tag};
use crate::values::digest::Digest;

/// Smallest number of tags without a known move that are requested at each refresh.
const LEAST: usize = 20;
/// One of this many tags without a known move is requested at each refresh.
const ONE_OF: usize = 20;
/// Largest number of tags with the same image as another tag that are requested at each refresh.
const ALIASES: usize = 100;
/// Number of the newest tags that are requested at each refresh, because most labs use them.
const NEWEST: usize = 10;

/// The registry's answer about a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The tag refers to this image.
    Digest(Digest),
    /// The registry has no such tag any more.
    Gone,
    /// The registry did not answer.
    Failed,
}

impl RepositoryImages {
    /// Returns the listed tags that have to be requested from the registry. All tags are requested that are new, that
    /// have moved before, that are among the newest, or that contain no number and so name no version (`latest`). Of
    /// the tags with the same image as another tag, and of all others, only a part is requested: those whose last
    /// request is the longest ago.
    pub fn to_ask(&self, listed: &[Tag]) -> Vec<Tag> {
        let mut shared = BTreeMap::<Digest, usize>::new();
        for digest in self.tags().iter().filter_map(|known| known.digest) {
            *shared.entry(digest).or_default() += 1;
        }
        let newest: BTreeSet<&Tag> = self.tags().iter().take(NEWEST).map(|known| &known.tag).collect();
        let may_move = |known: &KnownTag| {
            let names_no_version = !known.tag.as_str().contains(|c: char| c.is_ascii_digit());
            known.has_moved || known.digest.is_none() || names_no_version || newest.contains(&known.tag)
        };
        let is_alias = |known: &KnownTag| {
            known.digest.is_some_and(|digest| shared.get(&digest).is_some_and(|tags| *tags > 1))
        };
        let (mut asked, mut aliases, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for tag in listed {
            match self.find(tag.as_str()) {
                None => asked.push((Timestamp::UNIX_EPOCH, tag)),
                Some(known) if may_move(known) => asked.push((known.checked_at, tag)),
                Some(known) if is_alias(known) => aliases.push((known.checked_at, tag)),
                Some(known) => others.push((known.checked_at, tag)),
            }
        }
        asked.extend(longest_ago(aliases, ALIASES));
        let again = LEAST.max(others.len().div_ceil(ONE_OF));
        asked.extend(longest_ago(others, again));
        // The tags with the oldest request come first, so that none waits forever behind others that fail.
        asked.sort();
        asked.into_iter().map(|(_, tag)| tag.clone()).collect()
    }
}

fn longest_ago(mut tags: Vec<(Timestamp, &Tag)>, number: usize) -> impl Iterator<Item = (Timestamp, &Tag)> {
    tags.sort();
    tags.into_iter().take(number)
}

/// Returns the images of a repository that lists these tags, given the registry's answers about some of them. A tag
/// without an answer keeps the image that it referred to before; `problem` is the reason of missing answers.
pub fn resolved(
    before: &RepositoryImages,
    listed: Vec<Tag>,
    answers: &BTreeMap<Tag, Refresh>,
    problem: Option<String>,
    now: Timestamp,
) -> RepositoryImages {
    let known: BTreeMap<&Tag, &KnownTag> = before.tags().iter().map(|known| (&known.tag, known)).collect();
    let listed: BTreeSet<Tag> = listed.into_iter().collect();
    let tags = listed.into_iter().filter_map(|tag| {
        let old = known.get(&tag).copied();
        let (digest, checked_at) = match answers.get(&tag) {
            Some(Refresh::Gone) => return None,
            Some(Refresh::Digest(digest)) => (Some(*digest), now),
            Some(Refresh::Failed) => (old.and_then(|old| old.digest), now),
            None => (old.and_then(|old| old.digest), old.map_or(Timestamp::UNIX_EPOCH, |old| old.checked_at)),
        };
        let moved = old.is_some_and(|old| old.has_moved || (old.digest.is_some() && old.digest != digest));
        Some(KnownTag { tag, digest, checked_at, has_moved: moved })
    });
    let tags = tags.collect();
    match problem {
        None => RepositoryImages::new(tags, Some(now), None),
        Some(message) => RepositoryImages::new(tags, before.refreshed_at, before.problem.clone())
            .after_failure(message, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn tags(names: &[&str]) -> Vec<Tag> {
        names.iter().map(|name| Tag::parse(*name).unwrap()).collect()
    }

    fn digest(of: &str) -> Refresh {
        Refresh::Digest(Digest::sha256(of.as_bytes()))
    }

    /// Runs a refresh in which every requested tag refers to the image of its own name.
    fn refreshed(before: &RepositoryImages, listed: &[Tag], second: i64) -> (RepositoryImages, usize) {
        let asked = before.to_ask(listed);
        let answers = asked.iter().map(|tag| (tag.clone(), digest(tag.as_str()))).collect();
        (resolved(before, listed.to_vec(), &answers, None, at(second)), asked.len())
    }

    #[test]
    fn unchanged_tags_are_asked_about_in_turn() {
        let names: Vec<String> = (0..500).map(|n| format!("w_{n}")).collect();
        let listed = tags(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let (mut images, asked) = refreshed(&RepositoryImages::default(), &listed, 0);
        assert_eq!(asked, 500, "all are new");
        for round in 1..=20 {
            let (after, asked) = refreshed(&images, &listed, round);
            assert_eq!(asked, NEWEST + 25);
            images = after;
        }
        assert!(images.tags().iter().all(|known| known.checked_at >= at(1)), "each has had its turn");
    }

    #[test]
    fn tags_that_may_move_are_asked_about_each_time() {
        let listed: Vec<Tag> =
            (0..100).map(|n| Tag::parse(format!("w_{n}")).unwrap()).chain(tags(&["latest", "r1"])).collect();
        let mut answers: BTreeMap<Tag, Refresh> =
            listed.iter().map(|tag| (tag.clone(), digest(tag.as_str()))).collect();
        answers.insert(Tag::parse("r1").unwrap(), digest("w_99"));
        let mut images = resolved(&RepositoryImages::default(), listed.clone(), &answers, None, at(0));
        for second in 1..4 {
            let asked = images.to_ask(&listed);
            for tag in ["latest", "r1", "w_99"] {
                assert!(asked.iter().any(|asked| asked.as_str() == tag), "{tag} in {asked:?}");
            }
            assert_eq!(asked.len(), NEWEST + LEAST);
            images = resolved(&images, listed.clone(), &answers, None, at(second));
        }
        answers.insert(Tag::parse("w_5").unwrap(), digest("another"));
        images = resolved(&images, listed.clone(), &answers, None, at(9));
        assert!(images.to_ask(&listed).iter().any(|tag| tag.as_str() == "w_5"), "it has moved");
    }

    #[test]
    fn tags_that_fail_do_not_keep_others_from_their_turn() {
        let listed = tags(&["1.0", "1.1", "1.2"]);
        let failed = BTreeMap::from([(listed[0].clone(), Refresh::Failed)]);
        let images =
            resolved(&RepositoryImages::default(), listed.clone(), &failed, Some("broken".into()), at(5));
        assert_eq!(images.to_ask(&listed), tags(&["1.1", "1.2", "1.0"]));
    }

    #[test]
    fn of_many_aliases_a_part_is_asked_about() {
        let listed: Vec<Tag> = (0..300)
            .flat_map(|n| [format!("1.{n}"), format!("sha-{n:08}")])
            .map(|tag| Tag::parse(tag).unwrap())
            .collect();
        let same = |tag: &Tag| {
            digest(tag.as_str().trim_start_matches("sha-").trim_start_matches("1.").trim_start_matches('0'))
        };
        let answers = listed.iter().map(|tag| (tag.clone(), same(tag))).collect();
        let images = resolved(&RepositoryImages::default(), listed.clone(), &answers, None, at(0));
        assert!(images.to_ask(&listed).len() <= NEWEST + ALIASES + LEAST);
    }

    #[test]
    fn tags_come_and_go() {
        let (images, _) = refreshed(&RepositoryImages::default(), &tags(&["1.0", "1.1"]), 0);
        let (images, asked) = refreshed(&images, &tags(&["1.1", "1.2"]), 1);
        assert_eq!(asked, 2);
        assert_eq!(images.tags().iter().map(|known| known.tag.as_str()).collect::<Vec<_>>(), ["1.2", "1.1"]);
        let gone = BTreeMap::from([(tags(&["1.1"]).remove(0), Refresh::Gone)]);
        let images = resolved(&images, tags(&["1.1", "1.2"]), &gone, None, at(2));
        assert_eq!(images.tags().len(), 1);
    }

    #[test]
    fn without_an_answer_everything_stays_and_the_beginning_is_remembered() {
        let listed = tags(&["1.0", "1.1"]);
        let (images, _) = refreshed(&RepositoryImages::default(), &listed, 0);
        let failed = listed.iter().map(|tag| (tag.clone(), Refresh::Failed)).collect();
        let once = resolved(&images, listed.clone(), &failed, Some("away".into()), at(5));
        let digests =
            |images: &RepositoryImages| images.tags().iter().map(|known| known.digest).collect::<Vec<_>>();
        assert_eq!(digests(&once), digests(&images));
        let twice = once.after_failure("still away".into(), at(10));
        let problem = twice.problem.clone().unwrap();
        assert_eq!((problem.message.as_str(), problem.since), ("still away", at(5)));
        assert_eq!(twice.refreshed_at, Some(at(0)));
        let (back, _) = refreshed(&twice, &listed, 20);
        assert_eq!((back.problem, back.refreshed_at), (None, Some(at(20))));
    }
}
