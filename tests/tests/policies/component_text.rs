//! Policies written as WebAssembly text, for components that no language's compiler would produce.

use std::path::PathBuf;

use tempfile::TempDir;
use wasmspawner_policies::PolicySpec;

/// A policy that exports its metadata and `quota`. By default it behaves well: it allows everything.
#[derive(Clone, Copy, Default)]
pub(crate) struct ComponentText<'a> {
    /// The part of the component before the core module, such as imports.
    pub(crate) before: &'a str,
    /// The imports of the core module from the component.
    pub(crate) core_imports: &'a str,
    /// The arguments with which the core module is instantiated.
    pub(crate) arguments: &'a str,
    /// More parts of the core module.
    pub(crate) core: &'a str,
    /// The code of `quota.limits` before its answer. It may use a local `$n`; the answer allows as many labs as `$n`.
    pub(crate) limits: &'a str,
}

impl ComponentText<'_> {
    /// The component as a file in a folder, which is removed when the folder's value is dropped.
    pub(crate) fn spec(&self, name: &str) -> (PolicySpec, TempDir) {
        spec_of(name, &self.bytes())
    }

    /// The component.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        wat::parse_str(self.text()).unwrap()
    }

    fn text(&self) -> String {
        let Self { before, core_imports, arguments, core, limits } = self;
        format!(
            r#"(component
  {before}
  (core module $module
    {core_imports}
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 4096))
    (data (i32.const 512) "true")
    (data (i32.const 1056) "\00\02\00\00\04\00\00\00")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "describe") (result i32) (i32.const 1024))
    (func (export "config-schema") (result i32) (i32.const 1056))
    (func (export "limits") (param i32) (result i32)
      (local $n i32)
      {limits}
      (i32.store8 (i32.const 2112) (i32.const 1))
      (i32.store (i32.const 2116) (local.get $n))
      (i32.const 2048))
    {core})
  (core instance $core (instantiate $module {arguments}))
  (alias core export $core "memory" (core memory $memory))
  (alias core export $core "realloc" (core func $realloc))
  {METADATA}
  {QUOTA})"#
        )
    }
}

/// A policy whose component has these bytes.
pub(crate) fn spec_of(name: &str, component: &[u8]) -> (PolicySpec, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("policy.wasm");
    std::fs::write(&file, component).unwrap();
    (PolicySpec::new(name, file), folder)
}

/// The interface of the metadata. Types of an exported interface need names, which an inner component gives them.
const METADATA: &str = r#"
  (type $info (record (field "name" string) (field "version" string) (field "description" string)))
  (func $describe (result $info)
    (canon lift (core func $core "describe") (memory (core memory $memory)) (realloc (core func $realloc))))
  (func $schema (result string)
    (canon lift (core func $core "config-schema") (memory (core memory $memory)) (realloc (core func $realloc))))
  (component $metadata
    (type $record (record (field "name" string) (field "version" string) (field "description" string)))
    (import "info" (type $info (eq $record)))
    (import "describe" (func $describe (result $info)))
    (import "schema" (func $schema (result string)))
    (export $named "info" (type $info))
    (export "describe" (func $describe) (func (result $named)))
    (export "config-schema" (func $schema)))
  (instance $of-metadata (instantiate $metadata
    (with "info" (type $info)) (with "describe" (func $describe)) (with "schema" (func $schema))))
  (export "wasmspawner:policy/metadata@0.1.0" (instance $of-metadata))"#;

const QUOTA: &str = r#"
  (type $group (record (field "name" string) (field "gid" (option u32))))
  (type $user-quota (record (field "cpu-millis" (option u64)) (field "memory-bytes" (option u64)) (field "spawn" bool)))
  (type $user (record (field "name" string) (field "uid" (option u32)) (field "gid" (option u32))
    (field "groups" (list $group)) (field "email" (option string)) (field "display-name" (option string))
    (field "quota" (option $user-quota))))
  (type $field-error (record (field "field" string) (field "message" string)))
  (type $denial (record (field "message" string) (field "rule" (option string))))
  (type $error (variant (case "denied" $denial) (case "invalid" (list $field-error)) (case "retry-later" u32)
    (case "internal" string)))
  (type $quota (record (field "cpu-millis" (option u64)) (field "memory-bytes" (option u64))
    (field "storage-bytes" (option u64)) (field "pods" (option u32)) (field "labs" (option u32))
    (field "extended" (list (tuple string u64)))))
  (type $usage (record (field "labs" u32)))
  (func $limits (param "user" $user) (param "usage" $usage) (result (result $quota (error $error)))
    (canon lift (core func $core "limits") (memory (core memory $memory)) (realloc (core func $realloc))))
  (component $limiter
    (type $group' (record (field "name" string) (field "gid" (option u32))))
    (import "group" (type $group (eq $group')))
    (type $user-quota' (record (field "cpu-millis" (option u64)) (field "memory-bytes" (option u64)) (field "spawn" bool)))
    (import "user-quota" (type $user-quota (eq $user-quota')))
    (type $user' (record (field "name" string) (field "uid" (option u32)) (field "gid" (option u32))
      (field "groups" (list $group)) (field "email" (option string)) (field "display-name" (option string))
      (field "quota" (option $user-quota))))
    (import "user" (type $user (eq $user')))
    (type $field-error' (record (field "field" string) (field "message" string)))
    (import "field-error" (type $field-error (eq $field-error')))
    (type $denial' (record (field "message" string) (field "rule" (option string))))
    (import "denial" (type $denial (eq $denial')))
    (type $error' (variant (case "denied" $denial) (case "invalid" (list $field-error)) (case "retry-later" u32)
      (case "internal" string)))
    (import "error" (type $error (eq $error')))
    (type $quota' (record (field "cpu-millis" (option u64)) (field "memory-bytes" (option u64))
      (field "storage-bytes" (option u64)) (field "pods" (option u32)) (field "labs" (option u32))
      (field "extended" (list (tuple string u64)))))
    (import "quota" (type $quota (eq $quota')))
    (type $usage' (record (field "labs" u32)))
    (import "usage" (type $usage (eq $usage')))
    (import "limits" (func $limits
      (param "user" $user) (param "usage" $usage) (result (result $quota (error $error)))))
    (export $group2 "group" (type $group))
    (export $user-quota2 "user-quota" (type $user-quota))
    (type $user2' (record (field "name" string) (field "uid" (option u32)) (field "gid" (option u32))
      (field "groups" (list $group2)) (field "email" (option string)) (field "display-name" (option string))
      (field "quota" (option $user-quota2))))
    (export $user2 "user" (type $user2'))
    (export $field-error2 "field-error" (type $field-error))
    (export $denial2 "denial" (type $denial))
    (type $error2' (variant (case "denied" $denial2) (case "invalid" (list $field-error2)) (case "retry-later" u32)
      (case "internal" string)))
    (export $error2 "error" (type $error2'))
    (export $quota2 "quota" (type $quota))
    (export $usage2 "usage" (type $usage))
    (export "limits" (func $limits)
      (func (param "user" $user2) (param "usage" $usage2) (result (result $quota2 (error $error2))))))
  (instance $of-quota (instantiate $limiter
    (with "group" (type $group)) (with "user-quota" (type $user-quota)) (with "user" (type $user))
    (with "field-error" (type $field-error)) (with "denial" (type $denial)) (with "error" (type $error)) (with "quota" (type $quota))
    (with "usage" (type $usage)) (with "limits" (func $limits))))
  (export "wasmspawner:policy/quota@0.1.0" (instance $of-quota))"#;
