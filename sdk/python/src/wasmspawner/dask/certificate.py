"""The certificate of a pool, by which its scheduler, workers and clients know each other.

It is self-signed, and all parties have it together with its key. Clients keep it in a file of the user, so that a
later process can connect to the pool.
"""

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..lab import Lab, path_segment

_NAME = "wasmspawner-dask-pool"
# No pool should end because its certificate does, and the clocks of nodes differ.
_VALID_FOR, _VALID_SINCE = timedelta(days=3650), timedelta(days=1)
_END_OF_CERTIFICATE = "-----END CERTIFICATE-----\n"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, both as PEM."""

    certificate: str
    key: str

    @classmethod
    def new(cls) -> "Certificate":
        """Make a certificate that is its own authority. It holds for no host: whoever has the key belongs to it."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
        now = datetime.now(UTC)
        usage = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign"), False
        )
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _VALID_SINCE)
            .not_valid_after(now + _VALID_FOR)
            # Python 3.13 requires these extensions of an authority.
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True, key_cert_sign=True, encipher_only=False, decipher_only=False, **usage
                ),
                critical=True,
            )
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
            .add_extension(identifier, critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return cls(certificate.public_bytes(pem).decode(), private.decode())

    @property
    def digest(self) -> str:
        """By this the service tells a pool from another of the same name."""
        return "sha256:" + hashlib.sha256(self.certificate.encode()).hexdigest()

    def save(self, lab: Lab, name: str) -> None:
        """Keep it for later processes of this user. Raises `OSError`."""
        path = certificate_file(lab, name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent)  # with the mode 0600
        try:
            with open(handle, "w", encoding="ascii") as file:
                file.write(self.certificate + self.key)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    @classmethod
    def load(cls, lab: Lab, name: str) -> "Certificate":
        """The certificate that a process of this user has kept. Raises `OSError`, or `ValueError` for another file."""
        path = certificate_file(lab, name)
        certificate, end, key = path.read_text("ascii").partition(_END_OF_CERTIFICATE)
        if not end or not key.startswith("-----BEGIN"):
            raise ValueError(f"{path} is no certificate with its key")
        return cls(certificate + end, key)


def forget_certificate(lab: Lab, name: str) -> None:
    """Remove the file of a pool that is gone."""
    with contextlib.suppress(OSError):
        certificate_file(lab, name).unlink()


def certificate_file(lab: Lab, name: str) -> Path:
    """The file of a pool's certificate. The three names are quoted, so `+` only separates them."""
    data = os.environ.get("JUPYTER_DATA_DIR") or os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    file = "+".join(path_segment(part) for part in (lab.user, lab.server, name)) + ".pem"
    return Path(data) / "wasmspawner" / "dask" / file
