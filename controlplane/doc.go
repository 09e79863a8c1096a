// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a Kubernetes control plane in one process: etcd, kube-apiserver, the controllers of
// kube-controller-manager that need no machines, and a simulated node for pods.
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{})
//	if err != nil {
//		return err
//	}
//	defer cp.Stop()
//	client, err := kubernetes.NewForConfig(cp.RESTConfig())
//
// It is intended for tests, demonstrations and programs that need a real API temporarily. It guarantees:
//
//   - All servers listen on the loopback interface, or on a unix socket that only the owner can access. TLS uses a
//     private certificate authority, RBAC is enabled, and anonymous access is disabled. The admin's kubeconfig has mode
//     0600.
//   - A free port is used unless Options.Port is set. Several control planes can run side by side, each in its own
//     process.
//   - Data is in a private temporary directory that Stop removes. With Options.Dir it is kept for the next Start,
//     including the certificate authority and all objects. The next Start of any control plane of the same user removes
//     the directory of a killed process.
//   - It prints no logs. They are written to controlplane.log in the data directory, and with Options.Verbosity above 0
//     also to Options.LogOutput. One exception: the etcd client in kube-apiserver prints warnings to standard error
//     when it is stopped, and bypasses the loggers. The command trueup-controlplane suppresses them; other programs do
//     not.
//
// # One per process
//
// Kubernetes' components keep state in package variables: metrics, feature gates, the logger of klog. A process can
// therefore start only one control plane; a second Start returns ErrAlreadyStarted. Programs that need several, or that
// do not want Kubernetes in their own binary, run the command trueup-controlplane as a child process.
//
// # Controllers
//
// Owned objects are garbage-collected, namespaces are emptied, Deployments, StatefulSets, DaemonSets, Jobs and CronJobs
// create pods, Services get endpoints, and quotas are counted: see DefaultControllers. The garbage collector supports a
// new custom resource within a second, not within half a minute.
//
// # Pods
//
// A node named "trueup" is Ready, and pods become Running and Ready on it, but no container is executed. Pods that do
// not restart, as those of a Job, succeed a moment later. The annotation trueup.dev/pod-phase in a pod template selects
// another outcome for tests: Pending, Running, NotReady, Succeeded or Failed. PersistentVolumeClaims stay Pending, but
// pods that use them run. Taints, node selectors and resource requests are ignored.
package controlplane
