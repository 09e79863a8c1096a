// SPDX-License-Identifier: Apache-2.0

// Package podrunner simulates a node and its pods on a cluster without machines: it keeps one node Ready, binds pods to
// it, and reports the status that a kubelet would report. It starts no containers.
//
// A pod becomes Running and Ready immediately. If its restart policy is not Always, as for the pods of a Job, it
// succeeds a moment later. A terminating pod is removed immediately. Node selectors, taints, resources, volumes and
// probes are ignored. Pods with scheduling gates or with another scheduler are not bound, no pods are bound while the
// node is cordoned, except those that tolerate it, and pods on other nodes are not changed.
//
// The annotation trueup.dev/pod-phase on a pod (or in a pod template) selects another outcome:
//
//	Pending    the containers are waiting and do not start
//	Running    the pod runs and stays running, also one of a Job
//	NotReady   the pod runs, its containers are not ready
//	Succeeded  the containers exit with code 0
//	Failed     the containers exit with code 1
//
// As with a kubelet, containers that exit are started again if the restart policy is Always: such a pod stays Running,
// not ready, with its containers waiting in CrashLoopBackOff. The annotation may be changed at any time; a pod that has
// Succeeded or Failed stays so.
package podrunner
