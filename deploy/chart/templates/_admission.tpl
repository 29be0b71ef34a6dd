{{/* The admission policy: the namespaces in which it lets the service act, and what the site grants to its labs. */}}

{{/* Namespaces that the service creates. */}}
{{- define "wasmspawner.createdNamespaces" -}}
{{- $template := include "wasmspawner.namespaceTemplate" . -}}
{{- $given := .Values.admissionPolicy.created -}}
{{- $pattern := "" -}}
{{- if not (kindIs "invalid" $given) -}}
{{- $pattern = $given -}}
{{- else if and (contains "{" $template) (ne (include "wasmspawner.namespaces" .) "single") -}}
{{- $pattern = regexReplaceAll "\\{[^{}]*\\}" $template ".*" -}}
{{- end -}}
{{- /* Targets of a pool, and of claims that people make, have namespaces with the prefix of their class. */ -}}
{{- if and (kindIs "invalid" $given) (kindIs "map" .Values.config.environments) -}}
{{- $patterns := compact (list $pattern) -}}
{{- range $prefix := .Values.environments.namespacePrefixes -}}
{{- range $namespace := list "default" "kube-system" "kube-public" $.Release.Namespace -}}
{{- if hasPrefix $prefix $namespace -}}
{{- fail (printf "environments.namespacePrefixes: %s is also the beginning of the namespace %s, in which there are no labs; use a longer prefix" $prefix $namespace) -}}
{{- end -}}
{{- end -}}
{{- $patterns = append $patterns (print $prefix ".*") -}}
{{- end -}}
{{- $pattern = join "|" $patterns -}}
{{- end -}}
{{- include "wasmspawner.checkPattern" (dict "key" "created" "pattern" $pattern "template" $template "release" .Release) -}}
{{- $pattern -}}
{{- end -}}

{{/* Namespaces that somebody else has created. */}}
{{- define "wasmspawner.existingNamespaces" -}}
{{- $template := include "wasmspawner.namespaceTemplate" . -}}
{{- $given := .Values.admissionPolicy.existing -}}
{{- $pattern := "" -}}
{{- if not (kindIs "invalid" $given) -}}
{{- $pattern = $given -}}
{{- else -}}
{{- $names := contains "{" $template | ternary list (list $template) -}}
{{- range (.Values.config.kubernetes).existing_namespaces -}}
{{- $names = append $names (regexReplaceAll "[*]$" . ".*") -}}
{{- end -}}
{{- $pattern = uniq $names | join "|" -}}
{{- end -}}
{{- include "wasmspawner.checkPattern" (dict "key" "existing" "pattern" $pattern "template" $template "release" .Release) -}}
{{- $pattern -}}
{{- end -}}

{{/* Refuses a pattern that includes namespaces of the cluster, or that would end the string of CEL it is put into. */}}
{{- define "wasmspawner.checkPattern" -}}
{{- if contains "'" .pattern -}}
{{- fail (printf "admissionPolicy.%s: %s has an apostrophe, which no name of a namespace has; remove it" .key .pattern) -}}
{{- end -}}
{{- range $namespace := list "default" "kube-system" "kube-public" .release.Namespace -}}
{{- if regexMatch (printf "^(%s)$" $.pattern) $namespace -}}
{{- fail (printf "admissionPolicy.%s: %s (from config.names.namespace, %s) includes the namespace %s, in which there are no labs; begin config.names.namespace with a text of its own, or set admissionPolicy.%s" $.key $.pattern $.template $namespace $.key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The expressions of the policy's variables that follow from the values, as YAML by the name of the variable. */}}
{{- define "wasmspawner.admissionVariables" -}}
{{- $config := .Values.config -}}
{{- $names := $config.names | default dict -}}
{{- $lab := $config.lab | default dict -}}
{{- $security := $lab.security | default dict -}}
{{- $given := .Values.admissionPolicy -}}
{{- $paths := list -}}
{{- $patches := list -}}
{{- $labels := keys ($lab.labels | default dict) -}}
{{- $objects := include "wasmspawner.prefixPattern" ($names.object_prefix | default "nb-{user_server}") -}}
{{- $pods := include "wasmspawner.prefixPattern" ($names.pod | default "nb-{user_server}") -}}
{{- $secrets := list -}}
{{- range $prefix := uniq (list $objects $pods) -}}
{{- $secrets = append $secrets (print "(tls[.])?" $prefix) -}}
{{- end -}}
{{- $existing := compact (list $lab.service_account) -}}
{{- $asRoot := false -}}
{{- $privileged := false -}}
{{- range $policy := $config.policies -}}
{{- $grants := $policy.grants | default dict -}}
{{- range $path := index $grants "host-path" -}}
{{- if contains "{home}" $path -}}
{{- fail (printf "config.policies: the grant host-path of %s has %s, which may be any path; name the folder of the homes, such as /home/{username}, or set admissionPolicy.enabled to false" $policy.name $path) -}}
{{- end -}}
{{- $paths = append $paths (print (include "wasmspawner.templatePattern" (dict "template" (trimSuffix "/" $path) "field" "[^/]+")) "(/.*)?") -}}
{{- end -}}
{{- range $secret := $grants.secrets -}}
{{- $secrets = append $secrets (include "wasmspawner.templatePattern" (dict "template" $secret "field" ".*")) -}}
{{- end -}}
{{- range $account := index $grants "service-accounts" -}}
{{- $existing = append $existing $account -}}
{{- end -}}
{{- $patches = concat $patches (index $grants "pod-patch" | default list) -}}
{{- $labels = concat $labels ($grants.metadata | default list) -}}
{{- $asRoot = or $asRoot (index $grants "run-as-root-init" | default false) -}}
{{- $privileged = or $privileged (index $grants "privileged-init" | default false) -}}
{{- end -}}
{{- /* What an administrator's lab may do is what both the site and a policy's grant allow. */ -}}
{{- $site := $lab.administrators | default dict -}}
{{- $administratorRoot := false -}}
{{- $administratorPrivileged := false -}}
{{- $administratorPaths := list -}}
{{- range $policy := $config.policies -}}
{{- $granted := (($policy.grants | default dict).administrators | default dict) -}}
{{- $administratorRoot = or $administratorRoot (and $site.root $granted.root | default false) -}}
{{- $administratorPrivileged = or $administratorPrivileged (and $site.privileged $granted.privileged | default false) -}}
{{- range $path := $site.paths -}}
{{- range $other := $granted.paths -}}
{{- if or (eq $path $other) (hasPrefix (print (trimSuffix "/" $other) "/") $path) -}}
{{- $administratorPaths = append $administratorPaths $path -}}
{{- else if hasPrefix (print (trimSuffix "/" $path) "/") $other -}}
{{- $administratorPaths = append $administratorPaths $other -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $ofAdministrators := list -}}
{{- range $path := uniq $administratorPaths -}}
{{- $ofAdministrators = append $ofAdministrators (print (regexQuoteMeta (trimSuffix "/" $path)) "(/.*)?") -}}
{{- end -}}
{{- $ofHub := list -}}
{{- range $label := list "app" "component" "release" -}}
{{- if has $label $labels -}}
{{- $ofHub = append $ofHub $label -}}
{{- end -}}
{{- end -}}
{{- $levels := list "restricted" "baseline" -}}
{{- if or $paths $privileged $security.unconfined_seccomp $administratorPrivileged $ofAdministrators -}}
{{- $levels = append $levels "privileged" -}}
{{- end -}}
{{- if eq (include "wasmspawner.namespaces" .) "retain" -}}
{{- $levels = append $levels "" -}}
{{- end -}}
{{- $accounts := uniq (list (include "wasmspawner.templatePattern" (dict "template" ($names.service_account | default "nb-{user_server}") "field" ".*")) $pods) -}}
{{- if include "wasmspawner.existingNamespaces" . -}}
{{- range $key, $pattern := dict "service_account" (index $accounts 0) "object_prefix" $objects "pod" $pods -}}
{{- if regexMatch (printf "^(%s)$" $pattern) "of-somebody-else" -}}
{{- fail (printf "config.names.%s: begins with a field, so it may be the name of any account or Secret in namespaces that others have created, and the admission policy cannot tell; begin it with a text of its own" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $environments := kindIs "map" $config.environments | ternary .Values.environments.podSecurity list -}}
{{- /* Strings, lists and maps of JSON are the same in CEL. */ -}}
{{- toYaml (dict
  "serviceAccounts" (join "|" $accounts | toJson)
  "secrets" (uniq $secrets | join "|" | toJson)
  "podSecurity" (toJson $levels)
  "hostPaths" (uniq $paths | join "|" | toJson)
  "existingAccounts" (uniq $existing | join "|" | replace "." "[.]" | toJson)
  "runAsRootInit" (toJson $asRoot)
  "privilegedInit" (toJson $privileged)
  "administratorRoot" (toJson $administratorRoot)
  "administratorPrivileged" (toJson $administratorPrivileged)
  "administratorPaths" (join "|" $ofAdministrators | toJson)
  "labContainer" ($lab.container | default "notebook" | toJson)
  "podPatch" (uniq $patches | toJson)
  "hubLabels" (toJson $ofHub)
  "privilegeEscalation" ($security.privilege_escalation | default false | toJson)
  "defaultCapabilities" ($security.default_capabilities | default false | toJson)
  "unconfinedSeccomp" ($security.unconfined_seccomp | default false | toJson)
  "serviceAccountToken" ($security.service_account_token | default false | toJson)
  "priorityClasses" (concat (list $lab.priority_class_name) $given.priorityClasses | compact | uniq | toJson)
  "runtimeClass" ($lab.runtime_class_name | default "" | toJson)
  "environments" (toJson $environments)
  "addedContainers" (toJson $given.addedContainers)
  "tokenAudiences" (toJson $given.tokenAudiences)
) -}}
{{- end -}}

{{/* A regular expression for what a template makes, with `field` in place of each field. */}}
{{- define "wasmspawner.templatePattern" -}}
{{- $quoted := list -}}
{{- range $literal := regexSplit "\\{[^{}]*\\}" .template -1 -}}
{{- $quoted = append $quoted (regexQuoteMeta $literal) -}}
{{- end -}}
{{- join .field $quoted -}}
{{- end -}}

{{/* A regular expression for names that begin as the template does: those of kernels and Dask pools are cut off. */}}
{{- define "wasmspawner.prefixPattern" -}}
{{- print (regexReplaceAll "\\{.*" . "" | regexQuoteMeta) ".*" -}}
{{- end -}}
