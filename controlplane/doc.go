// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a Kubernetes control plane in one process: etcd, kube-apiserver and the controllers of
// kube-controller-manager that need no machines, and something that makes pods run without any.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{})
//	if err != nil {
//		return err
//	}
//	defer cp.Stop()
//	client, err := kubernetes.NewForConfig(cp.RESTConfig())
//
// It is meant for tests, demonstrations and programs that want a real API for a while. What it promises:
//
//   - Everything is on the loopback interface, or on a unix socket only the owner can reach. TLS with an authority of its own, RBAC on,
//     anonymous access off. The admin's kubeconfig has mode 0600.
//   - Ports are free ones unless chosen. Several control planes run side by side, each in a process of its own.
//   - Data is in a private temporary folder that Stop removes; with Options.Dir it stays, with the certificate authority and all
//     objects, for the next Start. A folder left by a killed process is removed by the next Start of any control plane of the same user.
//   - It is quiet. Logs go to controlplane.log in the data folder; Options.Verbosity above 0 sends them to Options.LogOutput too. One
//     exception: the etcd client in kube-apiserver prints warnings to standard error, past any logger, when it is stopped. The command
//     trueup-controlplane keeps them out of its output; a program of your own sees them.
//
// # One per process
//
// Kubernetes' components keep state in package variables: metrics, feature gates, the logger of klog. A process can therefore start one
// control plane in its life; a second Start returns ErrAlreadyStarted. Programs that need several, or that do not want Kubernetes in
// their own binary, run the command trueup-controlplane as a child process.
//
// # Controllers
//
// Owned objects are deleted with their owner, namespaces are emptied, Deployments, StatefulSets, DaemonSets, Jobs and CronJobs make
// pods, Services get endpoints, quotas are counted: see DefaultControllers. The garbage collector learns of a new custom resource within
// a second, not within half a minute.
//
// # Pods
//
// A node named "trueup" is Ready, and pods become Running and Ready on it without anything being executed. Pods that do not restart, as
// those of a Job, succeed a moment later. The annotation trueup.dev/pod-phase in a pod template chooses another fate for tests: Pending,
// Running, NotReady, Succeeded or Failed. PersistentVolumeClaims stay Pending; pods that use them run all the same. Taints, node
// selectors and resource requests are not looked at.
package controlplane
