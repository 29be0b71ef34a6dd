//! Imports have no cycles: no file uses, directly or through others, a file that uses it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

use super::assert_rule;
use super::tree::{Text, rust_in};

/// A module's path in its crate: `["names", "slug"]`. The crate's root has the empty path.
type ModulePath = Vec<String>;

/// One source file, with its re-exports and the paths that it uses.
struct Module {
    file: String,
    /// The name of each re-export (`pub use`), and the path that it comes from.
    re_exports: HashMap<String, ModulePath>,
    names: Vec<ModulePath>,
}

#[test]
fn imports_have_no_cycles() {
    let mut offences = Vec::new();
    for source in crates() {
        let modules = modules(&source);
        let uses = uses(&modules);
        for cycle in cycles(&uses) {
            offences.push(
                cycle.iter().map(|path| modules[*path].file.as_str()).collect::<Vec<_>>().join(" <-> "),
            );
        }
        for cycle in cycles(&folders(&uses)) {
            let names: Vec<String> = cycle.iter().map(|name| format!("{source}{name}/")).collect();
            offences.push(names.join(" <-> "));
        }
    }
    assert_rule("These files or folders use each other; move what both need into a third one:", &offences);
}

/// The source folders of all crates except the guests of tests.
fn crates() -> BTreeSet<String> {
    let files = rust_in("").into_iter().filter(|file| !file.path.starts_with("tests/"));
    files
        .filter_map(|file| file.path.split_once("/src/").map(|(folder, _)| format!("{folder}/src/")))
        .collect()
}

fn modules(source: &str) -> BTreeMap<ModulePath, Module> {
    let files = rust_in(source);
    assert!(!files.is_empty(), "{source} has no sources");
    files.into_iter().filter(|file| !is_test(file)).map(|file| module(source, &file)).collect()
}

/// Tests may use everything that they test.
fn is_test(file: &Text) -> bool {
    file.path.ends_with("tests.rs") || file.path.contains("/tests/") || file.path.ends_with("/properties.rs")
}

fn module(source: &str, file: &Text) -> (ModulePath, Module) {
    let inside = file.path.strip_prefix(source).unwrap().trim_end_matches(".rs");
    let inside = inside.trim_end_matches("/mod");
    let is_root = matches!(inside, "lib" | "main" | "mod");
    let path: ModulePath = if is_root { Vec::new() } else { inside.split('/').map(str::to_owned).collect() };
    let mut reader = Reader { here: path.clone(), re_exports: HashMap::new(), names: Vec::new() };
    reader.visit_file(&syn::parse_file(&file.text).unwrap());
    (path, Module { file: file.path.clone(), re_exports: reader.re_exports, names: reader.names })
}

/// Collects the paths that a file names, as paths of its crate.
struct Reader {
    here: ModulePath,
    re_exports: HashMap<String, ModulePath>,
    names: Vec<ModulePath>,
}

impl Reader {
    /// Returns the path from the crate's root. `None` for a path that leads elsewhere, or that is valid only in this
    /// module.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let supers = path.iter().take_while(|segment| *segment == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (&self.here[..], &path[1..]),
            "super" => (&self.here[..self.here.len().checked_sub(supers)?], &path[supers..]),
            _ => return None,
        };
        Some(base.iter().chain(rest).cloned().collect())
    }

    fn read_use(&mut self, tree: &UseTree, before: &[String], public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.read_use(&path.tree, &with(&path.ident), public),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.read_use(tree, before, public)),
            UseTree::Name(name) if name.ident == "self" => self.take(before, before.last(), public),
            UseTree::Name(name) => self.take(&with(&name.ident), Some(&name.ident.to_string()), public),
            UseTree::Rename(name) => self.take(&with(&name.ident), Some(&name.rename.to_string()), public),
            UseTree::Glob(_) => self.take(before, None, false),
        }
    }

    fn take(&mut self, path: &[String], as_name: Option<&String>, public: bool) {
        let found = self.absolute(path);
        if let (true, Some(name)) = (public, as_name) {
            // `pub use slug::Slug` names a module of this one.
            let from = found.unwrap_or_else(|| self.here.iter().chain(path).cloned().collect());
            self.re_exports.insert(name.clone(), from);
        } else {
            self.names.extend(found);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Mod(ItemMod { content: Some(_), ident, .. }) if ident == "tests" => {}
            Item::Use(ItemUse { tree, vis, .. }) => {
                self.read_use(tree, &[], !matches!(vis, Visibility::Inherited));
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.names.extend(self.absolute(&segments));
        visit::visit_path(self, path);
    }
}

/// The modules that each module uses. The module itself and those above and below it are left out, because a folder's
/// `mod.rs` and the files beside it look like one module from outside.
fn uses(modules: &BTreeMap<ModulePath, Module>) -> BTreeMap<&ModulePath, BTreeSet<&ModulePath>> {
    let used_by = |(path, module)| {
        let path: &ModulePath = path;
        let module: &Module = module;
        let used = module.names.iter().filter_map(|name| definer(modules, name.clone()));
        let used = used.filter(|used| !used.starts_with(path) && !path.starts_with(used));
        (path, used.collect())
    };
    modules.iter().map(used_by).collect()
}

/// The module that defines the item of a path, found through `pub use`.
fn definer(modules: &BTreeMap<ModulePath, Module>, mut name: ModulePath) -> Option<&ModulePath> {
    for _ in 0..8 {
        let depth = (0..=name.len()).rev().find(|depth| modules.contains_key(&name[..*depth]))?;
        let (path, module) = modules.get_key_value(&name[..depth])?;
        match name.get(depth).and_then(|item| module.re_exports.get(item)) {
            Some(from) => name = from.iter().chain(&name[depth + 1..]).cloned().collect(),
            None => return Some(path),
        }
    }
    None
}

/// The same between the folders and files of the crate's root.
fn folders<'a>(
    uses: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, used) in uses {
        let Some(folder) = path.first() else { continue };
        let others = used.iter().filter_map(|other| other.first()).filter(|other| *other != folder);
        folders.entry(folder).or_default().extend(others.map(String::as_str));
    }
    folders
}

/// The groups of nodes that reach each other, directly or through others.
fn cycles<N: Ord + Copy>(uses: &BTreeMap<N, BTreeSet<N>>) -> Vec<Vec<N>> {
    let reached: BTreeMap<N, BTreeSet<N>> = uses.keys().map(|from| (*from, reach(uses, *from))).collect();
    let mut found = BTreeSet::new();
    for (from, to) in &reached {
        let cycle: Vec<_> = to.iter().filter(|other| reached[other].contains(from)).copied().collect();
        if cycle.len() > 1 {
            found.insert(cycle);
        }
    }
    found.into_iter().collect()
}

fn reach<N: Ord + Copy>(uses: &BTreeMap<N, BTreeSet<N>>, from: N) -> BTreeSet<N> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<N> = uses[&from].iter().copied().collect();
    while let Some(node) = next.pop() {
        if reached.insert(node) {
            next.extend(&uses[&node]);
        }
    }
    reached
}

#[test]
fn a_cycle_through_re_exports_is_found() {
    let file = |path: &str, text: &str| Text { path: format!("c/{path}"), text: text.to_owned() };
    let read = |files: [Text; 4]| -> BTreeMap<ModulePath, Module> {
        files.iter().map(|file| module("c/", file)).collect()
    };
    let cycle = read([
        file("lib.rs", "mod a; mod b;"),
        file("a/mod.rs", "mod one; pub use one::One;"),
        file("a/one.rs", "use crate::b::Two; pub struct One(Two);"),
        file("b.rs", "pub struct Two; fn f() -> crate::a::One { todo!() }"),
    ]);
    let found = cycles(&uses(&cycle));
    assert_eq!(found, [[&vec!["a".to_owned(), "one".to_owned()], &vec!["b".to_owned()]]]);
    let line = read([
        file("lib.rs", "mod a; mod b;"),
        file("a/mod.rs", "mod one; pub use one::One; pub fn shared() {}"),
        file("a/one.rs", "use super::shared; pub struct One;"),
        file("b.rs", "fn f() -> crate::a::One { todo!() }"),
    ]);
    assert!(cycles(&uses(&line)).is_empty());
}
