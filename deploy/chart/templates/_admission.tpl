{{/* The names of namespaces in which the admission policy lets the service act, as regular expressions. */}}

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
{{- else if not (contains "{" $template) -}}
{{- $pattern = $template -}}
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
