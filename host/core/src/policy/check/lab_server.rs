use super::findings::Findings;
use crate::policy::{FieldError, LabProbe, LabServer};

/// Longest path of a probe in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// Returns all errors in an answer to `lab-server`, field by field.
pub fn check_lab_server(asked: &LabServer) -> Vec<FieldError> {
    let mut found = Findings::default();
    found.refuse_if(asked.port == Some(0), "port", "must be 1 to 65535");
    if let Some(LabProbe::Http(path)) = &asked.probe {
        let good = path.bytes().all(|c| c.is_ascii_graphic() && c != b'#');
        found.refuse_if(!good, "probe.http", "is not the path of a URL, such as `api` or `/health?full=1`");
        found.refuse_if(path.len() > MAX_PATH_BYTES, "probe.http", "is longer than 1024 bytes");
    }
    found.into_errors()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_paths_are_checked() {
        let probe = |path: &str| LabServer { port: None, probe: Some(LabProbe::Http(path.to_owned())) };
        for (asked, field) in [
            (LabServer { port: Some(0), probe: None }, "port"),
            (probe("a b"), "probe.http"),
            (probe("a\r\nHost: x"), "probe.http"),
            (probe("a#b"), "probe.http"),
            (probe(&"x".repeat(1025)), "probe.http"),
        ] {
            let errors = check_lab_server(&asked);
            assert_eq!(
                errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(),
                [field],
                "{asked:?}"
            );
        }
        for asked in [LabServer::default(), probe(""), probe("/health?full=1"), probe("api/status")] {
            assert_eq!(check_lab_server(&asked), [], "{asked:?}");
        }
    }
}
