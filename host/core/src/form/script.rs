//! The only script of the form.

/// Shows a field while its condition holds. What is hidden is disabled as well, so that it is neither submitted nor
/// insisted on. Where a page forbids inline scripts everything stays visible.
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
    // As often as there are conditions: a field may depend on one that depends on another.
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
