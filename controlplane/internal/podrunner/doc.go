// SPDX-License-Identifier: Apache-2.0

// Package podrunner makes pods run on a cluster that has no machines: it keeps one node Ready, binds pods to it, and reports for them
// what a kubelet would report about containers that work. No process is started.
//
// A pod becomes Running and Ready at once. If its restart policy is not Always, as for the pods of a Job, it succeeds a moment later.
// A pod that is being deleted is gone at once. Node selectors, taints, resources, volumes and probes are not looked at. Pods with
// scheduling gates or with a scheduler of their own are not bound, and pods on other nodes are left alone.
//
// The annotation trueup.dev/pod-phase on a pod (or in a pod template) asks for another fate:
//
//	Pending    the containers are waiting and do not start
//	Running    the pod runs and stays running, also one of a Job
//	NotReady   the pod runs, its containers are not ready
//	Succeeded  the containers exit with code 0
//	Failed     the containers exit with code 1
//
// As with a kubelet, containers that exit are started again if the restart policy is Always: such a pod stays Running, not ready, with
// its containers waiting in CrashLoopBackOff. The annotation may be changed at any time; a pod that has Succeeded or Failed stays so.
package podrunner
