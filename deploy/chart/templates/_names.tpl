{{/* Names and labels. */}}

{{/* The name of the release's objects. */}}
{{- define "wasmspawner.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of objects that have no namespace, and of the installation: the same release name in another namespace gives
another name. */}}
{{- define "wasmspawner.clusterName" -}}
{{- $name := include "wasmspawner.fullname" . -}}
{{- $long := eq .Release.Namespace $name | ternary $name (printf "%s-%s" .Release.Namespace $name) -}}
{{- if gt (len $long) 63 -}}
{{- printf "%s-%s" (trunc 54 $long | trimSuffix "-") (sha256sum $long | trunc 8) -}}
{{- else -}}
{{- $long -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "wasmspawner.fullname" .) -}}
{{- end -}}

{{- define "wasmspawner.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of an object. They differ from those of labs' objects, whose app.kubernetes.io/managed-by is wasmspawner. */}}
{{- define "wasmspawner.labels" -}}
{{ include "wasmspawner.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "wasmspawner.image" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository: is empty; name the repository of the image that you have built and pushed, such as registry.example.org/wasmspawner" -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The URL of the REST API in the cluster. */}}
{{- define "wasmspawner.apiUrl" -}}
{{- printf "%s%s" (include "wasmspawner.serviceUrl" .) (include "wasmspawner.prefix" .) -}}
{{- end -}}

{{/* The URL of the REST API for JupyterHub. Where only an ingress knows who asks, the Hub has to come through it. */}}
{{- define "wasmspawner.hubUrl" -}}
{{- if and .Values.gafaelfawr.enabled (include "wasmspawner.onlyIngress" .) -}}
{{- printf "https://%s%s" .Values.gafaelfawr.host (include "wasmspawner.prefix" .) -}}
{{- else -}}
{{- include "wasmspawner.apiUrl" . -}}
{{- end -}}
{{- end -}}

{{/* "true" if nobody is known who does not come through an ingress. */}}
{{- define "wasmspawner.onlyIngress" -}}
{{- if eq (toJson (.Values.config.auth).modes) `["headers"]` -}}
true
{{- end -}}
{{- end -}}

{{/* The URL of the service in the cluster, without the prefix of the REST API. */}}
{{- define "wasmspawner.serviceUrl" -}}
{{- $scheme := empty .Values.secrets.tls.existingSecret | ternary "http" "https" -}}
{{- printf "%s://%s.%s:%s" $scheme (include "wasmspawner.fullname" .) .Release.Namespace (include "wasmspawner.apiPort" .) -}}
{{- end -}}
