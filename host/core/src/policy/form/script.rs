//! The form's only script.

/// Shows a field only while its condition holds. A hidden field is also disabled, so that it is neither submitted nor
/// required. On a page that forbids inline scripts all fields stay visible.
pub(super) const VISIBILITY: &str = r#"<script>
(function () {
  var root = document.getElementById("wasmspawner-form");
  if (!root) return;
  var conditional = Array.from(root.querySelectorAll("[data-ws-when]"));
  function value(name) {
    var found = Array.from(root.querySelectorAll("input, select")).filter(function (input) {
      return input.name === name && !input.matches(":disabled") &&
        (!/^(radio|checkbox)$/.test(input.type) || input.checked);
    });
    return found.length ? found[0].value : null;
  }
  function update() {
    // Repeated once per condition, because a field may depend on one that itself depends on another.
    conditional.forEach(function () {
      conditional.forEach(function (field) {
        var shown = JSON.parse(field.dataset.wsValues).indexOf(value(field.dataset.wsWhen)) >= 0;
        field.hidden = !shown;
        field.disabled = !shown;
      });
    });
  }
  root.addEventListener("change", update);
  update();
})();
</script>
"#;
