{{/* Parts that the pods of the service, of `helm test` and of the check before an upgrade share. */}}

{{- define "wasmspawner.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
# Otherwise the kubelet would open the directory of compiled policies to the group, and the service would refuse it.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "wasmspawner.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Without MALLOC_ARENA_MAX, glibc keeps free memory for each thread. */}}
{{- define "wasmspawner.environment" -}}
- name: MALLOC_ARENA_MAX
  value: "1"
- name: WASMSPAWNER_CONFIG
  value: /etc/wasmspawner/config/wasmspawner.yaml
{{- end -}}

{{- define "wasmspawner.volumeMounts" -}}
- name: config
  mountPath: /etc/wasmspawner/config
  readOnly: true
- name: state
  mountPath: /var/lib/wasmspawner
{{- range $secret := include "wasmspawner.mountedSecrets" . | fromYaml | dig "secrets" list }}
- name: {{ $secret.volume }}
  mountPath: {{ $secret.path }}
  readOnly: true
{{- end }}
{{- range $policy := include "wasmspawner.mountedPolicies" . | fromYaml | dig "policies" list }}
- name: policy-{{ $policy.name }}
  mountPath: /etc/wasmspawner/policies/{{ $policy.name }}
  readOnly: true
{{- end }}
{{- range $name := .Values.policyData }}
- name: data-{{ $name }}
  mountPath: /etc/wasmspawner/data/{{ $name }}
  readOnly: true
{{- end }}
{{- end -}}

{{/* All volumes except that of the state. */}}
{{- define "wasmspawner.volumes" -}}
- name: config
  configMap:
    name: {{ include "wasmspawner.fullname" . }}
{{ include "wasmspawner.volumesBesideConfig" . }}
{{- end -}}

{{- define "wasmspawner.volumesBesideConfig" -}}
{{- range $secret := include "wasmspawner.mountedSecrets" . | fromYaml | dig "secrets" list }}
- name: {{ $secret.volume }}
  secret:
    secretName: {{ $secret.name }}
    defaultMode: 0400
    items:
      {{- toYaml $secret.items | nindent 6 }}
{{- end }}
{{- range $policy := include "wasmspawner.mountedPolicies" . | fromYaml | dig "policies" list }}
- name: policy-{{ $policy.name }}
  {{- if $policy.file.configMap }}
  configMap:
    name: {{ $policy.file.configMap.name }}
    items:
      - key: {{ $policy.file.configMap.key }}
        path: policy.wasm
  {{- else }}
  image:
    reference: {{ $policy.file.image.reference }}
    pullPolicy: {{ $policy.file.image.pullPolicy | default "IfNotPresent" }}
  {{- end }}
{{- end }}
{{- range $name := .Values.policyData }}
- name: data-{{ $name }}
  configMap:
    name: {{ $name }}
{{- end }}
{{- end -}}

{{/* The Secrets that are mounted: a list under the key `secrets`. */}}
{{- define "wasmspawner.mountedSecrets" -}}
{{- $mounted := list -}}
{{- with .Values.secrets -}}
{{- if .staticTokens.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "static-tokens" "name" .staticTokens.existingSecret "path" "/etc/wasmspawner/secrets/static" "items" (list (dict "key" .staticTokens.key "path" "tokens.yaml"))) -}}
{{- end -}}
{{- if .hubToken.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "hub-token" "name" .hubToken.existingSecret "path" "/etc/wasmspawner/secrets/hub" "items" (list (dict "key" .hubToken.key "path" "token"))) -}}
{{- end -}}
{{- if .registryLogins.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "registry-logins" "name" .registryLogins.existingSecret "path" "/etc/wasmspawner/secrets/registry" "items" (list (dict "key" .registryLogins.key "path" "config.json"))) -}}
{{- end -}}
{{- if .registryAuthorities.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "registry-authorities" "name" .registryAuthorities.existingSecret "path" "/etc/wasmspawner/secrets/registry-ca" "items" (list (dict "key" .registryAuthorities.key "path" "ca.crt"))) -}}
{{- end -}}
{{- if .natsLogin.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "nats-login" "name" .natsLogin.existingSecret "path" "/etc/wasmspawner/secrets/nats" "items" (list (dict "key" .natsLogin.key "path" "login"))) -}}
{{- end -}}
{{- if .natsAuthorities.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "nats-authorities" "name" .natsAuthorities.existingSecret "path" "/etc/wasmspawner/secrets/nats-ca" "items" (list (dict "key" .natsAuthorities.key "path" "ca.crt"))) -}}
{{- end -}}
{{- if .ingressSecret.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "ingress-secret" "name" .ingressSecret.existingSecret "path" "/etc/wasmspawner/secrets/ingress" "items" (list (dict "key" .ingressSecret.key "path" "secret"))) -}}
{{- end -}}
{{- if .tls.existingSecret -}}
{{- $mounted = append $mounted (dict "volume" "tls" "name" .tls.existingSecret "path" "/etc/wasmspawner/tls" "items" (list (dict "key" .tls.certKey "path" "tls.crt") (dict "key" .tls.privateKeyKey "path" "tls.key"))) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "secrets" $mounted) -}}
{{- end -}}

{{/* A container that checks the configuration and the policies. The image has no shell, so it is a command of the service. */}}
{{- define "wasmspawner.checkContainer" -}}
- name: check
  image: {{ include "wasmspawner.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args: [check]
  env:
    {{- include "wasmspawner.environment" . | nindent 4 }}
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    {{- include "wasmspawner.containerSecurityContext" . | nindent 4 }}
  volumeMounts:
    {{- include "wasmspawner.volumeMounts" . | nindent 4 }}
{{- end -}}

{{/* What the pods of checks have in common, beside containers and volumes. */}}
{{- define "wasmspawner.checkPod" -}}
restartPolicy: Never
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "wasmspawner.podSecurityContext" . | nindent 2 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
