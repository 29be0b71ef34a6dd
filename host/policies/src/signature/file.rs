//! Signatures beside the file of a component, in the format of `cosign sign-blob`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::claim;
use super::trusted_keys::{NotSigned, Signer, TrustedKeys};
use wasmspawner_files::confined_file::{self, UnreadableFile};

/// The maximum size of one signature, in bytes.
const MAX_SIGNATURE_BYTES: u64 = 256 << 10;

/// Returns the files that may have the signature of a component: a bundle, and the file that cosign wrote before
/// version 3.
pub(crate) fn signature_files(component: &Path) -> [PathBuf; 2] {
    [".sigstore.json", ".sig"].map(|ending| {
        let mut path = component.as_os_str().to_owned();
        path.push(ending);
        path.into()
    })
}

type ReadSignature = fn(&str) -> Option<Vec<u8>>;

/// The functions that read the signature from each of these files.
const FORMS: [ReadSignature; 2] = [claim::signature_of_file, |text| BASE64.decode(text.trim()).ok()];

impl TrustedKeys {
    /// Returns the signer of this file.
    pub(crate) fn signer_of_file(&self, component: &Path, bytes: &[u8]) -> Result<Signer, NotSigned> {
        let (mut found, mut problem) = (0, None);
        for (file, understood) in signature_files(component).into_iter().zip(FORMS) {
            let signature = match confined_file::read_text(&file, MAX_SIGNATURE_BYTES) {
                Ok(text) => understood(&text),
                Err(UnreadableFile::Io(error)) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    problem = Some(format!("{}: {error}", file.display()));
                    continue;
                }
            };
            let Some(signature) = signature else {
                problem =
                    Some(format!("{}: it is no signature of a file that cosign has written", file.display()));
                continue;
            };
            if let Some(signer) = self.signer(bytes, &signature) {
                return Ok(signer);
            }
            found += 1;
        }
        Err(NotSigned::file(component.to_owned(), found, problem))
    }
}
