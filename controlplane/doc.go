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
//   - It connects to loopback addresses only: webhooks and aggregated APIs elsewhere are refused, and requests to
//     kubelets are answered in this process. AddressAnnotation leads a Service to a local program.
//   - A free port is used unless Options.Port is set. Several control planes can run side by side, each in its own
//     process.
//   - Data is in a private temporary directory that Stop removes. With Options.Dir it is kept for the next Start,
//     including the certificate authority and all objects. The next Start of any control plane of the same user removes
//     the directory of a killed process.
//   - Memory and disk do not grow with what was written and deleted: the history of etcd has limits, and a full disk or
//     database rejects writes until there is space.
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
// create pods, Services get endpoints, autoscalers scale, quotas are counted, claims are bound to volumes, and approved
// CertificateSigningRequests are issued: see DefaultControllers. The garbage collector supports a new custom resource
// within a second, not within half a minute. Controllers that need machines are not linked in.
//
// Three controllers stand in for parts that a cluster gets from elsewhere. Services of type LoadBalancer get an address
// in 203.0.113.0/24, and each Ingress without an existing IngressClass gets 198.51.100.1; both are reserved for
// documentation and nothing answers there. The default storage class "standard" creates volumes that hold no data.
//
// # Pods
//
// A node named "trueup" is Ready, and pods become Running and Ready on it, but no container is executed. Pods that do
// not restart, such as the pods of a Job, succeed a moment later. The annotation trueup.dev/pod-phase in a pod template
// selects another outcome for tests: Pending, Running, NotReady, Succeeded or Failed. The annotations
// trueup.dev/pod-cpu and trueup.dev/pod-memory are the usage on which a HorizontalPodAutoscaler acts. Taints, node
// selectors, resource requests and unbound claims do not keep a pod from running.
package controlplane
