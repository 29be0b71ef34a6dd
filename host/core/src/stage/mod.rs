//! From what Kubernetes says about a pod to the stage its lab is in.
