//! Generated users, with plain to hostile names.

use std::collections::BTreeSet;

use wasmspawner_core::names::{ServerName, Username};

/// Users and servers that the service accepts, without duplicates; the same in every run.
pub(crate) struct People {
    random: Random,
    seen: BTreeSet<(Username, ServerName)>,
}

impl People {
    pub(crate) fn new() -> Self {
        Self { random: Random(0x2026), seen: BTreeSet::new() }
    }
}

impl Iterator for People {
    type Item = (Username, ServerName);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (user, server) = (self.random.name(), self.random.server());
            let (Ok(user), Ok(server)) = (Username::parse(user), ServerName::parse(server)) else { continue };
            if self.seen.insert((user.clone(), server.clone())) {
                return Some((user, server));
            }
        }
    }
}

/// A generator of names that are the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// A plain to hostile name: from one alphabet, at most 80 characters.
    fn name(&mut self) -> String {
        const ALPHABETS: [&str; 6] = [
            "abcxyz019",
            "abcABC-._@+ 09",
            "-",
            "--a9",
            "äßéñ日本語😀\u{301}\u{130}\u{131}\u{17f}\u{212a}\u{200b}a",
            // Braces are refused if a policy names storage by a template.
            "!'\"\\:;$`<>&|*?~#%\u{4}\n/a1",
        ];
        let alphabet: Vec<char> = ALPHABETS[self.below(ALPHABETS.len())].chars().collect();
        let longest = if self.below(3) == 0 { 80 } else { 16 };
        let length = 1 + self.below(longest);
        (0..length).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }

    fn server(&mut self) -> String {
        if self.below(2) == 0 { String::new() } else { self.name() }
    }
}
