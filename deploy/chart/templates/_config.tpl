{{/* The service's configuration: `config` of the values, and what the chart knows. */}}

{{/* The configuration, as YAML. */}}
{{- define "wasmspawner.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $hub := .Values.jupyterhub.namespace | default .Release.Namespace -}}

{{- $kubernetes := $config.kubernetes | default dict -}}
{{- $_ := set $kubernetes "namespace" .Release.Namespace -}}
{{- $_ := set $kubernetes "instance" (include "wasmspawner.instance" .) -}}
{{- $_ := set $kubernetes "endpoint_slice" (include "wasmspawner.fullname" .) -}}
{{- $_ := set $config "kubernetes" $kubernetes -}}

{{- $names := $config.names | default dict -}}
{{- $_ := set $names "hub_namespace" ($names.hub_namespace | default $hub) -}}
{{- $_ := set $config "names" $names -}}

{{- $lab := $config.lab | default dict -}}
{{- $network := $lab.network_policy | default dict -}}
{{- $_ := set $network "hub_namespace" ($network.hub_namespace | default $hub) -}}
{{- $_ := set $lab "network_policy" $network -}}
{{- $_ := set $config "lab" $lab -}}

{{- $http := $config.http | default dict -}}
{{- $_ := set $http "listen" (include "wasmspawner.listen" .) -}}
{{- $_ := set $http "health_listen" (include "wasmspawner.healthListen" .) -}}
{{- if .Values.secrets.tls.existingSecret -}}
{{- $_ := set $http "tls" (dict "cert" "/etc/wasmspawner/tls/tls.crt" "key" "/etc/wasmspawner/tls/tls.key") -}}
{{- end -}}
{{- if .Values.kernels.enabled -}}
{{- $_ := set $http "labs_url" (include "wasmspawner.labsUrl" .) -}}
{{- end -}}
{{- $_ := set $config "http" $http -}}

{{- $auth := $config.auth | default dict -}}
{{- if .Values.secrets.staticTokens.existingSecret -}}
{{- $_ := set $auth "static" (dict "tokens_file" "/etc/wasmspawner/secrets/static/tokens.yaml") -}}
{{- end -}}
{{- if .Values.secrets.ingressSecret.existingSecret -}}
{{- $headers := $auth.headers | default dict -}}
{{- $_ := set $headers "proof" (dict "shared-secret" (dict "file" "/etc/wasmspawner/secrets/ingress/secret")) -}}
{{- $_ := set $auth "headers" $headers -}}
{{- end -}}
{{- $_ := set $config "auth" $auth -}}
{{- if .Values.secrets.hubToken.existingSecret -}}
{{- $_ := set $config "hub" (set ($config.hub | default dict) "token_file" "/etc/wasmspawner/secrets/hub/token") -}}
{{- end -}}

{{- if .Values.secrets.registryLogins.existingSecret -}}
{{- $_ := set $config "registries" (set ($config.registries | default dict) "credentials_file" "/etc/wasmspawner/secrets/registry/config.json") -}}
{{- end -}}

{{- if .Values.secrets.registryAuthorities.existingSecret -}}
{{- $_ := set $config "registries" (set ($config.registries | default dict) "ca_file" "/etc/wasmspawner/secrets/registry-ca/ca.crt") -}}
{{- end -}}

{{- if or .Values.secrets.natsLogin.existingSecret .Values.secrets.natsAuthorities.existingSecret -}}
{{- $history := $config.history | default dict -}}
{{- $nats := $history.nats | default dict -}}
{{- with .Values.secrets.natsLogin -}}
{{- if .existingSecret -}}
{{- $_ := set $nats .as "/etc/wasmspawner/secrets/nats/login" -}}
{{- end -}}
{{- end -}}
{{- if .Values.secrets.natsAuthorities.existingSecret -}}
{{- $_ := set $nats "ca_file" "/etc/wasmspawner/secrets/nats-ca/ca.crt" -}}
{{- end -}}
{{- $_ := set $config "history" (set $history "nats" $nats) -}}
{{- end -}}

{{- $policies := list -}}
{{- range $policy := $config.policies | default list -}}
{{- $file := get $.Values.policyFiles $policy.name -}}
{{- if not (or $policy.path $policy.oci) -}}
{{- if not $file -}}
{{- fail (printf "config.policies: the policy %q has neither `oci` nor `path`, and policyFiles has no entry of that name; add policyFiles.%s with `bundled`, `configMap` or `image`" $policy.name $policy.name) -}}
{{- end -}}
{{- $policy = set $policy "path" (include "wasmspawner.policyPath" (dict "name" $policy.name "file" $file)) -}}
{{- end -}}
{{- $policies = append $policies $policy -}}
{{- end -}}
{{- $_ := set $config "policies" $policies -}}

{{- $_ := set $config "state_dir" "/var/lib/wasmspawner/state" -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The URL at which labs reach the service. Behind Gafaelfawr it is that of the ingress, which knows the tokens that labs have. */}}
{{- define "wasmspawner.labsUrl" -}}
{{- if (.Values.config.http).labs_url -}}
{{- .Values.config.http.labs_url -}}
{{- else if and .Values.gafaelfawr.enabled (include "wasmspawner.onlyIngress" .) -}}
https://{{ .Values.gafaelfawr.host }}
{{- else -}}
{{- include "wasmspawner.serviceUrl" . -}}
{{- end -}}
{{- end -}}

{{/* The host in that URL. */}}
{{- define "wasmspawner.labsHost" -}}
{{- (include "wasmspawner.labsUrl" . | urlParse).host | lower | regexFind "^[^:]*" -}}
{{- end -}}

{{/* The path of a policy's component in the pod. */}}
{{- define "wasmspawner.policyPath" -}}
{{- $file := .file | default dict -}}
{{- if $file.bundled -}}
/usr/share/wasmspawner/policies/{{ $file.bundled }}
{{- else if $file.configMap -}}
/etc/wasmspawner/policies/{{ .name }}/policy.wasm
{{- else if ($file.image).path -}}
/etc/wasmspawner/policies/{{ .name }}/{{ $file.image.path | trimPrefix "/" }}
{{- else -}}
/etc/wasmspawner/policies/{{ .name }}
{{- end -}}
{{- end -}}

{{/* The policies of the chain that come from a volume: a list under the key `policies`. */}}
{{- define "wasmspawner.mountedPolicies" -}}
{{- $mounted := list -}}
{{- range $policy := .Values.config.policies | default list -}}
{{- $file := get $.Values.policyFiles $policy.name | default dict -}}
{{- if and (not (or $policy.path $policy.oci)) (or $file.configMap $file.image) -}}
{{- $mounted = append $mounted (dict "name" $policy.name "file" $file) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "policies" $mounted) -}}
{{- end -}}

{{- define "wasmspawner.instance" -}}
{{- (.Values.config.kubernetes).instance | default (include "wasmspawner.clusterName" .) -}}
{{- end -}}

{{/* Where labs are: delete, retain or single. */}}
{{- define "wasmspawner.namespaces" -}}
{{- (.Values.config.kubernetes).namespaces | default "delete" -}}
{{- end -}}

{{/* The template of the names of labs' namespaces; the default is that of the service. */}}
{{- define "wasmspawner.namespaceTemplate" -}}
{{- (.Values.config.names).namespace | default "nublado-{user_server}" -}}
{{- end -}}

{{- define "wasmspawner.prefix" -}}
{{- (.Values.config.http).prefix | default "/spawner/v1" -}}
{{- end -}}

{{- define "wasmspawner.anyAddress" -}}
{{- eq .Values.service.addressType "IPv6" | ternary "[::]" "0.0.0.0" -}}
{{- end -}}

{{- define "wasmspawner.listen" -}}
{{- (.Values.config.http).listen | default (print (include "wasmspawner.anyAddress" .) ":8090") -}}
{{- end -}}

{{- define "wasmspawner.healthListen" -}}
{{- (.Values.config.http).health_listen | default (print (include "wasmspawner.anyAddress" .) ":8091") -}}
{{- end -}}

{{- define "wasmspawner.apiPort" -}}
{{- include "wasmspawner.listen" . | splitList ":" | last -}}
{{- end -}}

{{- define "wasmspawner.healthPort" -}}
{{- include "wasmspawner.healthListen" . | splitList ":" | last -}}
{{- end -}}

{{/* The seconds of a duration such as 1m30s. */}}
{{- define "wasmspawner.seconds" -}}
{{- $seconds := 0 -}}
{{- range $part := regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $factor := dict "h" 3600 "m" 60 "s" 1 | dig (regexFind "[hms]" $part) 1 -}}
{{- $seconds = add $seconds (mul $factor (regexFind "[0-9]+" $part | int)) -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/* Seconds between SIGTERM and SIGKILL. */}}
{{- define "wasmspawner.gracePeriod" -}}
{{- $drain := (.Values.config.limits).drain | default "20s" -}}
{{- $given := .Values.terminationGracePeriodSeconds -}}
{{- if not (regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" $drain) -}}
{{- if kindIs "invalid" $given -}}
{{- fail (printf "config.limits.drain: %s is not written as in 1m30s, so the pod's grace period cannot be derived; write it so, or set terminationGracePeriodSeconds" $drain) -}}
{{- end -}}
{{- $given | int -}}
{{- else -}}
{{- $drained := include "wasmspawner.seconds" $drain | int -}}
{{- if kindIs "invalid" $given -}}
{{- add $drained 30 -}}
{{- else if lt ($given | int) (add $drained 30 | int) -}}
{{- fail (printf "terminationGracePeriodSeconds: %d is less than 30 s above config.limits.drain (%s), so the service would be killed while it finishes spawns or hands over; set more, or leave it out" ($given | int) $drain) -}}
{{- else -}}
{{- $given | int -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The ports of the servers of `config.history.nats`, as a list. */}}
{{- define "wasmspawner.natsPorts" -}}
{{- $ports := list -}}
{{- range $server := .servers -}}
{{- $port := regexFind ":[0-9]+$" $server | trimPrefix ":" | default "4222" -}}
{{- $ports = append $ports (int $port) -}}
{{- end -}}
{{- uniq $ports | toYaml -}}
{{- end -}}
