"""Combinations of values that cannot work: the message names the key, the value and the remedy."""

import pytest
from chart import MINIMAL, NAME, merged
from helm import Refused

HEADERS = {"url": "https://gafaelfawr.example.org", "trusted_peers": ["192.0.2.1"], "implied_scopes": []}
CLIENTS = {"apiClients": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nginx"}}}]}


def config(**sections):
    return {"config": sections}


def gafaelfawr(**headers):
    """Values of a site with Gafaelfawr, with these settings in `auth.headers`."""
    auth = {"modes": ["headers"], "headers": {**HEADERS, **headers}}
    enabled = {"gafaelfawr": {"enabled": True, "host": "lab.example.org"}, "networkPolicy": CLIENTS}
    return {**enabled, "config": {"auth": auth}}


REFUSALS = {
    "no image": ({"image": {"repository": ""}}, "image.repository: is empty; name the repository"),
    "no authentication": ({"config": {"auth": None}}, "config.auth: is not set, so nobody could use the service"),
    "a mode without its section": (
        config(auth={"modes": ["oidc"]}),
        "config.auth.modes: has oidc, and config.auth.oidc is",
    ),
    "static tokens without a Secret": (
        config(auth={"modes": ["static"]}),
        "secrets.staticTokens.existingSecret is empty; name the Secret",
    ),
    "a Secret that nothing uses": (
        {"secrets": {"staticTokens": {"existingSecret": "tokens"}}},
        "secrets.staticTokens.existingSecret: tokens is not used; add static to config.auth.modes",
    ),
    "a Hub without a token": (config(hub={"timeout": "10s"}), "name its Secret in secrets.hubToken.existingSecret"),
    "a shared secret without a Secret": (
        config(auth={"modes": ["headers"], "headers": {**HEADERS, "proof": {"shared-secret": {}}}}),
        "secrets.ingressSecret.existingSecret is empty; name the Secret that the ingress sends",
    ),
    "a shared secret that is not asked for": (
        {"secrets": {"ingressSecret": {"existingSecret": "shared"}}},
        "secrets.ingressSecret.existingSecret: shared is not used",
    ),
    "another namespace": (
        config(kubernetes={"namespace": "kube-system"}),
        "config.kubernetes.namespace: cannot be set (here kube-system)",
    ),
    "a kubeconfig": (config(kubernetes={"kubeconfig": "/k"}), "config.kubernetes.kubeconfig: cannot be set"),
    "a one-machine cluster": (config(embedded={"keep_labs": True}), "config.embedded: cannot be set"),
    "a folder for the state": (config(state_dir="/data"), "config.state_dir: cannot be set (here /data)"),
    "logins of another place": (
        config(registries={"credentials_file": "/a"}),
        "name the Secret with the logins in secrets.registryLogins.existingSecret",
    ),
    "a login at NATS of another place": (
        config(history={"nats": {"servers": ["nats://nats"], "token_file": "/a"}}),
        "name the Secret with the login in secrets.natsLogin.existingSecret, and set secrets.natsLogin.as to token_file",
    ),
    "a login at a NATS that is not used": (
        {"secrets": {"natsLogin": {"existingSecret": "login"}}},
        "secrets.natsLogin.existingSecret: login is not used; set config.history.nats, or remove it",
    ),
    "certificates of another place": (
        config(http={"tls": {"cert": "/a", "key": "/b"}}),
        "name the Secret with the certificate in secrets.tls.existingSecret",
    ),
    "a listener that nobody reaches": (
        config(http={"listen": "127.0.0.1:8090"}),
        "config.http.listen: nobody outside of the pod reaches 127.0.0.1:8090; use 0.0.0.0 or [::]",
    ),
    "one namespace without a name": (
        config(kubernetes={"namespaces": "single"}),
        "config.names.namespace: is not set, and config.kubernetes.namespaces is single; name the one namespace",
    ),
    "one namespace with many names": (
        config(kubernetes={"namespaces": "single"}, names={"namespace": "labs-{username}"}),
        "config.names.namespace: labs-{username} has a field",
    ),
    "labs beside the site's secrets": (
        config(kubernetes={"namespaces": "single"}, names={"namespace": NAME}),
        "config.names.namespace: wasmspawner is the service's own namespace",
    ),
    "a namespace for labs that have their own": (
        {"labsNamespace": {"create": True}},
        "labsNamespace.create: is true, and config.kubernetes.namespaces is delete; set that to single",
    ),
    "environments without namespaces of their own": (
        config(kubernetes={"namespaces": "single"}, names={"namespace": "labs"}, environments={}),
        "config.environments: is set, and config.kubernetes.namespaces is single; labs of environments have namespaces",
    ),
    "credentials of clusters that nothing uses": (
        {"environments": {"credentialsSecrets": ["far", "away"]}},
        "environments.credentialsSecrets: far, away is not used; set config.environments, which may be {}, or remove it",
    ),
    "environments in namespaces of the cluster": (
        {"environments": {"namespacePrefixes": ["env-", "kube-"]}, **config(environments={})},
        "environments.namespacePrefixes: kube- is also the beginning of the namespace kube-system",
    ),
    "an account without a name": ({"serviceAccount": {"create": False}}, "serviceAccount.name: is empty"),
    "a policy from nowhere": (
        config(policies=[{"name": "site"}]),
        'config.policies: the policy "site" has neither `oci` nor `path`, and policyFiles has no entry',
    ),
    "a policy from two places": (
        {"policyFiles": {"default": {"configMap": {"name": "a", "key": "b"}}}},
        "policyFiles.default: has bundled and configMap; say exactly one",
    ),
    "labs in any namespace": (
        config(names={"namespace": "{user_server}"}),
        "admissionPolicy.created: .* (from config.names.namespace, {user_server}) includes the namespace default",
    ),
    "labs in a namespace of the cluster": (
        config(names={"namespace": "kube-{user_server}"}),
        "includes the namespace kube-system, in which there are no labs; begin config.names.namespace with",
    ),
    "a pattern with the service's own namespace": (
        {"admissionPolicy": {"existing": "jhub|wasm.*"}},
        "admissionPolicy.existing: jhub|wasm.* (from config.names.namespace, nublado-{user_server}) includes the namespace",
    ),
    "a pattern that is an expression": (
        {"admissionPolicy": {"created": "a' || 'b' == 'b"}},
        "has an apostrophe, which no name of a namespace has",
    ),
    "a grant of homes anywhere": (
        config(policies=[{"name": "default", "grants": {"host-path": ["{home}/x"]}}]),
        "config.policies: the grant host-path of default has {home}/x, which may be any path; name the folder",
    ),
    "accounts of any name beside those of others": (
        config(kubernetes={"namespaces": "single"}, names={"namespace": "jhub", "service_account": "{username}"}),
        "config.names.service_account: begins with a field, so it may be the name of any account",
    ),
    "an ingress that the network policy keeps out": (
        {"ingress": {"enabled": True, "host": "lab.example.org"}},
        "ingress.enabled: the network policy lets only JupyterHub in; name the ingress controller's pods",
    ),
    "an ingress without a host": (
        {"ingress": {"enabled": True}, "networkPolicy": CLIENTS},
        "ingress.host: is empty; name the host",
    ),
    "a route without a gateway": (
        {"httpRoute": {"enabled": True}, "networkPolicy": CLIENTS},
        "httpRoute.parentRefs: is empty; name the Gateway",
    ),
    "Gafaelfawr that the service does not listen to": (
        {"gafaelfawr": {"enabled": True, "host": "h"}, "networkPolicy": CLIENTS},
        "gafaelfawr.enabled: is true, and config.auth.modes has no headers",
    ),
    "scopes for everybody": (
        gafaelfawr(implied_scopes=["exec:notebook"]),
        "config.auth.headers.implied_scopes: has exec:notebook (its default) or more",
    ),
    "headers that clients can send": (
        gafaelfawr(ingress_also_sets=["email", "groups"]),
        "config.auth.headers.ingress_also_sets: has groups, and NGINX lets these headers of Gafaelfawr through",
    ),
    "routes that delegate a token that is not asked for": (
        gafaelfawr(proof="bare-user-header"),
        'config.auth.headers.proof: is "bare-user-header", and the routes of gafaelfawr delegate a token',
    ),
    "a shorter life than Gafaelfawr accepts": (
        merged(gafaelfawr(), {"gafaelfawr": {"minimumLifetime": 299}}),
        "gafaelfawr.minimumLifetime: is 299, and Gafaelfawr answers every request with an error if it is below 300",
    ),
    "kernels whose labs only an ingress knows": (
        {"kernels": {"enabled": True}, **config(auth={"modes": ["headers"], "headers": HEADERS})},
        "config.http.labs_url: is http://wasmspawner.wasmspawner:8090 (its default), where nobody knows the tokens of labs,"
        " because config.auth.modes has only headers; set it to the URL of the ingress, as gafaelfawr.enabled does",
    ),
    "labs that avoid the ingress": (
        merged(
            gafaelfawr(),
            {"kernels": {"enabled": True}},
            config(http={"labs_url": "http://Wasmspawner.wasmspawner.svc.cluster.local:8090"}),
        ),
        "config.http.labs_url: is http://Wasmspawner.wasmspawner.svc.cluster.local:8090, where nobody knows the tokens of labs,"
        " because config.auth.modes has only headers; remove the key, so that labs use the ingress",
    ),
    "kernels that no lab may start": (
        merged(gafaelfawr(), {"kernels": {"enabled": True}, "gafaelfawr": {"labScopes": ["admin:jupyterhub"]}}),
        "gafaelfawr.labScopes: has no exec:notebook (here admin:jupyterhub), and kernels.enabled is true",
    ),
    "pools that no lab may change": (
        merged(gafaelfawr(), {"kernels": {"enabled": True}, "gafaelfawr": {"spawnScopes": ["read:all"]}}),
        "gafaelfawr.spawnScopes: has no exec:notebook (here read:all), and kernels.enabled is true",
    ),
    "a Gafaelfawr that the network policy keeps away": (
        gafaelfawr(url="http://gafaelfawr.gafaelfawr:8080"),
        "config.auth.headers.url: the network policy does not let the service connect to http://gafaelfawr.gafaelfawr:8080",
    ),
    "a pod that is killed while it works": (
        {"terminationGracePeriodSeconds": 49},
        "terminationGracePeriodSeconds: 49 is less than 30 s above config.limits.drain (20s)",
    ),
    "a duration of another form": (config(limits={"drain": "PT20S"}), "config.limits.drain: PT20S is not written as"),
    "two pods with one volume": (
        {"replicas": 2, "state": {"persistence": {"enabled": True}}},
        "replicas: is 2, and state.persistence.enabled is true",
    ),
    "another EndpointSlice": (
        config(kubernetes={"endpoint_slice": "mine"}),
        "config.kubernetes.endpoint_slice: cannot be set",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_wrong_combination_is_refused_with_the_remedy(chart, case):
    wrong, told = REFUSALS[case]
    with pytest.raises(Refused) as refused:
        chart.render(merged(MINIMAL, wrong))
    assert told in str(refused.value)


def test_the_values_that_are_made_wrong_are_right_before(chart):
    assert chart.render(MINIMAL)
    assert chart.render(merged(MINIMAL, gafaelfawr()))
    kernels = {"kernels": {"enabled": True}, "gafaelfawr": {"minimumLifetime": 300}}
    assert chart.render(merged(MINIMAL, gafaelfawr(), kernels))
    # Another mode knows the tokens of labs that come directly.
    direct = {"labs_url": "http://wasmspawner.wasmspawner:8090"}
    oidc = {"modes": ["headers", "jupyterhub"]}
    assert chart.render(merged(MINIMAL, gafaelfawr(), kernels, config(http=direct, auth=oidc)))
