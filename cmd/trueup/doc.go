// SPDX-License-Identifier: Apache-2.0

// Command trueup starts a disposable Kubernetes control plane, demonstrates a controller on it, and prints what a
// controller consists of.
//
//	trueup up        start a control plane and run it until interrupted
//	trueup demo      demonstrate the example controller: create, update, repair and delete sites;
//	                 with --replicas, kill one of several replicas
//	trueup graph     print the reconcilers of your program as a tree, Mermaid, DOT or JSON
//	trueup why       show why a running controller reconciled an object, and what that did
//	trueup rbac      print the role that your program needs
//	trueup build     build the control plane in advance
//	trueup envtest   make the directory that KUBEBUILDER_ASSETS names for envtest
//	trueup migrate   move a project from reconciler.io runtime or the Grafana App SDK to trueup
//	trueup version   print the version
package main
