//! Signatures beside the file of a component, as `cosign sign-blob` writes them.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::claim;
use super::trusted_keys::{NotSigned, Signer, TrustedKeys};
use crate::confined_file;

/// The most that is read of one signature, in bytes.
const LARGEST: u64 = 256 << 10;

/// The files beside a component that may have its signature: a bundle, and what cosign wrote before version 3.
pub(in crate::wasm) fn signature_files(component: &Path) -> [PathBuf; 2] {
    [".sigstore.json", ".sig"].map(|ending| {
        let mut path = component.as_os_str().to_owned();
        path.push(ending);
        path.into()
    })
}

impl TrustedKeys {
    /// Who has signed this file.
    pub(in crate::wasm) fn signer_of_file(
        &self,
        component: &Path,
        bytes: &[u8],
    ) -> Result<Signer, NotSigned> {
        let [bundle, plain] =
            signature_files(component).map(|file| confined_file::read_text(&file, LARGEST).ok());
        let found = usize::from(bundle.is_some()) + usize::from(plain.is_some());
        let of_bundle = bundle.and_then(|bundle| claim::signature_of_file(&bundle));
        let plain = plain.and_then(|signature| BASE64.decode(signature.trim()).ok());
        let signer = of_bundle.into_iter().chain(plain).find_map(|signature| self.signer(bytes, &signature));
        signer.ok_or_else(|| NotSigned::file(component.to_owned(), found))
    }
}
