{{/* Combinations of values that cannot work. Each message names the key, the value and the remedy. */}}

{{- define "wasmspawner.checks" -}}
{{- include "wasmspawner.checkSetByChart" . -}}
{{- include "wasmspawner.checkAuth" . -}}
{{- include "wasmspawner.checkNamespaces" . -}}
{{- include "wasmspawner.checkEnvironments" . -}}
{{- include "wasmspawner.checkPolicyFiles" . -}}
{{- include "wasmspawner.checkRoutes" . -}}
{{- include "wasmspawner.checkGafaelfawr" . -}}
{{- include "wasmspawner.checkKernels" . -}}
{{- include "wasmspawner.checkDefinition" . -}}
{{- include "wasmspawner.checkReplicas" . -}}
{{- end -}}

{{- define "wasmspawner.checkSetByChart" -}}
{{- $config := .Values.config -}}
{{- range $key, $remedy := dict
  "kubernetes.namespace" "the service keeps its records in the release's namespace; install the release there"
  "kubernetes.endpoint_slice" "it is that of the Service of the chart; remove the key"
  "kubernetes.kubeconfig" "the service uses the account of its pod; remove the key"
  "kubernetes.context" "the service uses the account of its pod; remove the key"
  "http.tls" "name the Secret with the certificate in secrets.tls.existingSecret"
  "auth.static.tokens_file" "name the Secret with the tokens in secrets.staticTokens.existingSecret"
  "hub.token_file" "name the Secret with the token in secrets.hubToken.existingSecret"
  "registries.credentials_file" "name the Secret with the logins in secrets.registryLogins.existingSecret"
  "registries.ca_file" "name the Secret with the certificates in secrets.registryAuthorities.existingSecret"
  "history.nats.credentials_file" "name the Secret with the login in secrets.natsLogin.existingSecret"
  "history.nats.token_file" "name the Secret with the login in secrets.natsLogin.existingSecret, and set secrets.natsLogin.as to token_file"
  "history.nats.password_file" "name the Secret with the login in secrets.natsLogin.existingSecret, and set secrets.natsLogin.as to password_file"
  "history.nats.ca_file" "name the Secret with the certificates in secrets.natsAuthorities.existingSecret"
  "embedded" "a one-machine cluster has no place in a pod; remove the section"
  "state_dir" "see `state` for the volume"
-}}
{{- $value := $config -}}
{{- range $part := splitList "." $key -}}
{{- $value = kindIs "map" $value | ternary (get (kindIs "map" $value | ternary $value dict) $part) nil -}}
{{- end -}}
{{- if $value -}}
{{- fail (printf "config.%s: cannot be set (here %v): %s" $key $value $remedy) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "listen" "health_listen" -}}
{{- $address := get ($config.http | default dict) $key | default "" -}}
{{- if or (hasPrefix "127." $address) (hasPrefix "localhost:" $address) (hasPrefix "[::1]:" $address) -}}
{{- fail (printf "config.http.%s: nobody outside of the pod reaches %s; use 0.0.0.0 or [::] as the address" $key $address) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkAuth" -}}
{{- $auth := .Values.config.auth | default dict -}}
{{- $secrets := .Values.secrets -}}
{{- $modes := $auth.modes | default list -}}
{{- if not $modes -}}
{{- fail "config.auth: is not set, so nobody could use the service; set config.auth.modes and the section of each mode, as in the chart's examples" -}}
{{- end -}}
{{- range $mode := list "jupyterhub" "headers" "oidc" -}}
{{- if and (has $mode $modes) (not (get $auth $mode)) -}}
{{- fail (printf "config.auth.modes: has %s, and config.auth.%s is not set; add that section" $mode $mode) -}}
{{- end -}}
{{- end -}}
{{- if and (has "static" $modes) (not $secrets.staticTokens.existingSecret) -}}
{{- fail "config.auth.modes: has static, and secrets.staticTokens.existingSecret is empty; name the Secret with the file of tokens" -}}
{{- end -}}
{{- if and $secrets.staticTokens.existingSecret (not (has "static" $modes)) -}}
{{- fail (printf "secrets.staticTokens.existingSecret: %s is not used; add static to config.auth.modes, or remove it" $secrets.staticTokens.existingSecret) -}}
{{- end -}}
{{- if and .Values.config.hub (not $secrets.hubToken.existingSecret) -}}
{{- fail "config.hub: the service needs a token for the Hub; name its Secret in secrets.hubToken.existingSecret" -}}
{{- end -}}
{{- range $key := list "natsLogin" "natsAuthorities" -}}
{{- $secret := (get $secrets $key).existingSecret -}}
{{- if and $secret (not ($.Values.config.history).nats) -}}
{{- fail (printf "secrets.%s.existingSecret: %s is not used; set config.history.nats, or remove it" $key $secret) -}}
{{- end -}}
{{- end -}}
{{- $headers := $auth.headers | default dict -}}
{{- $shared := and (kindIs "map" $headers.proof) (hasKey ($headers.proof | default dict) "shared-secret") -}}
{{- if and $shared (not $secrets.ingressSecret.existingSecret) -}}
{{- fail "config.auth.headers.proof: is shared-secret, and secrets.ingressSecret.existingSecret is empty; name the Secret that the ingress sends" -}}
{{- end -}}
{{- if and $secrets.ingressSecret.existingSecret (not $shared) -}}
{{- fail (printf "secrets.ingressSecret.existingSecret: %s is not used; set config.auth.headers.proof to {shared-secret: {}}, or remove it" $secrets.ingressSecret.existingSecret) -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkNamespaces" -}}
{{- $how := include "wasmspawner.namespaces" . -}}
{{- $given := (.Values.config.names).namespace | default "" -}}
{{- $template := include "wasmspawner.namespaceTemplate" . -}}
{{- if and (eq $how "single") (not $given) -}}
{{- fail "config.names.namespace: is not set, and config.kubernetes.namespaces is single; name the one namespace of all labs, such as jupyterhub-labs" -}}
{{- end -}}
{{- if and (eq $how "single") (contains "{" $given) -}}
{{- fail (printf "config.names.namespace: %s has a field, and config.kubernetes.namespaces is single; name one namespace without fields, or use retain" $given) -}}
{{- end -}}
{{- if eq $template .Release.Namespace -}}
{{- fail (printf "config.names.namespace: %s is the service's own namespace, which holds the site's secrets; name another one for labs" $template) -}}
{{- end -}}
{{- if and .Values.labsNamespace.create (ne $how "single") -}}
{{- fail (printf "labsNamespace.create: is true, and config.kubernetes.namespaces is %s; set that to single, or labsNamespace.create to false" $how) -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name: is empty, and serviceAccount.create is false; name the existing account" -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkEnvironments" -}}
{{- $enabled := kindIs "map" .Values.config.environments -}}
{{- if and $enabled (eq (include "wasmspawner.namespaces" .) "single") -}}
{{- fail "config.environments: is set, and config.kubernetes.namespaces is single; labs of environments have namespaces of their own, so set that to delete or retain, or remove config.environments" -}}
{{- end -}}
{{- if and .Values.environments.credentialsSecrets (not $enabled) -}}
{{- fail (printf "environments.credentialsSecrets: %s is not used; set config.environments, which may be {}, or remove it" (join ", " .Values.environments.credentialsSecrets)) -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkPolicyFiles" -}}
{{- range $name, $file := .Values.policyFiles -}}
{{- $sources := keys ($file | default dict) | sortAlpha -}}
{{- if and $file (ne (len $sources) 1) -}}
{{- fail (printf "policyFiles.%s: has %s; say exactly one of bundled, configMap and image" $name (join " and " $sources | default "nothing")) -}}
{{- end -}}
{{- if and ($file | default dict).image (semverCompare "<1.35.0-0" $.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "policyFiles.%s.image: Kubernetes %s may not mount images as volumes; use configMap, or Kubernetes 1.35 or later" $name $.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkRoutes" -}}
{{- range $key := list "ingress" "httpRoute" "gafaelfawr" -}}
{{- $route := get $.Values $key -}}
{{- if $route.enabled -}}
{{- if and $.Values.networkPolicy.enabled (not $.Values.networkPolicy.apiClients) -}}
{{- fail (printf "%s.enabled: the network policy lets only JupyterHub in; name the ingress controller's pods in networkPolicy.apiClients, or set networkPolicy.enabled to false" $key) -}}
{{- end -}}
{{- if and (ne $key "httpRoute") (not $route.host) -}}
{{- fail (printf "%s.host: is empty; name the host of the API" $key) -}}
{{- end -}}
{{- if and (eq $key "httpRoute") (not $route.parentRefs) -}}
{{- fail "httpRoute.parentRefs: is empty; name the Gateway, such as [{name: public, namespace: gateways}]" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $headers := (.Values.config.auth).headers | default dict -}}
{{- if and $headers.url .Values.networkPolicy.enabled (not .Values.networkPolicy.extraEgress) -}}
{{- $url := urlParse $headers.url -}}
{{- if or (contains ":" $url.host) (eq $url.scheme "http") -}}
{{- fail (printf "config.auth.headers.url: the network policy does not let the service connect to %s; add a rule to networkPolicy.extraEgress" $headers.url) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkGafaelfawr" -}}
{{- $auth := .Values.config.auth | default dict -}}
{{- $headers := $auth.headers | default dict -}}
{{- $values := .Values.gafaelfawr -}}
{{- if $values.enabled -}}
{{- if not (has "headers" ($auth.modes | default list)) -}}
{{- fail "gafaelfawr.enabled: is true, and config.auth.modes has no headers, so the service would ignore what Gafaelfawr says; add headers and its section" -}}
{{- end -}}
{{- $proof := $headers.proof | default "delegated-token" -}}
{{- if or (kindIs "map" $proof) (ne (toString $proof) "delegated-token") -}}
{{- fail (printf "config.auth.headers.proof: is %v, and the routes of gafaelfawr delegate a token; remove the key, so that it is delegated-token" (toJson $proof)) -}}
{{- end -}}
{{- $forged := without ($headers.ingress_also_sets | default list) "email" -}}
{{- if $forged -}}
{{- fail (printf "config.auth.headers.ingress_also_sets: has %s, and NGINX lets these headers of Gafaelfawr through as the client sends them, so that users could give themselves groups or scopes; remove them, because the service asks Gafaelfawr" (join ", " $forged)) -}}
{{- end -}}
{{- if lt ($values.minimumLifetime | default 300 | int) 300 -}}
{{- fail (printf "gafaelfawr.minimumLifetime: is %d, and Gafaelfawr answers every request with an error if it is below 300 (seconds); set more, or leave it out" (int $values.minimumLifetime)) -}}
{{- end -}}
{{- if or (not (hasKey $headers "implied_scopes")) $headers.implied_scopes -}}
{{- fail "config.auth.headers.implied_scopes: has exec:notebook (its default) or more, which would give every caller of the Hub's and administrators' routes that scope; set it to [], because the service reads the scopes of the delegated token" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labs have the tokens of their users. Where only an ingress knows these, labs have to come through the ingress. */}}
{{- define "wasmspawner.checkKernels" -}}
{{- $gafaelfawr := .Values.gafaelfawr -}}
{{- if .Values.kernels.enabled -}}
{{- $url := include "wasmspawner.labsUrl" . -}}
{{- $given := (.Values.config.http).labs_url -}}
{{- $name := include "wasmspawner.fullname" . -}}
{{- $service := printf "^%s([.]%s([.]svc([.].+)?)?)?$" $name .Release.Namespace -}}
{{- if and (regexMatch $service (include "wasmspawner.labsHost" .)) (include "wasmspawner.onlyIngress" .) -}}
{{- $remedy := $gafaelfawr.enabled | ternary "remove the key, so that labs use the ingress" "set it to the URL of the ingress, as gafaelfawr.enabled does, or set kernels.enabled to false" -}}
{{- fail (printf "config.http.labs_url: is %s%s, where nobody knows the tokens of labs, because config.auth.modes has only headers; %s" $url (empty $given | ternary " (its default)" "") $remedy) -}}
{{- end -}}
{{- range $key := list "spawnScopes" "labScopes" -}}
{{- if and $gafaelfawr.enabled (not (has "exec:notebook" (get $gafaelfawr $key))) -}}
{{- fail (printf "gafaelfawr.%s: has no exec:notebook (here %s), and kernels.enabled is true, but labs have no other scope; add it, or set kernels.enabled to false" $key (join ", " (get $gafaelfawr $key))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "wasmspawner.checkReplicas" -}}
{{- if and (gt (int .Values.replicas) 1) .Values.state.persistence.enabled -}}
{{- fail (printf "replicas: is %d, and state.persistence.enabled is true, but only one process can use the claim; set replicas to 1, or state.persistence.enabled to false" (int .Values.replicas)) -}}
{{- end -}}
{{- end -}}

{{/* A second release cannot contain the definition of the records. Without a cluster (`helm template`) nothing is found. */}}
{{- define "wasmspawner.checkDefinition" -}}
{{- if .Values.crds.install -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "spawns.wasmspawner.io" | default dict -}}
{{- $annotations := ($found.metadata).annotations | default dict -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- if and $release (or (ne $release .Release.Name) (ne $namespace .Release.Namespace)) -}}
{{- fail (printf "crds.install: the definition spawns.wasmspawner.io belongs to the release %s in the namespace %s; set crds.install to false, and upgrade that release first when the chart's version changes" $release $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
