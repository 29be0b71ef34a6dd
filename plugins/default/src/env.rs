use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{EnvValue, EnvVar};

/// A variable of the lab's environment.
pub(crate) type Variable = EnvVar;

/// Reads variables by name. The value is a text, or an object that names the source of the value.
pub(crate) fn read(config: &mut Section<'_>, key: &'static str) -> Vec<Variable> {
    let entries: std::collections::BTreeMap<String, serde_json::Value> = config.or_default(key);
    let mut variables = Vec::new();
    for (name, value) in entries {
        match variable(&name, &value) {
            Some(variable) => {
                if let EnvValue::Literal(text) = &variable.value {
                    config.check_template(key, text);
                }
                variables.push(variable);
            }
            None => config.problem(
                key,
                format!("`{name}` must be a text, {{secret: NAME, key: KEY}} or {{field: PATH}}"),
            ),
        }
    }
    variables
}

/// Sets a variable, replacing an earlier value.
pub(crate) fn set(env: &mut Vec<Variable>, variable: Variable) {
    env.retain(|before| before.name != variable.name);
    env.push(variable);
}

fn variable(name: &str, value: &serde_json::Value) -> Option<Variable> {
    use serde_json::Value;
    match value {
        Value::String(text) => Some(EnvVar::literal(name, text)),
        Value::Number(number) => Some(EnvVar::literal(name, number.to_string())),
        Value::Bool(flag) => Some(EnvVar::literal(name, flag.to_string())),
        Value::Object(source) => {
            let text = |key: &str| source.get(key).and_then(Value::as_str);
            match (text("secret"), text("key"), text("field"), source.len()) {
                (Some(secret), Some(key), None, 2) => Some(EnvVar::secret(name, secret, key)),
                (None, None, Some(field), 1) => Some(EnvVar::field(name, field)),
                _ => None,
            }
        }
        Value::Null | Value::Array(_) => None,
    }
}
