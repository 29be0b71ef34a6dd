//! Small components that are expensive to compile.

use super::component_text::{ComponentText, spec_of};
use super::*;

/// A compiler with small limits, so that the tests are fast.
fn frugal() -> EngineOptions {
    let compiler = Compiler {
        program: BINARY.into(),
        memory_bytes: 256 << 20,
        timeout: Duration::from_secs(20),
        ..Compiler::default()
    };
    EngineOptions { compiler, ..EngineOptions::default() }
}

async fn kind_of(component: &[u8]) -> LoadErrorKind {
    let (spec, _folder) = spec_of("bomb", component);
    match Policies::load(vec![spec], frugal()).await {
        Err(FailedPolicies::Load(error)) => {
            assert_eq!(error.policy.as_str(), "bomb");
            error.kind
        }
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was loaded"),
    }
}

/// A component in a component, and so on.
fn nested(depth: usize) -> Vec<u8> {
    const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
    /// The number of the section that holds a component.
    const COMPONENT: u8 = 4;
    let mut component = HEADER.to_vec();
    for _ in 0..depth {
        let mut around = HEADER.to_vec();
        around.push(COMPONENT);
        let mut size = component.len();
        while size >= 0x80 {
            around.push(u8::try_from(size & 0x7f).unwrap() | 0x80);
            size >>= 7;
        }
        around.push(u8::try_from(size).unwrap());
        around.append(&mut component);
        component = around;
    }
    component
}

/// Components that each instantiate the previous one twice: a few lines stand for 2^`levels` instances.
fn doubled(levels: usize) -> Vec<u8> {
    let doubled = (1..=levels).map(|level| {
        let before = level - 1;
        format!(
            "(component $c{level} (alias outer 1 $c{before} (component $c))
             (instance (instantiate $c)) (instance (instantiate $c)))"
        )
    });
    let doubled = doubled.collect::<Vec<_>>().concat();
    let text = format!(
        "(component (component $c0 (core module $m) (core instance (instantiate $m))) {doubled}
         (instance (instantiate $c{levels})))"
    );
    wat::parse_str(text).unwrap()
}

/// A component with an import whose result is a list in a list, and so on.
fn deep_type(depth: usize) -> Vec<u8> {
    let lists = (0..depth).map(|level| format!("(type $t{} (list $t{level}))", level + 1));
    let lists = lists.collect::<Vec<_>>().concat();
    let import = format!(
        r#"(type $t0 (list u8)) {lists}
        (import "wasmspawner:policy/host@0.1.0" (instance
          (alias outer 1 $t{depth} (type $deep))
          (export "config" (func (result $deep)))))"#
    );
    ComponentText { before: &import, ..ComponentText::default() }.bytes()
}

#[tokio::test]
async fn components_that_are_nested_too_deeply_end_nothing_but_their_compilation() {
    let kind = kind_of(&nested(20_000)).await;
    assert!(matches!(kind, LoadErrorKind::CompileMemory(_)), "{kind}");
    let kind = kind_of(&nested(50)).await;
    assert!(matches!(kind, LoadErrorKind::NoMetadata), "these few are no problem: {kind}");
}

#[tokio::test]
async fn instances_that_double_are_counted_before_they_are_made() {
    let kind = kind_of(&doubled(10)).await;
    assert!(
        matches!(&kind, LoadErrorKind::Compile(why) if why.contains("1024 core module instances")),
        "{kind}"
    );
    // Counting these takes more memory than the compiler has.
    let kind = kind_of(&doubled(40)).await;
    assert!(matches!(kind, LoadErrorKind::CompileMemory(256)), "{kind}");
}

#[tokio::test]
async fn deep_types_are_refused() {
    let kind = kind_of(&deep_type(10_000)).await;
    assert!(matches!(&kind, LoadErrorKind::Compile(why) if why.contains("too deep")), "{kind}");
    let kind = kind_of(&deep_type(90)).await;
    assert!(matches!(&kind, LoadErrorKind::Link(why) if why.contains("expected `string`")), "{kind}");
}

#[tokio::test]
async fn a_huge_table_of_branches_is_refused() {
    let targets = "0 ".repeat(1_000_000);
    let function = format!("(func (param i32) block local.get 0 br_table {targets} end)");
    let kind = kind_of(&wat::parse_str(format!("(component (core module {function}))")).unwrap()).await;
    assert!(matches!(&kind, LoadErrorKind::Compile(why) if why.contains("br_table")), "{kind}");
}

/// The service has to hold the machine code, and a few bytes of a component can expand to much of it.
#[tokio::test]
async fn more_machine_code_than_the_service_can_hold_is_refused() {
    let calls = "local.get 0 local.get 0 call_indirect (param i32) ".repeat(200);
    let functions = format!("(func (param i32) {calls})").repeat(100);
    let text = format!("(component (core module (table 1 funcref) {functions}))");
    let component = wat::parse_str(text).unwrap();
    let compiler = Compiler { machine_code_bytes: 1 << 20, ..frugal().compiler };
    let (spec, _folder) = spec_of("bomb", &component);
    let error = Policies::load(vec![spec], EngineOptions { compiler, ..frugal() }).await.err().unwrap();
    let FailedPolicies::Load(error) = error else { panic!("{error}") };
    assert!(matches!(error.kind, LoadErrorKind::MachineCode(1)), "{error}");
    assert!(component.len() < 256 << 10, "{} bytes", component.len());
}
