// SPDX-License-Identifier: Apache-2.0

// Package controllers runs the controllers of kube-controller-manager that work without machines, and
// three of its own that stand in for a cloud, an ingress controller and a storage driver.
//
// The constructors in k8s.io/kubernetes/pkg/controller are called directly. The package of the command,
// cmd/kube-controller-manager/app, would link all of its controllers and with them the kubelet, the scheduler,
// cAdvisor, containerd and the volume plugins.
package controllers
