// SPDX-License-Identifier: Apache-2.0

// Package kubelet answers the requests that kube-apiserver forwards to kubelets: logs, exec, attach, port-forward and
// the proxy of nodes. Pods are simulated. Therefore logs are what annotations of the pod contain, and the other
// requests get an error that says so. Connections are in memory: nothing listens on a port, whatever addresses nodes
// have.
package kubelet
