use serde_json::{Value, json};

/// The defaults of the chart jupyterhub/jupyterhub 4 that have an effect on labs.
pub(crate) fn of_chart() -> Value {
    let dedicated =
        |key: &str| json!({"key": key, "operator": "Equal", "value": "user", "effect": "NoSchedule"});
    json!({
        "singleuser": {
            "cloudMetadata": {"blockWithIptables": true},
            "cmd": "jupyterhub-singleuser",
            "extraLabels": {"hub.jupyter.org/network-access-hub": "true"},
            "fsGid": 100,
            "image": {"name": "quay.io/jupyterhub/k8s-singleuser-sample", "tag": "4.3.2"},
            "memory": {"guarantee": "1G"},
            "networkPolicy": {
                "enabled": true,
                "egressAllowRules": {
                    "cloudMetadataServer": false,
                    "dnsPortsCloudMetadataServer": true,
                    "dnsPortsKubeSystemNamespace": true,
                    "dnsPortsPrivateIPs": true,
                    "nonPrivateIPs": true,
                    "privateIPs": false
                }
            },
            "startTimeout": 300,
            "storage": {
                "type": "dynamic",
                "capacity": "10Gi",
                "homeMountPath": "/home/jovyan",
                "dynamic": {
                    "volumeNameTemplate": "volume-{user_server}",
                    "storageAccessModes": ["ReadWriteOnce"]
                },
                "static": {"subPath": "{username}"}
            },
            "uid": 1000
        },
        "scheduling": {
            "userPods": {
                "nodeAffinity": {"matchNodePurpose": "prefer"},
                "tolerations": [dedicated("hub.jupyter.org/dedicated"), dedicated("hub.jupyter.org_dedicated")]
            },
            "userScheduler": {"enabled": true}
        },
        "prePuller": {"continuous": {"enabled": true}, "hook": {"enabled": true}}
    })
}
