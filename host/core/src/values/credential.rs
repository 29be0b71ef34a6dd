//! Recognizes credentials by their names, and URLs with passwords.

use std::sync::LazyLock;

use regex_lite::Regex;

/// The text in place of a value that must not be shown.
pub const REDACTED: &str = "<redacted>";

/// Words in a variable's name which show that its value is a credential.
const WORDS: [&str; 14] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "JWT",
    "COOKIE",
    "KEYTAB",
];

/// Words that show the same at the end of a longer name. `PWD` alone is the working directory.
const LAST_WORDS: [&str; 5] = ["PASS", "PWD", "DSN", "PAT", "PSK"];

/// Pairs of adjacent words that show the same.
const PAIRS: [(&str, &str); 9] = [
    ("API", "KEY"),
    ("ACCESS", "KEY"),
    ("PRIVATE", "KEY"),
    ("SIGNING", "KEY"),
    ("ENCRYPTION", "KEY"),
    ("SSH", "KEY"),
    ("CONNECTION", "STRING"),
    ("DATABASE", "URL"),
    ("DB", "URL"),
];

/// True if the name of a variable or field says that its value is a credential.
pub fn is_named_as_credential(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).collect();
    words.iter().any(|word| WORDS.contains(word))
        || words.windows(2).any(|pair| PAIRS.iter().any(|(first, second)| pair == [*first, *second]))
        || words.len() > 1 && words.last().is_some_and(|word| LAST_WORDS.contains(word))
}

/// True for `scheme://user:password@host`, also among other text.
pub fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '\n', '"', '\'']).next().unwrap_or_default();
        let user_info = authority.rsplit_once('@').map(|(user_info, _)| user_info);
        user_info
            .and_then(|user_info| user_info.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

/// A URL with a user, before the host.
static USER_OF_URL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"://[^\s"'<>]*@"#));
/// The header `Authorization`, up to the end of the line or of the quotation.
static AUTHORIZATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)((?:proxy-)?authorization["']?\s*[:=]\s*["']?)[^"']+"#));
static BEARER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"));
/// Tokens that are known by their form: of GitHub, GitLab, AWS, Slack, Gafaelfawr and JupyterHub, JWTs, keys in Base64.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"|xox[abeprs]-[\w-]{8,}|gt-[\w-]{16,}\.[\w-]{16,}|[0-9a-f]{32,}|eyJ[\w-]{8,}\.[\w.-]+",
        r"|[A-Za-z0-9+/]{60,}={0,2})"
    ))
});
/// A name before `:` or `=`.
static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r#"([A-Za-z][A-Za-z0-9_.-]*)["']?\s*[:=]+\s*"#));
/// An option of a command, or the name of an environment variable, before a value.
static OPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|\s)([A-Z][A-Z0-9]*_[A-Z0-9_]+|--?[A-Za-z][A-Za-z0-9_.-]*)\s+"));
static VALUE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^(?:"[^"]*"?|'[^']*'?|[^\s,;&"'(){}\[\]<>]+)"#));

#[expect(clippy::unwrap_used, reason = "a test compiles all of these patterns")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// Returns a line of a log with the values replaced that are probably credentials: what follows a name such as
/// `API_TOKEN`, the header `Authorization`, users of URLs, and tokens of known forms. A program may print a credential in
/// other ways, too.
pub fn redact_line(line: &str) -> String {
    let line = USER_OF_URL.replace_all(line, "://<redacted>@");
    let line = AUTHORIZATION.replace_all(&line, "${1}<redacted>");
    let line = BEARER.replace_all(&line, "${1} <redacted>");
    let line = TOKEN.replace_all(&line, REDACTED);
    let line = redact_values(&line, &NAME);
    redact_values(&line, &OPTION)
}

/// Replaces the value after each name of a credential. `names` captures the name.
fn redact_values(line: &str, names: &Regex) -> String {
    let (mut shown, mut at) = (String::with_capacity(line.len()), 0);
    while let Some(found) = names.captures_at(line, at) {
        let (Some(all), Some(name)) = (found.get(0), found.get(1)) else { break };
        let value = VALUE.find(&line[all.end()..]);
        let end = if is_named_as_credential(name.as_str().trim_start_matches('-'))
            && let Some(value) = value
        {
            shown.push_str(&line[at..all.end()]);
            shown.push_str(REDACTED);
            all.end() + value.end()
        } else {
            shown.push_str(&line[at..name.end()]);
            name.end()
        };
        at = end;
    }
    shown + &line[at..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of logs, and what is shown of them; nothing after the bar if they are shown as they are.
    const LINES: &str = r#"
ModuleNotFoundError: No module named 'jupyterhub' |
PATH=/usr/bin: not found |
the token is not valid: ask again |
File "/opt/conda/lib/python3.13/site-packages/jupyterhub/singleuser/mixins.py", line 7 |
API_TOKEN=abc failed | API_TOKEN=<redacted> failed
error: API_TOKEN=abc | error: API_TOKEN=<redacted>
password: hunter2, user: ada | password: <redacted>, user: ada
password = hunter2 | password = <redacted>
PASSWORD="correct horse battery" x | PASSWORD=<redacted> x
{"api_key": "abc", "x": 1} | {"api_key": <redacted>, "x": 1}
GET /user/ada/lab?token=abc&x=1 | GET /user/ada/lab?token=<redacted>&x=1
Authorization: Bearer abc.def | Authorization: <redacted>
Authorization: token abc | Authorization: <redacted>
{'Authorization': 'token abc', 'x': 1} | {'Authorization': '<redacted>', 'x': 1}
sent Bearer abc.defg | sent Bearer <redacted>
cannot reach postgres://ada:p,w@db/x | cannot reach postgres://<redacted>@db/x
fatal: could not read from https://ghp_xxx@github.com/o/r | fatal: could not read from https://<redacted>@github.com/o/r
mysql --password hunter2 --user ada | mysql --password <redacted> --user ada
AWS_SECRET_ACCESS_KEY abc | AWS_SECRET_ACCESS_KEY <redacted>
bad credentials ghp_0123456789abcdefghij | bad credentials <redacted>
using 5f0c2b7a9e1d4c3b8a7f6e5d4c3b2a19 | using <redacted>
"#;

    #[test]
    fn values_of_credentials_are_replaced_and_nothing_else() {
        for case in LINES.lines().filter(|line| !line.is_empty()) {
            let (line, expected) = case.split_once(" |").unwrap();
            let expected = if expected.is_empty() { line } else { expected.trim_start() };
            assert_eq!(redact_line(line), expected);
        }
    }

    proptest! {
        #[test]
        fn a_secret_after_its_name_is_never_shown(
            before in "[ -~]{0,30}", after in "[ -~]{0,30}",
            name in prop::sample::select(vec!["JPY_API_TOKEN=", "password: ", "--secret ", "Authorization: token ", "https://ada:"]),
        ) {
            let end = if name.starts_with("https") { "@host" } else { "" };
            let shown = redact_line(&format!("{before} {name}s3cr3tvalue{end} {after}"));
            prop_assert!(!shown.contains("s3cr3tvalue"), "{shown}");
        }
    }
}
