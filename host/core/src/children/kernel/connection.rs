//! The connection between a kernel and its clients (Jupyter's "connection files").

use serde::Serialize;
use serde_json::{Value, json};

use crate::values::secret::SecretString;

/// The ports of a kernel. Every kernel has an address of its own, so all kernels have the same ports, and a restarted
/// kernel keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ports {
    /// Requests to execute code.
    #[serde(rename = "shell_port")]
    pub shell: u16,
    /// The kernel's output.
    #[serde(rename = "iopub_port")]
    pub iopub: u16,
    /// The kernel's questions to the user.
    #[serde(rename = "stdin_port")]
    pub stdin: u16,
    /// Interrupts and shutdown.
    #[serde(rename = "control_port")]
    pub control: u16,
    /// The heartbeat.
    #[serde(rename = "hb_port")]
    pub hb: u16,
}

/// The ports of every kernel. Linux assigns none of them to outgoing connections.
pub const PORTS: Ports = Ports { shell: 17_700, iopub: 17_701, stdin: 17_702, control: 17_703, hb: 17_704 };

impl Ports {
    /// Returns all ports.
    pub fn all(self) -> [u16; 5] {
        [self.shell, self.iopub, self.stdin, self.control, self.hb]
    }
}

/// The connection parameters that a kernel and its clients share. The client creates the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The key with which messages are signed; empty for unsigned messages.
    pub key: SecretString,
    /// The signature scheme: `hmac-sha256`.
    pub signature_scheme: String,
    /// The keys of an encrypted connection.
    pub curve: Option<CurveKeys>,
}

/// The kernel's keys for `CurveZMQ`, in Z85.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurveKeys {
    /// The public key.
    pub public: String,
    /// The secret key.
    pub secret: SecretString,
}

impl Connection {
    /// Returns the kernel's connection file, without its address: only the pod knows that.
    pub(super) fn file(&self, kernel_name: &str) -> Value {
        let mut file = json!({
            "transport": "tcp",
            "ip": "0.0.0.0",
            "shell_port": PORTS.shell,
            "iopub_port": PORTS.iopub,
            "stdin_port": PORTS.stdin,
            "control_port": PORTS.control,
            "hb_port": PORTS.hb,
            "key": self.key.expose(),
            "signature_scheme": self.signature_scheme,
            "kernel_name": kernel_name,
        });
        if let Some(curve) = &self.curve {
            file["curve_publickey"] = json!(curve.public);
            file["curve_secretkey"] = json!(curve.secret.expose());
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_file_has_all_but_the_address() {
        let plain =
            Connection { key: SecretString::new("k"), signature_scheme: "hmac-sha256".into(), curve: None };
        let file = plain.file("python3");
        assert_eq!(file["shell_port"], 17_700);
        assert_eq!((&file["key"], &file["kernel_name"]), (&json!("k"), &json!("python3")));
        assert!(file.get("curve_publickey").is_none());
        let curve = CurveKeys { public: "p".into(), secret: SecretString::new("s") };
        let file = Connection { curve: Some(curve), ..plain }.file("python3");
        assert_eq!((&file["curve_publickey"], &file["curve_secretkey"]), (&json!("p"), &json!("s")));
    }
}
